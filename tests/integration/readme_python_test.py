"""The Python of README.md, run as it stands there: against a real server, with Debian's python3-grpcio.

Arguments: the repository's root, triad-server, protoc.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ADDRESS_IN_README = "127.0.0.1:8470"
LISTENING = re.compile(r"127\.0\.0\.1:[1-9]\d*")


def code_block(readme: str) -> str:
    """The one block of Python in the page."""
    blocks = re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    if len(blocks) != 1:
        sys.exit(f"README.md has {len(blocks)} blocks of Python; the test wants one")
    return blocks[0]


def start_server(binary: str) -> tuple:
    """A server on a free port, and its address, which it logs once it listens."""
    server = subprocess.Popen([binary, "--listen=127.0.0.1:0", "--http_listen="], stderr=subprocess.PIPE, text=True)
    seen = []
    for line in server.stderr:
        seen.append(line)
        address = LISTENING.search(line)
        if "listening" in line and address:
            return server, address.group(0)
    sys.exit("the server ended without listening:\n" + "".join(seen))


def softmax_attention(q, k, v):
    """[batch, tokens, heads, dim] in f64, causal."""
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
    scores = np.where(np.tri(q.shape[1], k.shape[1], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bhqk,bkhd->bqhd", weights / weights.sum(-1, keepdims=True), v)


def main(root: Path, binary: str, protoc: str) -> None:
    code = code_block((root / "README.md").read_text())
    if ADDRESS_IN_README not in code:
        sys.exit(f"README.md: the Python does not call {ADDRESS_IN_README}")
    with tempfile.TemporaryDirectory() as generated:
        protos = [str(path) for path in sorted((root / "proto/triad/v1").glob("*.proto"))]
        subprocess.run([protoc, f"-I{root / 'proto'}", f"--python_out={generated}", *protos], check=True)
        sys.path.insert(0, generated)
        server, address = start_server(binary)
        try:
            names = {}
            exec(compile(code.replace(ADDRESS_IN_README, address), "README.md", "exec"), names)
        finally:
            server.terminate()
            server.communicate()
    want = softmax_attention(*(names[name].astype(np.float64) for name in ("q", "k", "v")))
    error = np.abs(names["output"] - want).max()
    print(f"largest error {error:.3g}")
    # The bound that Triad states for f32: 1e-5 * max(1, max |V|).
    if not error <= 1e-5 * max(1.0, np.abs(names["v"]).max()):
        sys.exit("the answer is wrong")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
