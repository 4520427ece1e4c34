"""The documents agree with the tree: links resolve, and the tables of README.md and deploy/README.md name what exists."""

import re
from pathlib import Path
from typing import Iterator

import source_tree

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`]+)`")
FLAG = re.compile(r"^ABSL_FLAG\([^,]+,\s*(\w+)", re.MULTILINE)
METRIC = re.compile(r'"((?:triad|process)_[a-z0-9_]+)"')
IN_TREE = ("core/", "server/", "client/", "proto/", "tests/", "scripts/")


def anchors(markdown: str) -> set:
    """The anchors that a forge gives to the headings of a page."""
    headings = re.findall(r"^#+\s+(.*)$", markdown, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken_links(root: Path) -> Iterator[str]:
    for page in source_tree.files(root, ".md"):
        prose = re.sub(r"^```.*?^```", "", source_tree.text(page), flags=re.MULTILINE | re.DOTALL)
        for link in LINK.findall(prose):
            if re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = link.partition("#")
            file = page if not target else page.parent / target
            if not file.exists():
                yield f"{page.relative_to(root)}: the link {link} leads nowhere"
            elif anchor and file.suffix == ".md" and anchor not in anchors(source_tree.text(file)):
                yield f"{page.relative_to(root)}: no heading for the link {link}"


def table_below(markdown: str, heading: str) -> list:
    """Rows of the first table below a heading, header and rule left out; each a list of cells."""
    section = markdown.partition(heading)[2]
    rows = [line for line in re.split(r"^#", section, flags=re.MULTILINE)[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def request_table(root: Path) -> Iterator[str]:
    """Each row of "Follow one request" names one or more files, and functions that stand in one of them."""
    readme = root / "README.md"
    rows = table_below(source_tree.text(readme), "Follow one request") if readme.exists() else []
    if not rows:
        yield 'README.md: no table below "Follow one request"'
    for row in rows:
        names = [root / name for name in CODE.findall(row[1])]
        missing = [name for name in names if not name.is_file()]
        if missing or not names:
            yield f"README.md, step {row[0]}: no such file in '{row[1]}'"
            continue
        code = "\n".join(source_tree.text(name) for name in names)
        for function in CODE.findall(row[2]):
            if not re.search(r"\b%s\b" % re.escape(re.split(r"::|\.", function)[-1].rstrip("()")), code):
                yield f"README.md, step {row[0]}: no {function} in {row[1]}"


def named_paths(root: Path) -> Iterator[str]:
    """Paths in code spans exist."""
    for page in source_tree.files(root, ".md"):
        for span in CODE.findall(source_tree.text(page)):
            if span.startswith(IN_TREE) and re.fullmatch(r"[\w./-]+", span) and not (root / span).exists():
                yield f"{page.relative_to(root)}: `{span}` does not exist"


def listed(root: Path, what: str, sources: str, name: re.Pattern, heading: str) -> Iterator[str]:
    """deploy/README.md lists below `heading` exactly the names that the server's sources define."""
    defined = {n for path in sorted(root.glob(sources)) for n in name.findall(source_tree.text(path))}
    page = root / "deploy" / "README.md"
    rows = table_below(source_tree.text(page), heading) if page.exists() else []
    told = {span.lstrip("-").partition("{")[0].partition("=")[0] for row in rows for span in CODE.findall(row[0])}
    for missing in sorted(defined - told):
        yield f"deploy/README.md: {what} {missing} is not listed below '{heading}'"
    for unknown in sorted(told - defined):
        yield f"deploy/README.md: the server has no {what} {unknown}"


def check(root: Path) -> Iterator[str]:
    yield from broken_links(root)
    yield from named_paths(root)
    yield from request_table(root)
    yield from listed(root, "flag", "server/*.cc", FLAG, "## Flags")
    yield from listed(root, "metric", "server/metrics*.cc", METRIC, "## Metrics")


if __name__ == "__main__":
    source_tree.main(check)
