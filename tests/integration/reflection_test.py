"""What a generic client needs: reflection lists every service, describes each, and health answers.

Arguments: triad-server. Messages are read and written by hand: Debian has no Python package for reflection.
"""

import re
import subprocess
import sys

import grpc
from google.protobuf import descriptor_pb2

LISTENING = re.compile(r"127\.0\.0\.1:[1-9]\d*")
REFLECTION = "grpc.reflection.v1alpha.ServerReflection"
EXPECTED = {"grpc.health.v1.Health", "triad.v1.AttentionService", REFLECTION}
SERVING = b"\x08\x01"   # HealthCheckResponse {status: SERVING}


def fields(message: bytes) -> list:
    """(number, bytes) of every length-delimited field of a message; the others are skipped."""
    found, at = [], 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        tag = varint()
        if tag & 7 == 2:
            size = varint()
            found.append((tag >> 3, message[at:at + size]))
            at += size
        elif tag & 7 == 0:
            varint()
        else:
            sys.exit(f"a field of wire type {tag & 7} is not expected here")
    return found


def text_field(number: int, text: str) -> bytes:
    return bytes([number << 3 | 2, len(text)]) + text.encode()


def ask(channel, request: bytes) -> list:
    """The fields of the one reply of a reflection call."""
    call = channel.stream_stream(f"/{REFLECTION}/ServerReflectionInfo", lambda data: data, lambda data: data)
    return fields(next(call(iter([request]), timeout=10)))


def check(address: str) -> None:
    with grpc.insecure_channel(address) as channel:
        (listing,) = [data for number, data in ask(channel, text_field(7, "")) if number == 6]
        services = {fields(entry)[0][1].decode() for _, entry in fields(listing)}
        assert services >= EXPECTED, services
        for service in services - {REFLECTION}:
            answers = [data for number, data in ask(channel, text_field(4, service)) if number == 4]
            assert answers, f"{service} is listed but not described"
            files = [descriptor_pb2.FileDescriptorProto.FromString(data) for _, data in fields(answers[0])]
            described = {f"{file.package}.{one.name}" for file in files for one in file.service}
            assert service in described, described
        for service in ["", *(services - {REFLECTION, "grpc.health.v1.Health"})]:
            health = channel.unary_unary("/grpc.health.v1.Health/Check")
            answer = health(text_field(1, service), timeout=10)
            assert answer == SERVING, (service, answer)


def main(binary: str) -> None:
    server = subprocess.Popen([binary, "--listen=127.0.0.1:0", "--http_listen="], stderr=subprocess.PIPE, text=True)
    try:
        for line in server.stderr:
            address = LISTENING.search(line)
            if "listening" in line and address:
                return check(address.group(0))
        sys.exit("the server ended without listening")
    finally:
        server.terminate()
        server.communicate()


if __name__ == "__main__":
    main(sys.argv[1])
