"""Calls a Triad server's Forward through a plain gRPC channel: message classes from the .proto files, no stub."""

import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Optional

import grpc
import numpy as np


def compile_protos(root: Path) -> SimpleNamespace:
    """The message classes of the repository at `root`."""
    with tempfile.TemporaryDirectory() as generated:
        protos = [str(path) for path in sorted((root / "proto/triad/v1").glob("*.proto"))]
        subprocess.run(["protoc", f"-I{root / 'proto'}", f"--python_out={generated}", *protos], check=True)
        sys.path.insert(0, generated)
        try:
            from triad.v1 import attention_pb2, tensor_pb2
        finally:
            sys.path.remove(generated)
    return SimpleNamespace(attention=attention_pb2, tensor=tensor_pb2)


class ForwardClient:
    def __init__(self, target: str, root: Path):
        self.protos = compile_protos(root)
        attention = self.protos.attention
        self.channel = grpc.insecure_channel(target, options=[("grpc.max_receive_message_length", -1)])
        self.call = self.channel.unary_unary("/triad.v1.AttentionService/Forward",
                                             request_serializer=attention.ForwardRequest.SerializeToString,
                                             response_deserializer=attention.ForwardResponse.FromString)

    def forward(self, layer: str, hidden: np.ndarray, lengths: Optional[list] = None, offsets: Optional[list] = None):
        """The server's reply for hidden states [batch, tokens, model_dim]: output, weights and timings."""
        tensor = self.protos.tensor
        request = self.protos.attention.ForwardRequest(
            layer=layer, return_weights=True,
            input=tensor.Tensor(dtype=tensor.FLOAT32, shape=hidden.shape, data=hidden.astype("<f4").tobytes()))
        if lengths is not None:
            request.lengths.CopyFrom(tensor.Lengths(values=lengths))
        if offsets is not None:
            request.position_offsets.CopyFrom(tensor.Lengths(values=offsets))
        reply = self.call(request, timeout=60)
        return SimpleNamespace(output=self.array(reply.output), weights=self.array(reply.weights), timings=reply.timings)

    @staticmethod
    def array(tensor) -> np.ndarray:
        return np.frombuffer(tensor.data, "<f4").reshape(tensor.shape)

    def close(self) -> None:
        self.channel.close()
