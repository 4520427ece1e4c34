"""Who may include what (the ladder of ARCHITECTURE.md), and one meaning for a name.

One rule per line; a file obeys every rule whose room it is in.
"""

import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Iterator

import source_tree

# Each may include what stands to its left.
LADDER = ["core/base", "core/tensor", "core/attention", "core/layer", "core/batching", "server"]

GRPC = ["grpc*/*", "grpc*.h"]
PROTOBUF = ["google/protobuf/*", "*.pb.h"]
PROMETHEUS = ["prometheus/*"]
CIVETWEB = ["CivetServer.h", "civetweb.h"]
ONEDNN = ["dnnl*", "oneapi/dnnl/*"]
HIGHWAY = ["hwy/*"]
CLI = ["CLI/*"]
TESTS = ["gtest/*", "gmock/*", "benchmark/*", "tests/*"]

# (files, what they must not include, why)
FORBIDDEN = [
    ("core/*", GRPC + PROTOBUF + PROMETHEUS + CIVETWEB + ["client/*", "triad/*"], "core knows no wire and no metrics"),
    ("core/*", TESTS, "production code knows no tests"),
    ("server/*", TESTS + ["client/*"], "the server knows neither its tests nor its client"),
    ("client/src/*", ["core/*", "server/*"] + TESTS, "the client library stands alone"),
    ("client/include/*", ["core/*", "server/*", "client/*"] + TESTS, "the client library stands alone"),
    ("client/include/*", GRPC + PROTOBUF, "users of the client compile without gRPC and protobuf"),
    ("client/tools/*", ["server/*", "core/attention/*", "core/layer/*", "core/batching/*"] + TESTS,
     "a tool may use core/base and core/tensor"),
    ("client/tools/*", GRPC, "tools speak through the client library"),
]

# (the one file, what it may include although its room must not)
EXCEPTIONS = [
    # Reads layer.textproto; a target of its own, so that core builds without protobuf.
    ("core/layer/layer_spec_text.cc", ["google/protobuf/*", "triad/v1/layer_spec.pb.h"]),
]

# (what, the only files that may include it)
ONLY_IN = [
    (ONEDNN, ["core/attention/onednn_matmul.*", "tests/bench/*"]),
    (HIGHWAY, ["core/attention/*-inl.h", "core/attention/pack_tile.cc", "core/attention/score_modifiers.cc",
               "core/attention/score_tile.cc", "core/attention/store_output.cc", "core/attention/lane_product.cc",
               "core/attention/lane_modifiers.cc",
               "core/attention/lane_softmax.cc", "core/attention/row_key_product.cc", "core/attention/row_softmax.cc",
               "core/attention/row_value_product.cc", "tests/bench/*"]),
    (PROMETHEUS, ["server/metrics*", "server/server.cc", "tests/*"]),
    (CIVETWEB, ["server/http*", "tests/*"]),
    (CLI, ["client/tools/*", "client/quickstart/*", "tests/*"]),
]

TYPE = re.compile(r"^(?:struct|class|enum class|enum) (?:ABSL_\w+ )?(\w+)[^;]*\{", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def matches(name: str, patterns: list) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def broken_rule(name: str, included: str) -> str:
    """Why file `name` must not include `included`; empty when it may."""
    rung = next((i for i, room in enumerate(LADDER) if name.startswith(room + "/")), None)
    target = next((i for i, room in enumerate(LADDER) if included.startswith(room + "/")), None)
    if rung is not None and target is not None and target > rung:
        return f"{LADDER[rung]} stands below {LADDER[target]}"
    for room, forbidden, reason in FORBIDDEN:
        is_exception = any(name == one and matches(included, allowed) for one, allowed in EXCEPTIONS)
        if fnmatch(name, room) and matches(included, forbidden) and not is_exception:
            return reason
    for what, allowed in ONLY_IN:
        if matches(included, what) and not matches(name, allowed):
            return "only " + ", ".join(allowed) + " may"
    if included.startswith(("./", "../")):
        return "paths start at the root of the repository"
    return ""


def double_names(root: Path) -> Iterator[str]:
    """core and server share a namespace: two types of one name would be mixed up by the linker, without a word."""
    seen = {}
    for path in source_tree.files(root, ".h"):
        name = path.relative_to(root).as_posix()
        if not name.startswith(("core/", "server/")):
            continue
        for kind in TYPE.findall(source_tree.text(path)):
            if kind in seen:
                yield f"{name}:1: {kind} is a type in {seen[kind]} already"
            seen[kind] = name


def check(root: Path) -> Iterator[str]:
    yield from double_names(root)
    for path in source_tree.files(root, *source_tree.CPP_SUFFIXES):
        name = path.relative_to(root).as_posix()
        lines = source_tree.text(path).splitlines()
        for number, line in enumerate(lines, start=1):
            include = INCLUDE.match(line)
            reason = broken_rule(name, include.group(1)) if include else ""
            if reason:
                yield f"{name}:{number}: includes {include.group(1)}, but {reason}"
        if name.endswith(".h") and "#pragma once" not in lines and "-inl.h" not in name:
            yield f"{name}:1: a header begins with #pragma once"


if __name__ == "__main__":
    source_tree.main(check)
