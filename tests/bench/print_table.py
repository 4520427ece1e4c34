#!/usr/bin/env python3
"""Runs the kernels' bench and prints one table: row, figure, ratio, bar, pass or short. scripts/bench builds it first.

A ratio stands beside the machine's own limit, measured by the same program within the same moment. The bar is what the
ratio must reach; "short" says that it does not. Rows without a bar say what they reach. cores is the least that a probe
found beside the row: what so many threads, or two, got done over what one did.

An Avx2_ row is run in a process of its own, whose kernels and peak are capped to AVX2: an instruction set can be chosen
only once.
"""
import argparse
import json
import platform
import re
import subprocess
import sys
import tempfile

PEAK, BF16_PEAK = "peak_ratio_median", "bf16_peak_ratio_median"
STREAM, BEST_STREAM = "stream_ratio_median", "best_stream_ratio_median"
SPEEDUP, GROWTH = "speedup_ratio_median", "peak_growth_mib"

# (row of the bench, counter that is judged, bar)
BARS = [
    ("Fused_F32_2048_HeadDim64", PEAK, 0.82),
    ("Fused_F32_2048_HeadDim128", PEAK, 0.85),
    ("Fused_F32_2048_HeadDim64_Causal", PEAK, 0.78),
    ("Fused_F32_2048_HeadDim64_Bias", PEAK, 0.65),
    ("Fused_F32_2048_HeadDim64_Keep", PEAK, 0.65),
    ("Fused_F32_128_HeadDim64_Batch8", PEAK, 0.68),
    ("Avx2_Fused_F32_2048_HeadDim64", PEAK, 0.65),
    ("Fused_Bf16_2048_HeadDim64", BF16_PEAK, 0.62),
    ("Fused_Bf16_2048_HeadDim128", BF16_PEAK, 0.70),
    ("Fused_Decode_F32_65536", STREAM, 0.85),
    ("Fused_Decode_F32_65536", BEST_STREAM, 0.70),
    ("Fused_Decode_Bf16_65536", STREAM, 0.85),
    ("Fused_Decode_Bf16_65536", BEST_STREAM, 0.70),
    ("Fused_Decode_F32_65536_Heads32Over8", STREAM, 0.85),
    ("Fused_Decode_F32_65536_Heads32Over8", BEST_STREAM, 0.70),
    ("Fused_Decode_F32_65536_TokensHeads", STREAM, 0.85),
    ("Fused_Decode_F32_65536_TokensHeads", BEST_STREAM, 0.70),
    ("Threads2_F32_2048_HeadDim64", SPEEDUP, 0.92),
    ("Threads2_Decode_F32_65536_OneHead", SPEEDUP, 0.90),
    ("Forward_F32_512_1024", PEAK, 0.72),
]
# (row, its yardstick, how much longer it may take)
TIME_BARS = [
    ("Fused_F16_2048_HeadDim64", "Fused_F32_2048_HeadDim64", 1.10),
    ("Fused_F32_2048_HeadDim64_Spread", "Fused_F32_2048_HeadDim64", 1.05),
]
# (row, MiB that the peak RSS must grow by less than)
MEMORY_BARS = [("Memory_F32_65536_HeadDim64_OneHead", 64)]
# (counter, what it is a ratio to), in the order in which a row without a bar is asked for them.
RATIOS = {SPEEDUP: "limit's", PEAK: "peak", BF16_PEAK: "bf16 peak", STREAM: "read", BEST_STREAM: "best read"}
# A row that is run once more: (what its name begins with then, row, instruction set)
CAPPED = ("Avx2_", "Fused_F32_2048_HeadDim64", "avx2")


