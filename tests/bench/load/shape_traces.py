"""Traces of requests no two of which have the same shape."""

import json
from pathlib import Path
from typing import Iterator

HEAD_DIMS = (32, 48, 64, 80)
SHAPES_PER_TRACE = 500
TOKENS = 20                    # 1 to 20, beside 25 lengths of keys
LENGTHS = SHAPES_PER_TRACE // TOKENS
STRIDE = 40                    # between lengths of keys; the longest is LENGTHS * STRIDE


def write_shape_traces(folder: Path, offset: int) -> list[Path]:
    """Distinct shapes, SHAPES_PER_TRACE for each of HEAD_DIMS; other ones for each `offset` from 0 to STRIDE - 1."""
    paths = []
    for head_dim in HEAD_DIMS:
        paths.append(folder / f"shapes-{head_dim}-{offset}.trace")
        paths[-1].write_text("".join(line + "\n" for line in _lines(head_dim, offset)), encoding="ascii")
    return paths


def _lines(head_dim: int, offset: int) -> Iterator[str]:
    yield json.dumps({"triad_trace": 1, "workload": {"kind": "attend", "heads": 8, "kv_heads": 8,
                                                     "qk_head_dim": head_dim, "v_head_dim": head_dim}})
    for seed in range(SHAPES_PER_TRACE):
        tokens, length = seed % TOKENS + 1, seed // TOKENS + 1
        yield json.dumps({"due_ns": 0, "tokens": tokens, "kv_len": length * STRIDE - offset, "seed": seed})
