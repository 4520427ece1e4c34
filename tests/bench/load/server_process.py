"""A triad-server of one's own: started, asked for its counters, stopped."""

import os
import re
import subprocess
import threading
import urllib.request
from pathlib import Path
from typing import Optional

# No TRIAD_* of the caller's reaches the programs under test: they would be flags.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("TRIAD_")}
PAGES = re.compile(r"listening on (http://127\.0\.0\.1:[1-9]\d*)")


class ServerProcess:
    """Serves on unix:<folder>/<name>.sock from construction on, until the end of the `with` block."""

    def __init__(self, binary: Path, folder: Path, name: str, flags: list[str]):
        self.target = f"unix:{folder / name}.sock"
        self._process = subprocess.Popen([binary, f"--listen={self.target}", "--http_listen=127.0.0.1:0", *flags],
                                         stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self._pages = self._await_pages()
        # A full pipe would stop the server.
        threading.Thread(target=self._process.stderr.read, daemon=True).start()

    def __enter__(self) -> "ServerProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(timeout=60)

    def counter(self, name: str, labels: str = "") -> float:
        """Sum of the samples of `name` whose labels contain `labels`, such as reason="bytes"; now."""
        with urllib.request.urlopen(f"{self._pages}/metrics", timeout=30) as page:
            text = page.read().decode()
        samples = re.findall(rf"^{name}(?:{{(.*)}})? (\S+)$", text, re.MULTILINE)
        return sum(float(value) for of_sample, value in samples if labels in of_sample)

    def resident_bytes(self) -> int:
        return self._status("VmRSS") * 1024

    def threads(self) -> int:
        return self._status("Threads")

    def _status(self, field: str) -> int:
        text = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        return int(re.search(rf"^{field}:\s+(\d+)", text, re.MULTILINE).group(1))

    def _await_pages(self) -> str:
        """Reads the log up to the last line that says where it listens; the gRPC address comes last."""
        seen: list[str] = []
        pages: Optional[str] = None
        for line in self._process.stderr:
            seen.append(line)
            found = PAGES.search(line)
            pages = found.group(1) if found else pages
            if f"listening on {self.target}" in line and pages:
                return pages
        raise RuntimeError("the server ended without listening:\n" + "".join(seen))


class ResidentSamples(threading.Thread):
    """Samples a server's RSS every 0.2 s, from the beginning of a `with` block to its end."""

    def __init__(self, server: ServerProcess):
        super().__init__(daemon=True)
        self._server = server
        self._ended = threading.Event()
        self.bytes: list[int] = []

    def run(self) -> None:
        while not self._ended.wait(0.2):
            self.bytes.append(self._server.resident_bytes())

    def __enter__(self) -> "ResidentSamples":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()

    def growth(self) -> float:
        """The highest of the last third over the highest of the first; the first also holds the way up."""
        third = max(1, len(self.bytes) // 3)
        return max(self.bytes[-third:]) / max(self.bytes[:third])
