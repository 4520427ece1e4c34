"""A server with a layer directory, for tests in Python; and what answers are measured by."""

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/minilm"))

from forward_client import ForwardClient  # noqa: E402

LISTENING = re.compile(r"127\.0\.0\.1:[1-9]\d*")
# No TRIAD_* of the caller's reaches the programs under test.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("TRIAD_")}


@contextmanager
def serving(binary: str, layer_dir: Path):
    """A client of a server on a free port, which is stopped in the end; every layer of `layer_dir` is loaded."""
    server = subprocess.Popen([binary, "--listen=127.0.0.1:0", "--http_listen=", f"--layer_dir={layer_dir}"],
                              stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    try:
        seen, address = [], None
        while address is None:
            line = server.stderr.readline()
            if not line:
                raise RuntimeError("the server ended without listening:\n" + "".join(seen))
            seen.append(line)
            address = LISTENING.search(line) if "listening" in line else None
        client = ForwardClient(address.group(0), ROOT)
        yield client
        client.close()
    finally:
        server.terminate()
        _, log = server.communicate(timeout=60)
    if server.returncode != 0:
        raise RuntimeError(f"the server ended with {server.returncode}:\n{log}")


def import_layers(triad: str, *arguments: object) -> None:
    """`triad layers import`."""
    subprocess.run([triad, "layers", "import", *map(str, arguments)], check=True, env=ENVIRONMENT,
                   stdout=subprocess.DEVNULL)


def normalised_error(got: np.ndarray, want: np.ndarray) -> float:
    """Mean square error over mean square."""
    return float(((got - want) ** 2).mean() / (want**2).mean())


def weights_bound(largest_score: float) -> float:
    """How far f32 weights may be from those in double precision: as README.md states it."""
    return 1e-6 * max(1.0, largest_score / 16)
