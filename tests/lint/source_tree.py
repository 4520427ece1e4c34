"""What every check here shares: the files of the tree, and how a finding is reported."""

import os
import sys
from pathlib import Path
from typing import Callable, Iterable, Iterator

SKIPPED_FOLDERS = {"build", "install", ".git", "__pycache__"}
CPP_SUFFIXES = (".h", ".cc")


def files(root: Path, *suffixes: str) -> Iterator[Path]:
    """Files below root whose name ends with one of the suffixes (all without any), in a fixed order."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        for name in sorted(names):
            if not suffixes or name.endswith(suffixes):
                yield Path(folder) / name


def text(path: Path) -> str:
    """Contents of a text file; empty for a binary one."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def main(check: Callable[[Path], Iterable[str]]) -> None:
    """Runs one check on the tree given on the command line; prints what it finds and exits 1 when there is anything."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    findings = list(check(root))
    for finding in findings:
        print(finding)
    print(f"{len(findings)} findings in {root.resolve().name}")
    sys.exit(1 if findings else 0)
