#!/usr/bin/env python3
"""Runs PyTorch's and ONNX Runtime's attention beside the kernels' bench, by turns; prints how much longer they take.

  python3 -m venv VENV && VENV/bin/pip install -r tests/bench/peers/requirements.txt
  VENV/bin/python tests/bench/peers/compare.py build/release/tests/bench/triad_bench_kernels

scripts/bench builds the binary. A peer that is not installed is named and left out. pip's torch for x86-64 brings
CUDA's libraries along, some 3 GB; a CPU build of the same version will do.

For each row, every way that a peer has (torch_sdpa.py, onnx_attention.py) is checked against numpy in f64 and tried.
Then rounds: ours, torch, ONNX Runtime, about a second each; ways of one peer that came out close share its turn, and the
one with the lowest median counts. A round's ratio is a peer's time over ours; the better peer is the one whose median
over the rounds is lower, and that median is held against the bar. "short" says that it misses it.

Times are per run, mean of a turn: with one thread the CPU's, with two the wall's; rounds in which the bench found no
second core are left out. Memory is kept and outputs are reused where a peer lets us, as in the bench.
"""
import argparse
import importlib
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from types import ModuleType
from typing import Callable, Iterator, NamedTuple, Optional

import numpy as np

from workload import ROWS, TOLERANCE, Inputs, Row, draw, expected

PEERS = ["torch_sdpa", "onnx_attention"]
TRIAL_SECONDS = 0.3
CLOSE = 1.2   # what a trial of that length can be wrong by beside busy neighbours
# Older OpenBLAS builds are steered by these; torch and numpy may contain a current one, which picks better itself.
STEERING = ["OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"]
# glibc keeps what is freed: fresh pages cost several times a copy, and ours are reused too.
# numpy asks for huge pages: ours come on them too.
MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
          "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


class Way(NamedTuple):
    peer: str
    name: str
    call: Callable[[], object]
    seconds: float


class Round(NamedTuple):
    ours: float            # seconds a run
    peers: list[float]     # the same, in the order of the ways


def restart_with_clean_environment() -> None:
    """Libraries read these when they are loaded, so the process starts anew where they are not as wanted."""
    wanted = {name: value for name, value in os.environ.items() if name not in STEERING} | MEMORY
    if wanted != dict(os.environ):
        os.execve(sys.executable, [sys.executable, *sys.argv], wanted)


def installed_peers() -> Iterator[ModuleType]:
    for name in PEERS:
        try:
            peer = importlib.import_module(name)
        except ImportError as error:
            print(f"left out: {name}: {error}")
            continue
        print(f"{peer.NAME} {peer.VERSION}")
        yield peer


def seconds_per_run(call: Callable[[], object], row: Row, seconds: float) -> float:
    """The mean over about `seconds`, after one run that is not counted."""
    clock = time.process_time if row.threads == 1 else time.perf_counter
    call()
    runs, begin = 0, clock()
    while True:
        call()
        runs += 1
        elapsed = clock() - begin
        if elapsed >= seconds:
            return elapsed / runs


def right_ways(peer: ModuleType, row: Row, inputs: Inputs, answer: np.ndarray) -> Iterator[Way]:
    """The ways that give the right answer. Says why the others are none."""
    for name, prepare in peer.ways(row, inputs):
        try:
            call = prepare()
            worst = float(np.abs(peer.to_array(row, call()) - answer).max())
        except Exception as error:  # each peer has its own kinds, some derived from Exception alone
            reason = str(error).strip() or type(error).__name__
            print(f"  {peer.NAME}: {name}: cannot: {reason.splitlines()[0][:160]}")
            continue
        if not worst <= TOLERANCE[row.dtype]:
            print(f"  {peer.NAME}: {name}: wrong by {worst:.2g}")
            continue
        way = Way(peer.NAME, name, call, seconds_per_run(call, row, TRIAL_SECONDS))
        print(f"  {peer.NAME}: {name}: {way.seconds * 1e3:.2f} ms, off by {worst:.1g}")
        yield way


