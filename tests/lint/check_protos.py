"""Every rpc, field and enum value of the wire contract says what it means; every file of ours names the
package that Go needs."""

import re
from pathlib import Path
from typing import Iterator

import source_tree

ELEMENT = re.compile(
    r"^\s*(?:rpc\s+(?P<rpc>\w+)\s*\(|(?:(?:optional|repeated)\s+)?[\w.<>, ]+?\s+(?P<field>\w+)\s*=\s*\d+|(?P<value>[A-Z]\w+)\s*=\s*\d+)")


def check(root: Path) -> Iterator[str]:
    for path in source_tree.files(root / "proto", ".proto"):
        name = path.relative_to(root).as_posix()
        before = ""
        text = source_tree.text(path)
        if "\npackage triad." in text and "\noption go_package = " not in text:
            yield f"{name}:1: no go_package; protoc-gen-go refuses such a file"
        for number, line in enumerate(source_tree.text(path).splitlines(), start=1):
            element = ELEMENT.match(line)
            if element and not before.lstrip().startswith("//") and "//" not in line:
                yield f"{name}:{number}: {element.group('rpc') or element.group('field') or element.group('value')} has no comment"
            before = line


if __name__ == "__main__":
    source_tree.main(check)
