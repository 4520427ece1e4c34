"""Layers of every family of models, from a checkpoint to an answer: written here, imported by `triad layers import`,
served by triad-server, and compared with the attention of each family, computed in double precision as its own code has
it.

Arguments: triad-server, triad.
"""

import json
import math
import struct
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

import layer_server

SERVER, TRIAD = None, None
BATCH, TOKENS = 2, 13
FORMAT_NAMES = {np.dtype(np.float32): "F32", np.dtype(np.float16): "F16", np.dtype(np.uint16): "BF16"}


def to_bf16(x: np.ndarray) -> np.ndarray:
    """The upper halves of f32, rounded to nearest even, as uint16."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def widened(x: np.ndarray) -> np.ndarray:
    if x.dtype == np.uint16:
        x = (x.astype(np.uint32) << 16).view(np.float32)
    return x.astype(np.float64)


def write_safetensors(path: Path, tensors: dict) -> None:
    header, data = {}, b""
    for name, tensor in tensors.items():
        bytes_ = tensor.tobytes()
        header[name] = {"dtype": FORMAT_NAMES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(bytes_)]}
        data += bytes_
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Checkpoint:
    """Random tensors and a config, and the same tensors in double precision."""

    def __init__(self, seed: int, round_to, **config):
        self.random = np.random.default_rng(seed)
        self.round_to = round_to
        self.config = config
        self.tensors = {}

    def add(self, name: str, *shape: int) -> None:
        """Weights of variance 1 / inputs or so, biases of about 1 / 2."""
        scale = 0.5 if len(shape) == 1 else 1 / math.sqrt(min(shape))
        self.tensors[name] = self.round_to(self.random.standard_normal(shape) * scale)

    def linear(self, name: str, outputs: int, inputs: int, bias: bool = True) -> None:
        self.add(name + ".weight", outputs, inputs)
        if bias:
            self.add(name + ".bias", outputs)

    def apply(self, name: str, x: np.ndarray) -> np.ndarray:
        """torch.nn.Linear."""
        y = x @ widened(self.tensors[name + ".weight"]).T
        bias = self.tensors.get(name + ".bias")
        return y if bias is None else y + widened(bias)

    def save(self, folder: Path, shards: int = 1) -> None:
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(self.config))
        if shards == 1:
            write_safetensors(folder / "model.safetensors", self.tensors)
            return
        names = sorted(self.tensors)
        weight_map = {}
        for shard in range(shards):
            file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
            write_safetensors(folder / file, {name: self.tensors[name] for name in names[shard::shards]})
            weight_map.update({name: file for name in names[shard::shards]})
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


def heads_of(x: np.ndarray, heads: int) -> np.ndarray:
    """[batch, tokens, heads * dim] -> [batch, heads, tokens, dim]."""
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def mix(q, k, v, scale, visible=None):
    """Softmax attention of [batch, heads, tokens, dim]: mixed values with the heads joined, weights, largest score."""
    scores = scale * q @ k.swapaxes(-1, -2)
    largest = abs(scale) * (abs(q) @ abs(k).swapaxes(-1, -2)).max()
    if visible is not None:
        scores = np.where(visible, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    mixed = (weights @ v).transpose(0, 2, 1, 3)
    return mixed.reshape(*mixed.shape[:2], -1), weights, largest


def causal(window: int = TOKENS) -> np.ndarray:
    """[tokens, tokens]: a query sees itself and window - 1 before it."""
    distance = np.arange(TOKENS)[:, None] - np.arange(TOKENS)
    return (distance >= 0) & (distance < window)


def rotate(x: np.ndarray, offsets: list, inverse_frequencies: np.ndarray, factor: float = 1) -> np.ndarray:
    """apply_rotary_pos_emb of Llama: cos and sin over the whole width, the halves swapped for the sine."""
    angles = (np.array(offsets)[:, None] + np.arange(TOKENS))[..., None] * inverse_frequencies
    angles = np.concatenate([angles, angles], -1)[:, None]
    half = x.shape[-1] // 2
    swapped = np.concatenate([-x[..., half:], x[..., :half]], -1)
    return factor * (x * np.cos(angles) + swapped * np.sin(angles))


class ImportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = Path(folder.name)
        cls.cases = {case.__name__: case() for case in (bert, gpt2, llama, mistral, qwen2, vit)}
        for name, (checkpoint, _) in cls.cases.items():
            checkpoint.save(cls.root / name, shards=3 if name == "llama" else 1)
            layer_server.import_layers(TRIAD, "--from", cls.root / name, "--to", cls.root / "layers", "--all")
        cls.serving = layer_server.serving(SERVER, cls.root / "layers")
        cls.client = cls.serving.__enter__()
        cls.addClassCleanup(cls.serving.__exit__, None, None, None)

    def check(self, name: str, offsets=None) -> None:
        checkpoint, attention = self.cases[name]
        width = checkpoint.config.get("hidden_size", checkpoint.config.get("n_embd"))
        for layer in range(2):
            hidden = np.random.default_rng(layer).standard_normal((BATCH, TOKENS, width)).astype(np.float32)
            output, weights, largest = attention(layer, hidden.astype(np.float64), offsets or [0] * BATCH)
            reply = self.client.forward(f"{name}/{layer}", hidden, offsets=offsets)
            self.assertLessEqual(layer_server.normalised_error(reply.output, output), 1e-11)
            self.assertLessEqual(abs(reply.weights - weights).max(), layer_server.weights_bound(largest))

    def test_bert(self):
        self.check("bert")

    def test_gpt2(self):
        self.check("gpt2")

    def test_llama(self):
        self.check("llama")
        self.check("llama", offsets=[5000, 17])   # far enough for the scaling of long waves to matter

    def test_mistral(self):
        self.check("mistral")
        self.check("mistral", offsets=[0, 40000])

    def test_qwen2(self):
        self.check("qwen2")

    def test_vit(self):
        self.check("vit")


def bert():
    """Separate projections with biases, all see all; f32; names with the prefix."""
    model = Checkpoint(1, np.float32, model_type="bert", hidden_size=48, num_attention_heads=3, num_hidden_layers=2)
    for layer in range(2):
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            model.linear(f"bert.encoder.layer.{layer}.attention.{part}", 48, 48)
        model.add(f"bert.encoder.layer.{layer}.attention.output.LayerNorm.weight", 48)

    def attention(layer, x, offsets):
        name = f"bert.encoder.layer.{layer}.attention."
        q, k, v = (heads_of(model.apply(name + "self." + part, x), 3) for part in ("query", "key", "value"))
        mixed, weights, largest = mix(q, k, v, 1 / math.sqrt(16))
        return model.apply(name + "output.dense", mixed), weights, largest

    return model, attention


def gpt2():
    """One fused projection that lies [inputs, outputs], causal; f16; scores divided by the layer's number too."""
    model = Checkpoint(2, np.float16, model_type="gpt2", n_embd=40, n_head=5, n_layer=2,
                       scale_attn_by_inverse_layer_idx=True)
    for layer in range(2):
        for part, outputs in (("c_attn", 120), ("c_proj", 40)):
            model.add(f"h.{layer}.attn.{part}.weight", 40, outputs)
            model.add(f"h.{layer}.attn.{part}.bias", outputs)

    def conv1d(name, x):
        return x @ widened(model.tensors[name + ".weight"]) + widened(model.tensors[name + ".bias"])

    def attention(layer, x, offsets):
        q, k, v = (heads_of(part, 5) for part in np.split(conv1d(f"h.{layer}.attn.c_attn", x), 3, axis=-1))
        mixed, weights, largest = mix(q, k, v, 1 / math.sqrt(8) / (layer + 1), causal())
        return conv1d(f"h.{layer}.attn.c_proj", mixed), weights, largest

    return model, attention