def our_seconds(binary: str, row: Row, seconds: float) -> Optional[float]:
    """Mean seconds a run; None when the second core was not there."""
    name = f"BM_{'Fused' if row.threads == 1 else 'Threads2'}_{row.name}/iterations:1/manual_time"
    done = subprocess.run([binary, f"--benchmark_filter=^{name}$", f"--seconds={seconds}", "--benchmark_format=json"],
                          check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    entry = json.loads(done.stdout)["benchmarks"][0]
    if "error_message" in entry:
        raise RuntimeError(f"{name}: {entry['error_message']}")
    if row.threads == 2 and "speedup_ratio_median" not in entry:
        return None
    return entry["real_time"] * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[entry["time_unit"]]


def close_to_fastest(ways: list[Way]) -> list[Way]:
    return [way for way in ways if way.seconds <= CLOSE * min(other.seconds for other in ways)]


def rounds_of(row: Row, ways: list[Way], arguments: argparse.Namespace) -> Iterator[Round]:
    sharing = [sum(other.peer == way.peer for other in ways) for way in ways]
    for _ in range(arguments.rounds):
        ours = our_seconds(arguments.binary, row, arguments.seconds)
        if ours is not None:
            yield Round(ours, [seconds_per_run(way.call, row, arguments.seconds / n) for way, n in zip(ways, sharing)])


def fastest_ways(ways: list[Way], rounds: list[Round]) -> dict[str, int]:
    """For each peer, which of the ways had the lowest median."""
    fastest = {}
    medians = [statistics.median(r.peers[i] for r in rounds) for i in range(len(ways))]
    for i, way in enumerate(ways):
        if medians[i] < medians[fastest.setdefault(way.peer, i)]:
            fastest[way.peer] = i
    return fastest


def cells(row: Row, ways: list[Way], rounds: list[Round], peers: list[str]) -> list[str]:
    """The table's line of a row: best times, median ratios, bar, verdict."""
    label = row.name + (", 2 threads" if row.threads == 2 else "")
    if not rounds:
        return [label, *["-"] * (2 * len(peers) + 2), f">= {row.bar:.2f}", "no second core"]
    fastest = fastest_ways(ways, rounds)
    for peer, i in fastest.items():
        print(f"  {peer} competed by {ways[i].name}, {len(rounds)} rounds")
    ours = min(r.ours for r in rounds)
    best = {peer: min(r.peers[i] for r in rounds) for peer, i in fastest.items()}
    ratio = {peer: statistics.median(r.peers[i] / r.ours for r in rounds) for peer, i in fastest.items()}
    times = [f"{best[peer] * 1e3:.1f}" if peer in best else "-" for peer in peers]
    ratios = [f"{ratio[peer]:.2f}" if peer in ratio else "-" for peer in peers]
    if not fastest:
        return [label, f"{ours * 1e3:.1f}", *times, *ratios, "-", "", ""]
    better = min(ratio.values())
    of_bests = min(best.values()) / ours
    return [label, f"{ours * 1e3:.1f}", *times, *ratios, f"{better:.2f} ({of_bests:.2f})", f">= {row.bar:.2f}",
            "pass" if better >= row.bar else "short"]


def compare(row: Row, peers: list[ModuleType], arguments: argparse.Namespace) -> list[str]:
    print(f"{row.name}, threads: {row.threads}", flush=True)
    inputs = draw(row)
    answer = expected(row, inputs)
    ways = [way for peer in peers for way in close_to_fastest(list(right_ways(peer, row, inputs, answer)))]
    return cells(row, ways, list(rounds_of(row, ways, arguments)), [peer.NAME for peer in peers])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", help="triad_bench_kernels")
    parser.add_argument("--filter", default=".", help="rows whose name, NAME/THREADS, matches (default: all)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each (default: 5)")
    parser.add_argument("--seconds", type=float, default=1, help="a turn's length (default: 1)")
    arguments = parser.parse_args()
    restart_with_clean_environment()
    peers = list(installed_peers())
    if not peers:
        sys.exit("no peer is installed")
    names = [peer.NAME for peer in peers]
    rows = [row for row in ROWS if re.search(arguments.filter, f"{row.name}/{row.threads}")]
    lines = [["row", "ours, ms", *[f"{name}, ms" for name in names], *[f"{name} / ours" for name in names],
              "better / ours (bests)", "bar", ""]]
    lines += [compare(row, peers, arguments) for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    print(f"\n{platform.machine()}, {time.strftime('%Y-%m-%d')}, {arguments.rounds} rounds; "
          "times are the best turn's, ratios medians over the rounds")
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


if __name__ == "__main__":
    main()
