"""Every C++ file is formatted as .clang-format says. Arguments: the tree, the formatter."""

import subprocess
import sys
from pathlib import Path
from typing import Iterator

import source_tree


def check(root: Path) -> Iterator[str]:
    sources = [str(path) for path in source_tree.files(root, *source_tree.CPP_SUFFIXES)]
    run = subprocess.run([sys.argv[2], "--dry-run", "-Werror", *sources], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        yield from (line for line in run.stderr.splitlines() if ": error:" in line)
        yield f"mend with: {Path(sys.argv[2]).name} -i FILE"


if __name__ == "__main__":
    source_tree.main(check)
