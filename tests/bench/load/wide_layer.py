"""A layer 2048 wide, 16 heads of 128, of random f32 weights: too large to be kept, so it is written where it is used."""

import array
import json
import random
import struct
from pathlib import Path

NAME = "wide"
MODEL_DIM = 2048
HEADS = 16
TENSORS = ("query", "key", "value", "output")
SPREAD = MODEL_DIM**-0.5  # so that outputs are about as large as inputs
SEED = 1


def write_wide_layer(layer_dir: Path) -> None:
    """Version 1 of NAME: 64 MiB."""
    folder = layer_dir / NAME / "1"
    folder.mkdir(parents=True)
    tensor_bytes = MODEL_DIM * MODEL_DIM * 4
    header = {name: {"dtype": "F32", "shape": [MODEL_DIM, MODEL_DIM],
                     "data_offsets": [i * tensor_bytes, (i + 1) * tensor_bytes]} for i, name in enumerate(TENSORS)}
    text = json.dumps(header).encode()
    with open(folder / "weights.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for i in range(len(TENSORS)):
            file.write(_weights(SEED + i))
    projections = "\n".join(f'{name} {{ weight: "{name}" }}' for name in TENSORS)
    (folder / "layer.textproto").write_text(f"model_dim: {MODEL_DIM}\nheads: {HEADS}\n{projections}\n",
                                            encoding="ascii")


def _weights(seed: int) -> bytes:
    """A row of random numbers, turned a little further for each output: four million draws would take seconds."""
    draw = random.Random(seed)
    row = array.array("f", (draw.gauss(0, SPREAD) for _ in range(2 * MODEL_DIM)))
    rows = array.array("f")
    for _ in range(MODEL_DIM):
        start = draw.randrange(MODEL_DIM)
        rows.extend(row[start:start + MODEL_DIM])
    return rows.tobytes()
