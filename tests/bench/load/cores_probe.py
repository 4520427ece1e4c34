"""Whether both cores are there: the second one of a shared machine comes and goes."""

import time
from concurrent.futures import ProcessPoolExecutor
from typing import Callable, NamedTuple, TypeVar

BOTH_CORES = 1.9
PROBE_SECONDS = 0.1

T = TypeVar("T")


def _spin(start: float) -> int:
    """Rounds between `start` and PROBE_SECONDS later, by the monotonic clock, which all processes share."""
    while time.monotonic() < start:
        pass
    rounds = 0
    while time.monotonic() < start + PROBE_SECONDS:
        rounds += 1
    return rounds


class Measured(NamedTuple):
    value: object
    cores: float      # the lower of the probes before and after
    attempts: int     # made; all but the last found a core missing


class CoresProbe:
    """Two waiting processes, which a `with` block ends. A measurement is made up to `attempts` times."""

    def __init__(self, attempts: int):
        self._attempts = attempts

    def __enter__(self) -> "CoresProbe":
        self._pool = ProcessPoolExecutor(max_workers=2)
        self._rounds(2)  # starts both
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def cores(self) -> float:
        """What two spinning processes get done, over what one does: 2 when both cores are there."""
        one = self._rounds(1)
        return self._rounds(2) / one

    def bracket(self, measure: Callable[[], T]) -> Measured:
        """The first measurement with both cores before and after; else the one of all attempts with most of them."""
        best = None
        for attempt in range(1, self._attempts + 1):
            before = self.cores()
            value = measure()
            cores = min(before, self.cores())
            if best is None or cores > best.cores:
                best = Measured(value, cores, attempt)
            if cores >= BOTH_CORES:
                break
        return best._replace(attempts=attempt)

    def _rounds(self, processes: int) -> int:
        start = time.monotonic() + 0.01
        return sum(self._pool.map(_spin, [start] * processes))