def rotary_decoder(model: Checkpoint, frequencies: np.ndarray, biases: str = "", factor: float = 1, window: int = TOKENS):
    """Llama and its kind: 6 heads of 16 over 2, 40 wide; `biases` has a letter for each projection with a bias."""
    for layer in range(2):
        for part, outputs, inputs in (("q", 96, 40), ("k", 32, 40), ("v", 32, 40), ("o", 40, 96)):
            model.linear(f"model.layers.{layer}.self_attn.{part}_proj", outputs, inputs, bias=part in biases)

    def attention(layer, x, offsets):
        name = f"model.layers.{layer}.self_attn."
        q = rotate(heads_of(model.apply(name + "q_proj", x), 6), offsets, frequencies, factor)
        k = rotate(heads_of(model.apply(name + "k_proj", x), 2), offsets, frequencies, factor)
        v = heads_of(model.apply(name + "v_proj", x), 2)
        k, v = (np.repeat(t, 3, axis=1) for t in (k, v))
        mixed, weights, largest = mix(q, k, v, 16**-0.5, causal(window))
        return model.apply(name + "o_proj", mixed), weights, largest

    return model, attention


def llama_config(model_type: str, theta: float, **more) -> dict:
    return dict(model_type=model_type, hidden_size=40, num_attention_heads=6, num_key_value_heads=2, head_dim=16,
                num_hidden_layers=2, max_position_embeddings=131072, rope_theta=theta, **more)


