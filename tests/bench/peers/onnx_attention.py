"""ONNX Runtime's attention operators on its CPU provider: every way they have to compute a row."""
from functools import partial
from typing import Callable, Iterator, NamedTuple, Optional

import numpy as np
import onnxruntime
from onnx import TensorProto, helper
from onnxruntime import InferenceSession, OrtValue, SessionOptions

from workload import Inputs, Row, aligned, bf16_bits, from_bf16_bits, grouped_as_queries

NAME = "onnxruntime"
VERSION = onnxruntime.__version__
CONTRIB = "com.microsoft"
DTYPES = {"f32": TensorProto.FLOAT, "bf16": TensorProto.BFLOAT16, "f16": TensorProto.FLOAT16}
HIDDEN = np.finfo(np.float32).min   # MultiHeadAttention takes no mask per head: what is hidden gets this bias
IR_VERSION, OPSET = 10, 23          # 23 is the first with Attention


class Operator(NamedTuple):
    name: str
    domain: str
    attributes: dict[str, int]
    places: tuple[str, ...]           # which array each input of the operator is; "" for none
    arrays: dict[str, np.ndarray]     # f32 ones are of the row's type
    shared: dict[str, str] = {}       # output to the input whose buffer it continues


def tokens_first(array: np.ndarray) -> np.ndarray:
    """[batch, heads, tokens, dim] to [batch, tokens, heads * dim]."""
    batch, heads, tokens, dim = array.shape
    return np.ascontiguousarray(array.transpose(0, 2, 1, 3)).reshape(batch, tokens, heads * dim)


def operators(row: Row, inputs: Inputs) -> Iterator[tuple[str, Operator]]:
    query, key, value = inputs[:3]
    heads, grouped = row.heads, row.heads != row.kv_heads
    if grouped:
        query, heads = grouped_as_queries(query, row.kv_heads), row.kv_heads
    bias = np.where(inputs.keep, np.float32(0), HIDDEN) if inputs.keep is not None else inputs.bias
    attributes = {"num_heads": heads, "unidirectional": int(row.causal)}
    places = ("query", "key", "value", "", "", "mask") if bias is not None else ("query", "key", "value")
    flat = {"query": tokens_first(query), "key": tokens_first(key), "value": tokens_first(value)}
    for form, arrays in {"": flat, ", keys as heads": flat | {"key": key, "value": value}}.items():
        arrays = with_mask(arrays, bias)
        yield "MultiHeadAttention" + form, Operator("MultiHeadAttention", CONTRIB, attributes, places, arrays)
    mask = inputs.bias if inputs.keep is None else inputs.keep
    places = ("query", "key", "value", "mask") if mask is not None else ("query", "key", "value")
    arrays = {"query": inputs.query, "key": key, "value": value}
    yield "Attention", Operator("Attention", "", {"is_causal": int(row.causal)}, places, with_mask(arrays, mask))
    if row.q_len == 1:
        yield "GroupQueryAttention", appending(row, inputs)


def with_mask(arrays: dict[str, np.ndarray], mask: Optional[np.ndarray]) -> dict[str, np.ndarray]:
    return arrays if mask is None else arrays | {"mask": mask}


def appending(row: Row, inputs: Inputs) -> Operator:
    """GroupQueryAttention as a decoder uses it: the last key and value are appended in place to those before."""
    arrays = {"query": tokens_first(inputs.query), "key": tokens_first(inputs.key[:, :, -1:]),
              "value": tokens_first(inputs.value[:, :, -1:]), "past_key": inputs.key, "past_value": inputs.value,
              "last": np.full(row.batch, row.kv_len - 1, np.int32), "count": np.array(row.kv_len, np.int32)}
    attributes = {"num_heads": row.heads, "kv_num_heads": row.kv_heads}
    return Operator("GroupQueryAttention", CONTRIB, attributes, tuple(arrays), arrays,
                    shared={"present_key": "past_key", "present_value": "past_value"})


