#!/usr/bin/env python3
"""Runs `triad bench` against Triad and against the server one would write without it, by turns; prints the ratios.

  python3 -m venv VENV && VENV/bin/pip install -r tests/bench/peers/requirements.txt
  VENV/bin/python tests/bench/peers/compare_servers.py build/release/server/triad-server build/release/client/tools/triad

The other server is python_server.py, with PyTorch on one thread and on two: the better one counts. All take unary
Attends in f32, 8 heads of 64, 16 in flight, over unix sockets. Triad's answers are checked by the tool, the other's
by itself. Each round is bracketed by a probe of the cores (load/cores_probe.py).
"""
import argparse
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Callable, NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1]))
from load.cores_probe import CoresProbe  # noqa: E402
from load.load_tool import LoadTool  # noqa: E402
from load.server_process import ServerProcess  # noqa: E402

BARS = {16: None, 128: None, 512: 5.0, 1024: None}  # tokens: how many times as many calls/s
TORCH_THREADS = [1, 2]


class PythonServer:
    """Listens from construction on, until the end of the `with` block."""

    def __init__(self, folder: Path, torch_threads: int):
        self.target = f"unix:{folder}/python{torch_threads}.sock"
        program = Path(__file__).with_name("python_server.py")
        self._process = subprocess.Popen(
            [sys.executable, str(program), self.target, f"--torch-threads={torch_threads}"], stdout=subprocess.PIPE,
            text=True)
        if not self._process.stdout.readline().startswith("listening"):
            raise RuntimeError("the Python server ended without listening")

    def __enter__(self) -> "PythonServer":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(timeout=60)


class Side(NamedTuple):
    name: str
    calls_per_second: Callable[[int], float]  # at so many tokens


def side(name: str, tool: LoadTool, target: str, seconds: float, check: int) -> Side:
    def calls_per_second(tokens: int) -> float:
        report = tool.run(target, f"--tokens={tokens}", "--concurrency=16", f"--duration={seconds}s", "--warmup=300ms",
                          f"--check={check}")
        if report.wrong > 0 or set(report.codes) != {"OK"}:
            raise RuntimeError(f"{name}, {tokens} tokens: {report.wrong} wrong answers, {report.codes}")
        return report.results_per_second
    return Side(name, calls_per_second)


def print_row(tokens: int, sides: list[Side], probe: CoresProbe, rounds: int) -> None:
    measured = [probe.bracket(lambda: [one.calls_per_second(tokens) for one in sides]) for _ in range(rounds)]
    ours, *others = zip(*(one.value for one in measured))
    better = max(others, key=statistics.median)
    ratio = statistics.median(a / b for a, b in zip(ours, better))
    bar = BARS[tokens]
    verdict = "" if bar is None else f">= {bar:.0f}  {'pass' if ratio >= bar else 'short'}"
    figures = "  ".join(f"{statistics.median(figure):8.1f}" for figure in (ours, *others))
    print(f"{tokens:6}  {figures}  {ratio:6.1f}  {min(one.cores for one in measured):5.2f}  {verdict}".rstrip(),
          flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", type=Path, help="triad-server")
    parser.add_argument("tool", type=Path, help="triad")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each (default: 3)")
    parser.add_argument("--seconds", type=float, default=2, help="a turn's length (default: 2)")
    arguments = parser.parse_args()
    tool = LoadTool(arguments.tool)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        probe = stack.enter_context(CoresProbe(attempts=4))
        triad = stack.enter_context(ServerProcess(arguments.server, folder, "triad", []))
        sides = [side("triad", tool, triad.target, arguments.seconds, check=4)]
        for threads in TORCH_THREADS:
            python = stack.enter_context(PythonServer(folder, threads))
            sides.append(side(f"Python, {threads}", tool, python.target, arguments.seconds, check=0))
        print(f"{platform.machine()}, {time.strftime('%Y-%m-%d')}, medians of {arguments.rounds} rounds, calls/s\n"
              + "tokens  " + "  ".join(f"{one.name:>9}" for one in sides) + "   ratio  cores  bar")
        for tokens in BARS:
            print_row(tokens, sides, probe, arguments.rounds)


if __name__ == "__main__":
    main()
