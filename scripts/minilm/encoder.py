"""all-MiniLM-L6-v2 in numpy, all of it in double precision: a BERT of six layers (Devlin et al. 2018, arXiv:1810.04805).

Attention is a function of its own, so that a server can stand in for it.
"""

import json
import math
import struct
from pathlib import Path
from typing import Callable, NamedTuple, Tuple

import numpy as np

erf = np.frompyfunc(math.erf, 1, 1)


def read_safetensors(path: Path) -> dict:
    """Every F32 tensor of the file, as it lies."""
    data = path.read_bytes()
    (header_bytes,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + header_bytes])
    begin = 8 + header_bytes
    tensors = {}
    for name, entry in header.items():
        if entry.get("dtype") == "F32":
            first, last = entry["data_offsets"]
            tensors[name] = np.frombuffer(data[begin + first : begin + last], "<f4").reshape(entry["shape"])
    return tensors


class Attention(NamedTuple):
    """What attention gives for the hidden states of one sentence."""
    output: np.ndarray    # [tokens, model_dim]
    weights: np.ndarray   # [heads, tokens, tokens]
    largest_score: float  # scale * sum |q_i k_i|, over all pairs: what the weights' accuracy depends on


class Encoder:
    def __init__(self, folder: Path):
        config = json.loads((folder / "config.json").read_text())
        self.layers = config["num_hidden_layers"]
        self.heads = config["num_attention_heads"]
        self.model_dim = config["hidden_size"]
        self.positions = config["max_position_embeddings"]
        self.epsilon = config["layer_norm_eps"]
        if config["hidden_act"] != "gelu":
            raise ValueError(f"hidden_act {config['hidden_act']} is not gelu")
        self.tensors = {name: t.astype(np.float64) for name, t in read_safetensors(folder / "model.safetensors").items()}

    def linear(self, name: str, x: np.ndarray) -> np.ndarray:
        return x @ self.tensors[name + ".weight"].T + self.tensors[name + ".bias"]

    def norm(self, name: str, x: np.ndarray) -> np.ndarray:
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.epsilon)
        return x * self.tensors[name + ".weight"] + self.tensors[name + ".bias"]

    def embed(self, ids: list) -> np.ndarray:
        """[tokens, model_dim] of one sentence's token ids."""
        tables = [self.tensors[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")]
        return self.norm("embeddings.LayerNorm", tables[0][ids] + tables[1][: len(ids)] + tables[2][0])

    def attend(self, layer: int, x: np.ndarray) -> Attention:
        """What a server's layer minilm/<layer> computes."""
        name = f"encoder.layer.{layer}.attention."

        def split(projected):   # [heads, tokens, dims]
            return projected.reshape(len(x), self.heads, -1).transpose(1, 0, 2)

        q, k, v = (split(self.linear(name + "self." + part, x)) for part in ("query", "key", "value"))
        scale = 1 / math.sqrt(q.shape[-1])
        scores = scale * q @ k.transpose(0, 2, 1)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        mixed = (weights @ v).transpose(1, 0, 2).reshape(len(x), -1)
        largest = scale * (abs(q) @ abs(k).transpose(0, 2, 1)).max()
        return Attention(self.linear(name + "output.dense", mixed), weights, largest)

    def finish(self, layer: int, x: np.ndarray, attended: np.ndarray) -> np.ndarray:
        """The next layer's hidden states: x is what went into attention, attended its output."""
        name = f"encoder.layer.{layer}."
        x = self.norm(name + "attention.output.LayerNorm", x + attended)
        hidden = self.linear(name + "intermediate.dense", x)
        hidden = hidden * 0.5 * (1 + erf(hidden / math.sqrt(2)).astype(np.float64))   # gelu
        return self.norm(name + "output.LayerNorm", x + self.linear(name + "output.dense", hidden))

    def encode(self, ids: list, attend: Callable[[int, np.ndarray], np.ndarray]) -> Tuple[list, np.ndarray]:
        """The hidden states that go into each layer, and the sentence's embedding: the mean of the last, of length 1."""
        x, inputs = self.embed(ids), []
        for layer in range(self.layers):
            inputs.append(x)
            x = self.finish(layer, x, attend(layer, x))
        mean = x.mean(0)
        return inputs, mean / np.linalg.norm(mean)
