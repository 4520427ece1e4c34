"""The serving rows that compare a server with itself: under other flags, beside other load, after a while."""

import statistics
import time
from pathlib import Path
from typing import Callable, Iterator, NamedTuple

from load import wide_layer
from load.cores_probe import CoresProbe, Measured
from load.load_tool import LoadReport, LoadTool
from load.refusal_probe import RefusalProbe, serialized_forward
from load.server_process import ResidentSamples, ServerProcess
from load.shape_traces import write_shape_traces

REPETITIONS = 3
WIDE = f"--layer={wide_layer.NAME}"
ONE_BY_ONE = "--max_batch_tokens=1"


class Line(NamedTuple):
    row: str
    figure: str
    ratio: str
    bar: str
    holds: bool
    cores: str = ""


class Bench(NamedTuple):
    server: Path
    tool: LoadTool
    probe: CoresProbe
    folder: Path             # for sockets, traces and layers
    seconds: float           # of each measurement
    overload_seconds: float

    def serve(self, name: str, *flags: str) -> ServerProcess:
        return ServerProcess(self.server, self.folder, name, list(flags))

    def serve_wide(self, name: str, *flags: str) -> ServerProcess:
        layer_dir = self.folder / "layers"
        if not layer_dir.exists():
            wide_layer.write_wide_layer(layer_dir)
        return self.serve(name, f"--layer_dir={layer_dir}", *flags)

    def run(self, server: ServerProcess, *flags: str) -> LoadReport:
        report = self.tool.run(server.target, f"--duration={self.seconds}s", "--warmup=200ms", *flags)
        if report.wrong > 0:
            raise RuntimeError(f"{report.wrong} wrong answers to {' '.join(flags)}")
        return report


def cores_of(measured: list[Measured]) -> str:
    """The lowest probe of what was kept, and how many measurements were thrown away."""
    thrown_away = sum(one.attempts - 1 for one in measured)
    return f"{min(one.cores for one in measured):.2f}" + (f", {thrown_away} again" if thrown_away else "")


def alternate(bench: Bench, sides: list[Callable[[], float]]) -> tuple[list[list[float]], str]:
    """Each side's figures, one for each repetition, in which all take turns; and what the probes said."""
    measured = [bench.probe.bracket(lambda: [side() for side in sides]) for _ in range(REPETITIONS)]
    return [list(figures) for figures in zip(*(one.value for one in measured))], cores_of(measured)


def median_ratio(above: list[float], below: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(above, below))


def forward_64(bench: Bench) -> Iterator[Line]:
    """One token each, 64 in flight: what computing them together gains."""
    load = (WIDE, "--tokens=1", "--concurrency=64", "--check=4")
    with bench.serve_wide("together") as together, bench.serve_wide("one", ONE_BY_ONE) as one, \
            bench.serve_wide("unshared", "--max_shared_tokens=0") as unshared:
        sides = [lambda server=server: bench.run(server, *load).results_per_second
                 for server in (together, one, unshared)]
        (ours, alone, apart), cores = alternate(bench, sides)
    figure = f"{statistics.median(ours):.0f}/s"
    ratio = median_ratio(ours, alone)
    yield Line("forward_64", figure, f"{ratio:.2f} x {ONE_BY_ONE}", ">= 4.00", ratio >= 4, cores)
    yield Line("forward_64", figure, f"{median_ratio(ours, apart):.2f} x --max_shared_tokens=0", "", True, cores)


def forward_1(bench: Bench) -> Iterator[Line]:
    """An idle server does not wait for company."""
    load = (WIDE, "--tokens=1", "--concurrency=1", "--check=4")
    with bench.serve_wide("together") as together, bench.serve_wide("one", ONE_BY_ONE) as one:
        sides = [lambda server=server: bench.run(server, *load).p50_seconds for server in (together, one)]
        (ours, alone), cores = alternate(bench, sides)
    ratio = median_ratio(ours, alone)
    yield Line("forward_1", f"p50 {statistics.median(ours) * 1e3:.2f} ms", f"{ratio:.2f} x {ONE_BY_ONE}", "<= 1.05",
               ratio <= 1.05, cores)


def mixed(bench: Bench) -> Iterator[Line]:
    """What padding of tiles costs. No time is judged, so no core is missed."""
    with bench.serve("mixed") as server:
        before = [server.counter(f"triad_flop_{which}_total") for which in ("executed", "needed")]
        report = bench.run(server, "--tokens=uniform:16:2048", "--concurrency=8", "--check=0")
        after = [server.counter(f"triad_flop_{which}_total") for which in ("executed", "needed")]
        bench.run(server, "--tokens=uniform:16:2048", "--requests=4", "--check=4")
    executed, needed = (end - start for start, end in zip(before, after))
    yield Line("mixed", f"{report.results_per_second:.0f}/s", f"{executed / needed:.3f} executed / needed", "<= 1.05",
               executed / needed <= 1.05)


