"""The rows that peers are compared on, their inputs, and the answer in f64.

A row names one of the kernels' bench (../attention_bench.cc, ../threads_bench.cc) and repeats its shape. Inputs are drawn
as there: N(0, 1), a keep mask that hides an eighth.
"""
from typing import NamedTuple, Optional

import numpy as np

SEED = 20240229


class Row(NamedTuple):
    name: str                 # as the bench has it, after BM_Fused_ or, with two threads, BM_Threads2_
    bar: float = 1.25         # how many times as long the better peer has to take
    threads: int = 1
    dtype: str = "f32"        # f32, bf16 or f16
    batch: int = 1
    heads: int = 8
    kv_heads: int = 8
    q_len: int = 2048
    kv_len: int = 2048
    head_dim: int = 64
    causal: bool = False
    bias: bool = False        # additive, one per head
    keep: bool = False        # a mask per head
    query_gain: float = 1     # spreads the logits


ROWS = [
    Row("F32_2048_HeadDim64"),
    Row("F32_2048_HeadDim128", head_dim=128),
    Row("F32_2048_HeadDim64_Causal", causal=True),
    Row("F32_2048_HeadDim64_Bias", bias=True),
    Row("F32_2048_HeadDim64_Keep", keep=True),
    Row("F32_128_HeadDim64_Batch8", batch=8, q_len=128, kv_len=128),
    Row("F32_16_HeadDim64_Batch64", batch=64, q_len=16, kv_len=16),
    # Ours is given [batch, tokens, heads, dim]; peers take what they like best.
    Row("F32_2048_HeadDim64_TokensHeads"),
    Row("F32_128_HeadDim64_Batch8_TokensHeads", batch=8, q_len=128, kv_len=128),
    Row("Bf16_2048_HeadDim64", dtype="bf16"),
    Row("F16_2048_HeadDim64", dtype="f16"),
    Row("F32_2048_HeadDim64_Spread", query_gain=100),
    Row("Decode_F32_65536", q_len=1, kv_len=65536),
    Row("Decode_Bf16_65536", dtype="bf16", q_len=1, kv_len=65536),
    Row("Decode_F32_65536_Heads32Over8", heads=32, q_len=1, kv_len=65536),
    Row("F32_2048_HeadDim64", threads=2),
    Row("F32_128_HeadDim64_Batch8", threads=2, batch=8, q_len=128, kv_len=128),
]

# How far from the f64 answer a peer may be: the bench's own allowance for what it times (AttentionWorkload::IsRight).
TOLERANCE = {"f32": 1e-3, "bf16": 3e-2, "f16": 3e-2}


class Inputs(NamedTuple):
    """Arrays of f32 whose values are already rounded to the row's type."""
    query: np.ndarray            # [batch, heads, q_len, head_dim]
    key: np.ndarray              # [batch, kv_heads, kv_len, head_dim]
    value: np.ndarray            # [batch, kv_heads, kv_len, head_dim]
    bias: Optional[np.ndarray]   # [batch, heads, q_len, kv_len]
    keep: Optional[np.ndarray]   # the same shape, bool: what is visible


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    """`values`, f32, each replaced by the nearest number of the type; ties to even."""
    if dtype == "f16":
        return values.astype(np.float16).astype(np.float32)
    if dtype == "bf16":
        return from_bf16_bits(bf16_bits(values))
    return values


def bf16_bits(values: np.ndarray) -> np.ndarray:
    """The upper halves of finite f32 numbers after rounding to nearest, ties to even."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16_bits(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy that begins at a multiple of 64 bytes, as every framework's own memory does; numpy's own is off by 16."""
    room = np.empty(array.nbytes + 64, np.uint8)
    begin = -room.ctypes.data % 64
    copy = room[begin:begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def draw(row: Row) -> Inputs:
    random = np.random.default_rng(SEED)

    def normal(*shape: int) -> np.ndarray:
        return random.standard_normal(shape, np.float32)

    keys = (row.batch, row.kv_heads, row.kv_len, row.head_dim)
    scores = (row.batch, row.heads, row.q_len, row.kv_len)
    return Inputs(
        query=rounded(row.query_gain * normal(row.batch, row.heads, row.q_len, row.head_dim), row.dtype),
        key=rounded(normal(*keys), row.dtype),
        value=rounded(normal(*keys), row.dtype),
        bias=normal(*scores) if row.bias else None,
        keep=random.integers(8, size=scores, dtype=np.uint8) != 0 if row.keep else None)


def grouped_as_queries(array: np.ndarray, kv_heads: int) -> np.ndarray:
    """[batch, heads, 1, dim] to [batch, kv_heads, heads / kv_heads, dim]: the queries that share keys as queries of one
    head. The same attention without repeated keys, when nothing is masked. A view."""
    return array.reshape(array.shape[0], kv_heads, -1, array.shape[3])


def expected(row: Row, inputs: Inputs) -> np.ndarray:
    """softmax(query key^T / sqrt(head_dim) + bias) value over what is visible, in f64.
    [batch, heads, q_len, head_dim]."""
    output = np.empty(inputs.query.shape)
    hidden = np.triu(np.ones((row.q_len, row.kv_len), bool), k=row.kv_len - row.q_len + 1) if row.causal else None
    for batch in range(row.batch):
        for head in range(row.heads):
            kv_head = head * row.kv_heads // row.heads
            scores = inputs.query[batch, head].astype(float) @ inputs.key[batch, kv_head].astype(float).T
            scores /= row.head_dim ** 0.5
            if inputs.bias is not None:
                scores += inputs.bias[batch, head]
            if inputs.keep is not None:
                scores[~inputs.keep[batch, head]] = -np.inf
            if hidden is not None:
                scores[hidden] = -np.inf
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            output[batch, head] = weights @ inputs.value[batch, kv_head].astype(float)
    return output
