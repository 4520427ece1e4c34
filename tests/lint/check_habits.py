"""Habits of the house that no compiler knows. One line each: where, what must not stand there, why."""

import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Iterator

import source_tree

CPP = ["*.h", "*.cc"]
# (files, but not these, pattern, reason)
HABITS = [
    (CPP, [], r"\b(sleep_for|sleep_until|SleepFor|usleep|nanosleep|sleep)\s*\(", "wait on a condition, or move the fake clock"),
    (CPP, [], r"^\s*#\s*if\s+0\b", "delete instead of disabling"),
    (CPP, [], r"\bDISABLED_", "mend the test or delete it"),
    (CPP, [], r"\bTODO\b(?!\(\w+\))", "TODO(name): with a condition for its removal"),
    (CPP, [], r"^\s*using namespace (?!hwy)", "name what is used"),
    (["core/*", "server/*"], ["core/base/mutex.h"], r"\b(std::(recursive_|shared_|timed_)?mutex|absl::Mutex|std::condition_variable)\b",
     "core/base/mutex.h has the annotated ones"),
    (CPP, ["tests/support/temp_path.h"], r'\bTempDir\(\)[^;]*"/(?!\w*XXXXXX)', "TempPath is a process's own; tests run side by side"),
    (["core/*"], [], r"\bgetenv\s*\(", "configuration comes in as a struct"),
    (["server/*"], ["server/server_options*"], r"\b(getenv\s*\(|absl::GetFlag\b)",
     "only server_options reads flags and environment"),
    (["core/*", "server/*", "client/src/*"], [], r"\b(std::cout|std::cerr|\bprintf\s*\()", "log through the logger, or return a Status"),
    (["client/include/*"], [], r"\bstd::string_view\b", "absl::string_view differs from it on Debian 12"),
    (["*"], ["tests/lint/*"], r"(?<![\w.])(/work/|/tmp/w/|/root/|/home/\w)", "no path of one person's machine"),
]


NO_TEXT = ["tests/fuzz/corpus/*"]   # bytes are what these are for


def applies(name: str, wanted: list, spared: list) -> bool:
    return any(fnmatch(name, p) for p in wanted) and not any(fnmatch(name, p) for p in spared)


def check(root: Path) -> Iterator[str]:
    for path in source_tree.files(root):
        name = path.relative_to(root).as_posix()
        if b"\0" in path.read_bytes() and not applies(name, NO_TEXT, []):
            yield f"{name}: no text: what programs leave behind is none of the tree's"
        habits = [(re.compile(p), reason) for wanted, spared, p, reason in HABITS if applies(name, wanted, spared)]
        for number, line in enumerate(source_tree.text(path).splitlines(), start=1):
            for pattern, reason in habits:
                found = pattern.search(line)
                if found:
                    yield f"{name}:{number}: '{found.group(0).strip()}': {reason}"


if __name__ == "__main__":
    source_tree.main(check)