def overload(bench: Bench) -> Iterator[Line]:
    """Three times what the server can do, each request with a deadline of 1 s. Peaks before and after are averaged."""
    request = (WIDE, "--tokens=16", "--timeout=1s", "--slo=p99=1s")
    with bench.serve_wide("overload") as server:
        cores = [bench.probe.cores()]
        peaks = [bench.run(server, *request, "--concurrency=64").goodput_per_second]
        message = serialized_forward(wide_layer.NAME, 16, wide_layer.MODEL_DIM)
        with ResidentSamples(server) as resident, RefusalProbe(server.target, message, 1.0) as refusals:
            report = bench.tool.run(server.target, *request, f"--rate={3 * peaks[0]:.0f}", "--arrivals=poisson",
                                    "--max-in-flight=4096", f"--duration={bench.overload_seconds}s", "--check=32")
        peaks.append(bench.run(server, *request, "--concurrency=64").goodput_per_second)
        cores.append(bench.probe.cores())
    goodput, peak = report.goodput_per_second, statistics.mean(peaks)
    yield Line("overload", f"{goodput:.0f}/s in time", f"{goodput / peak:.2f} x peak ({peaks[0]:.0f}, {peaks[1]:.0f})",
               ">= 0.70", goodput >= 0.7 * peak, f"{min(cores):.2f}")
    codes = ", ".join(f"{count} {code}" for code, count in sorted(report.codes.items()))
    yield Line("overload: answers", codes, f"{report.wrong} of {report.right + report.wrong} wrong", "0",
               report.wrong == 0 and report.right > 0)
    yield refused_line(refusals)
    yield Line("overload: memory", f"{max(resident.bytes) / 2**20:.0f} MiB", f"{resident.growth():.3f} last third / first",
               "<= 1.05", resident.growth() <= 1.05)
    if report.generator != "kept up":
        yield Line("overload: load", report.generator, "", "", True)


def refused_line(probe: RefusalProbe) -> Line:
    """At once: within a tenth of the deadline, on cores that are three times overloaded."""
    if not probe.refused:
        return Line("overload: refusals", "none seen", "", "some", False)
    pushed_back = sum(refused.has_pushback for refused in probe.refused)
    return Line("overload: refusals", f"p99 {probe.p99_seconds() * 1e3:.1f} ms",
                f"{pushed_back} of {len(probe.refused)} pushed back", "<= 100 ms, all",
                probe.p99_seconds() <= 0.1 and pushed_back == len(probe.refused))


def beside_huge(bench: Bench) -> Iterator[Line]:
    """Tiny requests at half of what the server can do, alone and beside 64 k tokens by 64 k keys, again and again."""
    small = ("--tokens=16", "--check=4")
    with bench.serve("beside") as server:
        rate = bench.run(server, *small, "--concurrency=16").results_per_second / 2
        load = (*small, f"--rate={rate:.0f}", "--arrivals=poisson")

        def beside() -> float:
            with HugeLoad(bench, server):
                return bench.run(server, *load).p99_seconds

        (crowded, alone), cores = alternate(bench, [beside, lambda: bench.run(server, *load).p99_seconds])
    ratio = median_ratio(crowded, alone)
    yield Line("beside_huge", f"p99 {statistics.median(crowded) * 1e3:.2f} ms at {rate:.0f}/s",
               f"{ratio:.2f} x {statistics.median(alone) * 1e3:.2f} ms without", "<= 3.00", ratio <= 3, cores)


class HugeLoad:
    """One request of 65536 tokens and as many keys in the list for the length of a `with` block."""

    def __init__(self, bench: Bench, server: ServerProcess):
        self._server = server
        self._process = bench.tool.start(server.target, "--tokens=65536", "--heads=1", "--concurrency=1",
                                         "--duration=1h", "--timeout=5m", "--check=0")

    def __enter__(self) -> None:
        self._await_listed(1)

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        self._await_listed(0)

    def _await_listed(self, requests: int) -> None:
        give_up = time.monotonic() + 30
        while self._server.counter("triad_listed_requests") != requests:
            if time.monotonic() > give_up:
                raise RuntimeError(f"there were not {requests} requests in the list within 30 s")
            time.sleep(0.01)


def shapes(bench: Bench) -> Iterator[Line]:
    """2,000 shapes that the server has not seen, after 2,000 others."""
    with bench.serve("shapes") as server:
        def send(offset: int) -> None:
            for trace in write_shape_traces(bench.folder, offset):
                report = bench.tool.run(server.target, f"--trace={trace}", "--concurrency=4", "--check=2")
                if report.wrong > 0 or set(report.codes) != {"OK"}:
                    raise RuntimeError(f"{report.wrong} wrong answers; {report.codes}")

        send(offset=0)
        resident, threads = server.resident_bytes(), server.threads()
        send(offset=7)
        growth, more = server.resident_bytes() / resident, server.threads() - threads
    yield Line("shapes: memory", f"{resident / 2**20:.0f} MiB", f"{growth:.3f} x after warm-up", "<= 1.05", growth <= 1.05)
    yield Line("shapes: threads", f"{threads}", f"{more:+d} since warm-up", "0", more == 0)


ROWS: dict[str, Callable[[Bench], Iterator[Line]]] = {
    row.__name__: row for row in (forward_64, forward_1, mixed, overload, beside_huge, shapes)}
