"""A file is one room, a function one idea: limits on lines and parameters."""

import re
from pathlib import Path
from typing import Iterator, NamedTuple

import source_tree

MAX_LINES = {".h": 200, "-inl.h": 400, ".cc": 400, ".py": 400}   # -inl.h: code that is a header only to the compiler
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 6

NOT_A_FUNCTION = re.compile(r"\s*((if|for|while|switch|else|do|catch|namespace|class|struct|enum|union|return)\b|}|//)")
NOT_CODE = re.compile(r'"(\\.|[^"\\])*"|//.*')
INITIALISER = re.compile(r"\s+(: )?\w+[({]")
OPENS_BODY = re.compile(r"\)[^;={}]*\{$")


class Function(NamedTuple):
    line: int         # of its first line, from 1
    length: int       # lines, signature and closing brace included
    parameters: int


def count_parameters(signature: str) -> int:
    """Parameters in the last outermost parentheses before the body or the initialiser list."""
    begin = signature.find("(")
    depth, angle, commas = 0, 0, 0
    for position in range(begin, len(signature)):
        c = signature[position]
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth == 0:
                return commas + 1 if signature[begin + 1 : position].strip() else 0
        elif c == "<":
            angle += 1
        elif c == ">":
            angle = max(0, angle - 1)
        elif c == "," and depth == 1 and angle == 0:
            commas += 1
    return 0


def first_line(lines: list, last: int) -> int:
    """Where the signature begins that ends at line `last`, initialiser list included."""
    first, open_parens = last, lines[last].count(")") - lines[last].count("(")
    while first > 0:
        is_initialiser = INITIALISER.match(lines[first]) and lines[first - 1].endswith((",", ")"))
        if open_parens <= 0 and not is_initialiser:
            break
        first -= 1
        open_parens += lines[first].count(")") - lines[first].count("(")
    return first


def functions(lines: list) -> Iterator[Function]:
    """Function bodies of formatted code: a signature that opens a brace, up to the brace that closes at its indentation."""
    lines = [NOT_CODE.sub("", line).rstrip() for line in lines]
    for end_of_signature, line in enumerate(lines):
        if not OPENS_BODY.search(line):
            continue
        first = first_line(lines, end_of_signature)
        if NOT_A_FUNCTION.match(lines[first]):
            continue
        indent = len(lines[first]) - len(lines[first].lstrip())
        closing = re.compile(r" {%d}}" % indent)
        last = next((i for i in range(end_of_signature + 1, len(lines)) if closing.match(lines[i])), end_of_signature)
        signature = " ".join(lines[first : end_of_signature + 1])
        yield Function(first + 1, last - first + 1, count_parameters(signature))


def check(root: Path) -> Iterator[str]:
    for path in source_tree.files(root, *MAX_LINES):
        name = path.relative_to(root).as_posix()
        lines = source_tree.text(path).splitlines()
        limit = next(MAX_LINES[suffix] for suffix in sorted(MAX_LINES) if name.endswith(suffix))
        if len(lines) > limit:
            yield f"{name}:{limit + 1}: {len(lines)} lines, of at most {limit}: there is a second idea in it"
        if path.suffix not in source_tree.CPP_SUFFIXES:
            continue
        for function in functions(lines):
            if function.length > MAX_FUNCTION_LINES:
                yield f"{name}:{function.line}: a function of {function.length} lines, of at most {MAX_FUNCTION_LINES}"
            if function.parameters > MAX_PARAMETERS:
                yield f"{name}:{function.line}: {function.parameters} parameters, of at most {MAX_PARAMETERS}: make a struct"


if __name__ == "__main__":
    source_tree.main(check)
