#!/usr/bin/env python3
"""Runs the kernels' bench and prints one table: row, figure, ratio, bar, pass or short. scripts/bench builds it first.

A ratio stands beside the machine's own limit, measured by the same program within the same moment. The bar is what the
ratio must reach; "short" says that it does not.
"""
import argparse
import json
import platform
import re
import subprocess
import sys
import tempfile

PEAK, STREAM, SPEEDUP = "peak_ratio_median", "stream_ratio_median", "speedup_ratio_median"

# (row of the bench, counter that is judged, bar)
BARS = [
    ("Fused_F32_2048_HeadDim64", PEAK, 0.82),
    ("Fused_F32_2048_HeadDim128", PEAK, 0.85),
    ("Fused_F32_2048_HeadDim64_Causal", PEAK, 0.78),
    ("Fused_F32_2048_HeadDim64_Bias", PEAK, 0.65),
    ("Fused_F32_2048_HeadDim64_Keep", PEAK, 0.65),
    ("Fused_F32_128_HeadDim64_Batch8", PEAK, 0.68),
    ("Fused_Decode_F32_65536", STREAM, 0.85),
    ("Fused_Decode_Bf16_65536", STREAM, 0.85),
    ("Fused_Decode_F32_65536_Heads32Over8", STREAM, 0.85),
    ("Threads2_F32_2048_HeadDim64", SPEEDUP, 0.92),
    ("Threads2_Decode_F32_65536_OneHead", SPEEDUP, 0.90),
    ("Forward_F32_512_1024", PEAK, 0.72),
]
# (row, its yardstick, how much longer it may take)
TIME_BARS = [
    ("Fused_F16_2048_HeadDim64", "Fused_F32_2048_HeadDim64", 1.10),
    ("Fused_F32_2048_HeadDim64_Spread", "Fused_F32_2048_HeadDim64", 1.05),
]


def run(arguments):
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        subprocess.run([arguments.binary, f"--benchmark_filter={arguments.filter}",
                        f"--benchmark_min_time={arguments.seconds}", f"--benchmark_out={report.name}",
                        "--benchmark_out_format=json"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return json.load(report)


def name_of(entry):
    return re.sub(r"^BM_|/manual_time$", "", entry["name"])


def figure_of(entry):
    if "best_flop_per_s" in entry:
        return f"{entry['best_flop_per_s'] / 1e9:.1f} GFLOP/s"
    if "best_bytes_per_s" in entry:
        return f"{entry['best_bytes_per_s'] / 1e9:.1f} GB/s"
    return f"{entry['real_time']:.1f} {entry['time_unit']}"


def table_of(rows):
    """Lines of (row, figure, ratio, bar, verdict). Rows without a bar say what they reach."""
    bars = {name: (counter, bar) for name, counter, bar in BARS}
    ceilings = {name: (yardstick, bar) for name, yardstick, bar in TIME_BARS}
    for name, entry in rows.items():
        if "error_message" in entry:
            yield name, entry["error_message"], "", "", "WRONG"
        elif name in ceilings and ceilings[name][0] in rows:
            yardstick, bar = ceilings[name]
            ratio = rows[yardstick]["best_flop_per_s"] / entry["best_flop_per_s"]
            yield name, figure_of(entry), f"{ratio:.2f} x time", f"<= {bar:.2f}", "pass" if ratio <= bar else "short"
        else:
            counter, bar = bars.get(name, (None, None))
            judged = counter or next((c for c in (PEAK, STREAM, SPEEDUP) if c in entry), None)
            ratio = entry.get(judged)
            shown = "no second core" if ratio is None else f"{ratio:.2f}"
            if bar is None or ratio is None:
                yield name, figure_of(entry), shown, "", ""
            else:
                yield name, figure_of(entry), shown, f">= {bar:.2f}", "pass" if ratio >= bar else "short"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", help="triad_bench_kernels")
    parser.add_argument("--filter", default=".", help="rows whose name matches (default: all)")
    parser.add_argument("--seconds", type=float, default=3, help="measured per row (default: 3)")
    parser.add_argument("--json", help="also writes Google Benchmark's own report here")
    arguments = parser.parse_args()
    report = run(arguments)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)
    rows = {name_of(entry): entry for entry in report["benchmarks"]}
    lines = [("row", "best figure", "ratio (median)", "bar", "")] + list(table_of(rows))
    widths = [max(len(line[i]) for line in lines) for i in range(5)]
    print(f"{platform.machine()}, {report['context']['date']}")
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
    return 1 if any(line[4] == "WRONG" for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