def llama():
    """Grouped heads, wider together than the model; Llama 3's frequencies; bf16, in shards; no biases."""
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 8192}
    frequencies = 500000.0 ** (-np.arange(0, 16, 2) / 16)
    wavelengths = 2 * np.pi / frequencies
    smooth = (8192 / wavelengths - 1.0) / (4.0 - 1.0)
    scaled = np.where(wavelengths > 8192 / 1.0, frequencies / 8, frequencies)
    between = (1 - smooth) * frequencies / 8 + smooth * frequencies
    is_between = (wavelengths >= 8192 / 4.0) & (wavelengths <= 8192 / 1.0)
    assert is_between.any()
    model = Checkpoint(3, to_bf16, **llama_config("llama", 500000.0, rope_scaling=scaling, attention_bias=False))
    return rotary_decoder(model, np.where(is_between, between, scaled))


def mistral():
    """A sliding window of five, YaRN with its factor on sines and cosines; bf16."""
    scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    plain = 1e6 ** (-np.arange(0, 16, 2) / 16)

    def dimension(turns):
        return 16 * math.log(32768 / (turns * 2 * math.pi)) / (2 * math.log(1e6))

    low, high = math.floor(dimension(32)), math.ceil(dimension(1))
    ramp = np.clip((np.arange(8) - low) / (high - low), 0, 1)
    model = Checkpoint(4, to_bf16, **llama_config("mistral", 1e6, rope_scaling=scaling, sliding_window=5))
    return rotary_decoder(model, plain / 4 * ramp + plain * (1 - ramp), factor=0.1 * math.log(4) + 1, window=5)


def qwen2():
    """Biases on queries, keys and values alone; plain rotary; f16."""
    model = Checkpoint(5, np.float16, **llama_config("qwen2", 1e4, use_sliding_window=False, sliding_window=5))
    return rotary_decoder(model, 1e4 ** (-np.arange(0, 16, 2) / 16), biases="qkv")


def vit():
    """No biases but the output's; names without the prefix; f32."""
    model = Checkpoint(6, np.float32, model_type="vit", hidden_size=36, num_attention_heads=4, num_hidden_layers=2,
                       qkv_bias=False)
    for layer in range(2):
        for part in ("query", "key", "value"):
            model.linear(f"encoder.layer.{layer}.attention.attention.{part}", 36, 36, bias=False)
        model.linear(f"encoder.layer.{layer}.attention.output.dense", 36, 36)

    def attention(layer, x, offsets):
        name = f"encoder.layer.{layer}.attention."
        q, k, v = (heads_of(model.apply(name + "attention." + part, x), 4) for part in ("query", "key", "value"))
        mixed, weights, largest = mix(q, k, v, 1 / math.sqrt(9))
        return model.apply(name + "output.dense", mixed), weights, largest

    return model, attention


if __name__ == "__main__":
    SERVER, TRIAD = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
