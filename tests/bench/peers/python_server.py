#!/usr/bin/env python3
"""The server one would write without Triad: grpcio's thread pool around PyTorch's scaled_dot_product_attention.

It answers Attend and GetServerInfo of triad.v1, so that `triad bench` can ask it, but only what that asks without
flags: [batch, tokens, heads, dim] in f32, no masks. Its own answer is checked against numpy in f64 before it listens.
"""
import argparse
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import numpy as np
import torch
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from torch.nn.functional import scaled_dot_product_attention

PROTO = Path(__file__).resolve().parents[3] / "proto"
TOLERANCE = 1e-5
UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


def messages() -> dict[str, type]:
    """The messages of attention.proto by their names. protoc describes them, so that no code is generated."""
    with tempfile.NamedTemporaryFile() as described:
        subprocess.run(["protoc", f"--proto_path={PROTO}", "--include_imports",
                        f"--descriptor_set_out={described.name}", "triad/v1/attention.proto"], check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(Path(described.name).read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    found = message_factory.GetMessageClassesForFiles([file.name for file in files.file], pool)
    return {name.removeprefix("triad.v1."): message for name, message in found.items()}


class AttentionService:
    def __init__(self) -> None:
        self._messages = messages()

    def handlers(self) -> grpc.GenericRpcHandler:
        calls = {"Attend": (self.attend, "AttendRequest", "AttendResponse"),
                 "GetServerInfo": (self.server_info, "GetServerInfoRequest", "ServerInfo")}
        return grpc.method_handlers_generic_handler("triad.v1.AttentionService", {
            name: grpc.unary_unary_rpc_method_handler(call, self._messages[request].FromString,
                                                      self._messages[response].SerializeToString)
            for name, (call, request, response) in calls.items()})

    def attend(self, request, _context=None):
        # [batch, tokens, heads, dim] to what PyTorch takes: [batch, heads, tokens, dim]
        query, key, value = (torch.frombuffer(tensor.data, dtype=torch.float32).reshape(*tensor.shape).transpose(1, 2)
                             for tensor in (request.query, request.key, request.value))
        with torch.inference_mode():
            output = scaled_dot_product_attention(query, key, value).transpose(1, 2).contiguous()
        response = self._messages["AttendResponse"]()
        response.output.dtype = request.query.dtype
        response.output.shape.extend(output.shape)
        response.output.data = output.numpy().tobytes()
        return response

    def server_info(self, _request, _context):
        return self._messages["ServerInfo"](version=torch.__version__, kernel="torch")

    def check(self) -> None:
        """That an answer is right."""
        query, key, value = np.random.default_rng(1).standard_normal((3, 2, 33, 8, 64)).astype(np.float32)
        request = self._messages["AttendRequest"]()
        for tensor, array in ((request.query, query), (request.key, key), (request.value, value)):
            tensor.dtype, tensor.data = 1, array.tobytes()
            tensor.shape.extend(array.shape)
        answer = np.frombuffer(self.attend(request).output.data, np.float32).reshape(query.shape)
        scores = np.einsum("bqhd,bkhd->bhqk", query.astype(np.float64), key) / np.sqrt(query.shape[-1])
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        expected = np.einsum("bhqk,bkhd->bqhd", weights / weights.sum(axis=-1, keepdims=True), value)
        worst = np.abs(answer - expected).max()
        if not worst <= TOLERANCE:
            sys.exit(f"the Python server's answer is wrong by {worst:.2g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address", help="such as unix:/tmp/python.sock")
    parser.add_argument("--workers", type=int, default=8, help="threads that answer (default: 8)")
    parser.add_argument("--torch-threads", type=int, default=1, help="of one call of PyTorch (default: 1)")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", "The given buffer is not writable")
    torch.set_num_threads(arguments.torch_threads)
    service = AttentionService()
    service.check()
    server = grpc.server(ThreadPoolExecutor(arguments.workers), [service.handlers()], options=UNLIMITED)
    server.add_insecure_port(arguments.address)
    server.start()
    print(f"listening on {arguments.address}", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