def element_type(array: np.ndarray, dtype: str) -> int:
    if array.dtype == np.float32:
        return DTYPES[dtype]
    return TensorProto.INT32 if array.dtype == np.int32 else TensorProto.BOOL


def model(operator: Operator, dtype: str, cast: bool) -> bytes:
    """One node; with `cast`, computing in f32 between casts from and to the type."""
    named = operator.arrays
    given = [helper.make_tensor_value_info(n, element_type(a, dtype), a.shape) for n, a in named.items()]
    results = [helper.make_tensor_value_info("output", DTYPES[dtype], None)]
    results += [helper.make_tensor_value_info(o, DTYPES[dtype], named[i].shape) for o, i in operator.shared.items()]
    before = [helper.make_node("Cast", [n], [n + "_f32"], to=TensorProto.FLOAT)
              for n, a in named.items() if cast and a.dtype == np.float32]
    computed = ["output_f32" if cast else "output", *operator.shared]
    after = [helper.make_node("Cast", ["output_f32"], ["output"], to=DTYPES[dtype])] if cast else []
    renamed = {node.input[0]: node.output[0] for node in before}
    node = helper.make_node(operator.name, [renamed.get(n, n) for n in operator.places], computed,
                            domain=operator.domain, **operator.attributes)
    graph = helper.make_graph([*before, node, *after], "attention", given, results)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
    return helper.make_model(graph, ir_version=IR_VERSION, opset_imports=opsets).SerializeToString()


def in_type(array: np.ndarray, dtype: str) -> np.ndarray:
    """f32 as the type; bf16, which numpy lacks, as its bits."""
    if array.dtype != np.float32 or dtype == "f32":
        return array
    return bf16_bits(array) if dtype == "bf16" else array.astype(np.float16)


def to_value(array: np.ndarray, dtype: str) -> OrtValue:
    """A copy, or, when its bits are bf16's, the array itself."""
    if array.dtype == np.uint16:
        return OrtValue.ortvalue_from_numpy_with_onnx_type(array, DTYPES[dtype])
    return OrtValue.ortvalue_from_numpy(array)


def prepare(row: Row, operator: Operator, cast: bool) -> Callable[[], object]:
    options = SessionOptions()
    options.intra_op_num_threads = row.threads
    options.log_severity_level = 4
    session = InferenceSession(model(operator, row.dtype, cast), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    arrays = {name: aligned(in_type(array, row.dtype)) for name, array in operator.arrays.items()}
    values = {name: to_value(array, row.dtype) for name, array in arrays.items()}
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    output = aligned(np.zeros_like(arrays["query"]))
    binding.bind_ortvalue_output("output", OrtValue.ortvalue_from_numpy_with_onnx_type(output, DTYPES[row.dtype]))
    for name, source in operator.shared.items():
        binding.bind_ortvalue_output(name, values[source])

    def call() -> np.ndarray:
        session.run_with_iobinding(binding)
        return output
    return call


def ways(row: Row, inputs: Inputs) -> Iterator[tuple[str, Callable[[], Callable[[], object]]]]:
    """Each way's name and what prepares it. Preparing gives the call to time, which returns the output."""
    for name, operator in operators(row, inputs):
        yield name, partial(prepare, row, operator, cast=False)
        if row.dtype != "f32" and not operator.shared:
            yield name + ", cast to f32", partial(prepare, row, operator, cast=True)


def to_array(row: Row, output: np.ndarray) -> np.ndarray:
    """[batch, heads, q_len, head_dim], whatever way computed it."""
    array = from_bf16_bits(output) if output.dtype == np.uint16 else output.astype(np.float32)
    if array.ndim == 4:
        return array
    heads_in_row = array.reshape(row.batch, array.shape[1], -1, row.head_dim).transpose(0, 2, 1, 3)
    return heads_in_row.reshape(row.batch, row.heads, row.q_len, row.head_dim)
