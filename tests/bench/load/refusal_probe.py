"""How an overloaded server refuses: the answer's time and its pushback, which `triad bench` does not report."""

import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]
METHOD = "/triad.v1.AttentionService/Forward"
PAUSE_SECONDS = 0.05
PUSHBACK = "grpc-retry-pushback-ms"


class Refused(NamedTuple):
    seconds: float
    has_pushback: bool


def serialized_forward(layer: str, tokens: int, model_dim: int) -> bytes:
    sys.path.insert(0, str(ROOT / "scripts/minilm"))
    from forward_client import compile_protos
    protos = compile_protos(ROOT)
    tensor = protos.tensor.Tensor(dtype=protos.tensor.FLOAT32, shape=[1, tokens, model_dim],
                                  data=bytes(4 * tokens * model_dim))
    return protos.attention.ForwardRequest(layer=layer, input=tensor).SerializeToString()


class RefusalProbe(threading.Thread):
    """Sends `request` now and then with the load's own deadline, for the length of a `with` block."""

    def __init__(self, target: str, request: bytes, timeout_seconds: float):
        super().__init__(daemon=True)
        self._target = target
        self._request = request
        self._timeout_seconds = timeout_seconds
        self._ended = threading.Event()
        self.refused: list[Refused] = []

    def run(self) -> None:
        import grpc
        with grpc.insecure_channel(self._target) as channel:
            call = channel.unary_unary(METHOD)  # bytes in, bytes out
            while not self._ended.wait(PAUSE_SECONDS):
                sent = time.monotonic()
                try:
                    call(self._request, timeout=self._timeout_seconds)
                except grpc.RpcError as error:
                    seconds = time.monotonic() - sent
                    if error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED:
                        keys = [key for key, _ in error.trailing_metadata() or ()]
                        self.refused.append(Refused(seconds, PUSHBACK in keys))

    def __enter__(self) -> "RefusalProbe":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()

    def p99_seconds(self) -> float:
        seconds = sorted(refused.seconds for refused in self.refused)
        return seconds[int(0.99 * (len(seconds) - 1))]
