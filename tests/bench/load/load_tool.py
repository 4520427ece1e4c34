"""`triad bench`, whose report for machines becomes a LoadReport."""

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from load.server_process import ENVIRONMENT


class LoadReport(NamedTuple):
    results_per_second: float
    goodput_per_second: float      # 0 without an objective
    p50_seconds: float             # from when a request was due
    p99_seconds: float
    codes: dict[str, int]          # answers by status code, OK among them
    right: int                     # of the answers that were checked
    wrong: int
    generator: str                 # "kept up", or why an open loop was not what its flags said


def report_of(level: dict[str, Any]) -> LoadReport:
    latency, check = level["latency"], level["check"]
    return LoadReport(
        results_per_second=level["results_per_second"],
        goodput_per_second=level.get("slo", {}).get("goodput_per_second", 0.0),
        p50_seconds=latency["p50_ns"] / 1e9,
        p99_seconds=latency["p99_ns"] / 1e9,
        codes={code: entry["count"] for code, entry in level.get("codes", {}).items()},
        right=check["right"],
        wrong=check["wrong"],
        generator=level["generator"])


class LoadTool:
    def __init__(self, binary: Path):
        self._binary = binary

    def run(self, target: str, *flags: str) -> LoadReport:
        """One level of load. A run that fell behind is reported all the same; RuntimeError when there is no report."""
        done = subprocess.run(self._command(target, flags), env=ENVIRONMENT, capture_output=True, text=True)
        try:
            report = json.loads(done.stdout)
        except ValueError:
            raise RuntimeError(f"triad bench {' '.join(flags)} ended with {done.returncode}:\n{done.stderr}") from None
        return report_of(report["levels"][0])

    def start(self, target: str, *flags: str) -> subprocess.Popen:
        """Load in the background; whoever starts it terminates it."""
        return subprocess.Popen(self._command(target, flags), env=ENVIRONMENT, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)

    def _command(self, target: str, flags: tuple[str, ...]) -> list[str]:
        return [str(self._binary), "bench", "--json", f"--target={target}", *flags]