def run(arguments, rows, *options):
    """The report on the rows that match, as Google Benchmark writes it; without "context" when none does."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        done = subprocess.run([arguments.binary, f"--benchmark_filter={rows}", f"--seconds={arguments.seconds}",
                               f"--threads={arguments.threads}", f"--benchmark_out={report.name}",
                               "--benchmark_out_format=json", *options],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8", check=False)
        if done.returncode != 0:
            sys.exit(done.stderr)
        return json.loads(report.read() or '{"benchmarks": []}')


def name_of(entry):
    return re.sub(r"^BM_|/iterations:1/manual_time$", "", entry["name"])


def all_rows(arguments):
    """The report on all rows that were asked for."""
    report = run(arguments, arguments.filter)
    prefix, name, instruction_set = CAPPED
    if re.search(arguments.filter, f"BM_{prefix}{name}"):
        capped = run(arguments, f"^BM_{name}/", f"--instruction_set={instruction_set}")
        for entry in capped["benchmarks"]:
            entry["name"] = entry["name"].replace("BM_", f"BM_{prefix}")
        report = {**capped, **report, "benchmarks": report["benchmarks"] + capped["benchmarks"]}
    if not report["benchmarks"]:
        sys.exit(f"no row matches {arguments.filter}")
    return report


def figure_of(entry):
    if "cycles_per_vector" in entry:
        return f"{entry['cycles_per_vector']:.1f} cycles/vector"
    if "best_flop_per_s" in entry:
        return f"{entry['best_flop_per_s'] / 1e9:.1f} GFLOP/s"
    if "best_bytes_per_s" in entry:
        return f"{entry['best_bytes_per_s'] / 1e9:.1f} GB/s"
    return f"{entry['real_time']:.1f} {entry['time_unit']}"


def verdicts_of(name, entry, rows):
    """(what the row reaches, its bar, pass or short), one for each of its bars; one without a bar if it has none."""
    def judged(shown, holds, bar):
        return shown, bar, "pass" if holds else "short"

    for row, yardstick, bar in TIME_BARS:
        if row == name and yardstick in rows:
            time = rows[yardstick].get(PEAK, 0) / entry[PEAK]   # both are of as much work
            yield judged(f"{time:.2f} x time", time <= bar, f"<= {bar:.2f}")
    for row, bar in MEMORY_BARS:
        if row == name:
            yield judged(f"{entry[GROWTH]:.1f} MiB", entry[GROWTH] < bar, f"< {bar} MiB")
    for row, counter, bar in BARS:
        if row == name and counter in entry:
            yield judged(f"{entry[counter]:.2f} {RATIOS[counter]}", entry[counter] >= bar, f">= {bar:.2f}")


def lines_of(name, entry, rows):
    """Lines of (row, figure, ratio, bar, verdict, cores)."""
    if "error_message" in entry:
        return [(name, entry["error_message"], "", "", "WRONG", "")]
    cores = f"{entry['cores']:.2f}" if "cores" in entry else ""
    if entry.get("calls") == 0:
        return [(name, "", "cores missing", "", "", cores)]
    verdicts = list(verdicts_of(name, entry, rows))
    if not verdicts:
        counter = next((c for c in RATIOS if c in entry), None)
        verdicts = [(f"{entry[counter]:.2f} {RATIOS[counter]}" if counter else "", "", "")]
    if "item_share" in entry:
        verdicts.append((f"{entry['item_share']:.0%} of an item", "", ""))
    first, *others = verdicts
    return [(name, figure_of(entry), *first, cores)] + [("", "", *other, "") for other in others]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", help="triad_bench_kernels")
    parser.add_argument("--filter", default=".", help="rows whose name matches (default: all)")
    parser.add_argument("--seconds", type=float, default=3, help="measured per row (default: 3)")
    parser.add_argument("--threads", type=int, default=1, help="that compute at once, beside the limit of as many")
    parser.add_argument("--json", help="also writes Google Benchmark's own report here")
    arguments = parser.parse_args()
    report = all_rows(arguments)
    rows = {name_of(entry): entry for entry in report["benchmarks"]}
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)
    lines = [("row", "best figure", "ratio (median)", "bar", "", "cores")]
    for name, entry in rows.items():
        lines += lines_of(name, entry, rows)
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    threads = f", {arguments.threads} threads" if arguments.threads > 1 else ""
    print(f"{platform.machine()}, {report['context']['date']}{threads}")
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
    return 1 if any("WRONG" in line for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
