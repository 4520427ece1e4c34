"""PyTorch's scaled_dot_product_attention: every way it has to compute a row."""
import itertools
from functools import partial
from typing import Callable, Iterator, Optional

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from workload import Inputs, Row, grouped_as_queries

NAME = "torch"
VERSION = torch.__version__
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "math": SDPBackend.MATH}


def to_tensor(array: np.ndarray, dtype: str) -> torch.Tensor:
    """In memory of torch's own."""
    return torch.from_numpy(array).to(DTYPES[dtype], copy=True)


def masks(inputs: Inputs) -> dict[str, Optional[torch.Tensor]]:
    if inputs.bias is not None:
        return {"": to_tensor(inputs.bias, "f32")}
    if inputs.keep is not None:
        keep = torch.from_numpy(inputs.keep).clone()
        return {", bool mask": keep, ", additive mask": torch.zeros(keep.shape).masked_fill(~keep, -torch.inf)}
    return {"": None}


def queries(row: Row, inputs: Inputs) -> dict[str, np.ndarray]:
    """The query, and for grouped heads also what spares repeating the keys."""
    if row.heads == row.kv_heads:
        return {"": inputs.query}
    return {", enable_gqa": inputs.query, ", groups as queries": grouped_as_queries(inputs.query, row.kv_heads)}


def ways(row: Row, inputs: Inputs) -> Iterator[tuple[str, Callable[[], Callable[[], object]]]]:
    """Each way's name and what prepares it. Preparing gives the call to time, which returns the output."""
    torch.set_num_threads(row.threads)
    # On a CPU that does not multiply 16-bit types, computing in f32 between two casts may be the fastest.
    compute_types = {"": DTYPES[row.dtype]} | ({} if row.dtype == "f32" else {", cast to f32": torch.float32})
    key, value = (to_tensor(array, row.dtype) for array in (inputs.key, inputs.value))
    for (backend, kernel), (form, query), (kind, mask), (cast, compute) in itertools.product(
            BACKENDS.items(), queries(row, inputs).items(), masks(inputs).items(), compute_types.items()):
        tensors = [to_tensor(query, row.dtype), key, value]
        arguments = {"attn_mask": mask, "is_causal": row.causal, "enable_gqa": "gqa" in form}
        yield backend + form + kind + cast, partial(caller, kernel, tensors, compute, arguments)


def caller(kernel: SDPBackend, tensors: list[torch.Tensor], compute: torch.dtype,
           arguments: dict[str, object]) -> Callable[[], torch.Tensor]:
    def call() -> torch.Tensor:
        with torch.inference_mode(), sdpa_kernel(kernel):
            output = scaled_dot_product_attention(*(tensor.to(compute) for tensor in tensors), **arguments)
            return output.to(tensors[0].dtype)
    return call


def to_array(row: Row, output: torch.Tensor) -> np.ndarray:
    """[batch, heads, q_len, head_dim], whatever way computed it."""
    return output.float().numpy().reshape(row.batch, row.heads, row.q_len, row.head_dim)
