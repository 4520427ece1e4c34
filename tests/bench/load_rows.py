#!/usr/bin/env python3
"""Drives servers of its own with `triad bench` and prints one table: row, figure, ratio, bar, pass or short.

A row whose time is judged has its cores probed before and after each repetition; where one was missing it is made
again, up to --attempts times, and the probe of what was kept is printed: 2 is both cores. Answers are checked by the tool.
scripts/bench --serving builds what is needed and runs this.
"""
import argparse
import datetime
import platform
import re
import sys
import tempfile
from pathlib import Path

from load.cores_probe import CoresProbe
from load.load_tool import LoadTool
from load.rows import ROWS, Bench, Line

HEADER = Line("row", "figure", "ratio (median)", "bar", True, "cores")
WIDTHS = (20, 26, 34, 14, 6)


def show(line: Line, verdict: str) -> None:
    cells = (line.row, line.figure, line.ratio, line.bar, verdict)
    print("  ".join([cell.ljust(width) for cell, width in zip(cells, WIDTHS)] + [line.cores]).rstrip(), flush=True)


def run(bench: Bench, rows: re.Pattern) -> bool:
    """Prints the rows that match; whether all of them ran, with right answers."""
    ran = True
    for name, row in ROWS.items():
        if not rows.search(name):
            continue
        try:
            for line in row(bench):
                show(line, "" if not line.bar else "pass" if line.holds else "short")
        except RuntimeError as error:
            show(Line(name, str(error), "", "", False), "WRONG")
            ran = False
    return ran


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", type=Path, help="triad-server")
    parser.add_argument("tool", type=Path, help="triad")
    parser.add_argument("--filter", type=re.compile, default=re.compile("."),
                        help=f"rows whose name matches: {', '.join(ROWS)} (default: all)")
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement (default: 2)")
    parser.add_argument("--overload-seconds", type=float, default=60, help="of the overload (default: 60)")
    parser.add_argument("--attempts", type=int, default=4, help="at a repetition with both cores (default: 4)")
    arguments = parser.parse_args()
    print(f"{platform.machine()}, {datetime.datetime.now().astimezone().isoformat(timespec='seconds')}")
    show(HEADER, "")
    with tempfile.TemporaryDirectory() as folder, CoresProbe(arguments.attempts) as probe:
        bench = Bench(server=arguments.server, tool=LoadTool(arguments.tool), probe=probe, folder=Path(folder),
                      seconds=arguments.seconds, overload_seconds=arguments.overload_seconds)
        return 0 if run(bench, arguments.filter) else 1


if __name__ == "__main__":
    sys.exit(main())
