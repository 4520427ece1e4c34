"""`triad attend`, `forward` and `layers` against a real server: files that numpy wrote in, an answer that numpy computed in double precision.

Usage: tool_server_test.py PATH_OF_triad-server PATH_OF_triad
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

import numpy as np

SERVER, TRIAD = None, None
# No TRIAD_* of the caller's reaches the programs under test.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("TRIAD_")}


def attention(query, key, value, visible=None, bias=0.0):
    """output, lse and weights of [batch, tokens, heads, dim] tensors, in double precision."""
    query, key, value = (np.asarray(x, np.float64) for x in (query, key, value))
    group = query.shape[2] // key.shape[2]
    key, value = np.repeat(key, group, axis=2), np.repeat(value, group, axis=2)
    scores = np.einsum("bqhd,bkhd->bhqk", query, key) / np.sqrt(query.shape[-1]) + bias
    if visible is not None:
        scores = np.where(visible, scores, -np.inf)
    highest = scores.max(axis=-1, keepdims=True)
    terms = np.exp(scores - highest)
    total = terms.sum(axis=-1, keepdims=True)
    weights = terms / total
    return np.einsum("bhqk,bkhd->bqhd", weights, value), (highest + np.log(total))[..., 0], weights


class ToolServerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.target = "unix:" + os.path.join(cls.folder.name, "triad.sock")
        cls.server = subprocess.Popen([SERVER, "--listen=" + cls.target, "--http_listen="], env=ENVIRONMENT)
        cls.addClassCleanup(cls.stop_server)
        while cls.triad("health").returncode != 0:
            if cls.server.poll() is not None:
                raise RuntimeError(f"the server ended with {cls.server.returncode}")

    @classmethod
    def stop_server(cls):
        cls.server.send_signal(signal.SIGTERM)
        if cls.server.wait(timeout=60) != 0:
            raise RuntimeError(f"the server ended with {cls.server.returncode}")

    @classmethod
    def triad(cls, command, *arguments):
        return subprocess.run([TRIAD, *command.split(), "--target", cls.target, *arguments], env=ENVIRONMENT,
                              capture_output=True, text=True)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def save(self, name, array):
        np.save(self.path(name), array)
        return self.path(name)

    def attend(self, tensors, *arguments):
        """Runs `triad attend` on `tensors` (by flag); returns its summary, and output, lse and weights as numpy loads them."""
        flags = []
        for name, array in tensors.items():
            flags += ["--" + name, self.save(name + ".npy", array)]
        for name in ("output", "lse", "weights"):
            flags += ["--" + name, self.path("answer_" + name + ".npy")]
        done = self.triad("attend", "--json", *flags, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), *(np.load(self.path(f"answer_{name}.npy")) for name in ("output", "lse", "weights"))

    def random(self, *shapes):
        generator = np.random.default_rng(11)
        return [generator.normal(size=shape).astype(np.float32) for shape in shapes]

    def test_answers_are_those_of_double_precision(self):
        query, key, value = self.random((2, 17, 4, 24), (2, 33, 2, 24), (2, 33, 2, 16))
        summary, output, lse, weights = self.attend({"query": query, "key": key, "value": value})
        for got, expected in zip((output, lse, weights), attention(query, key, value)):
            np.testing.assert_allclose(got, expected, atol=1e-5)
        self.assertEqual(summary["output"]["shape"], [2, 17, 4, 16])
        self.assertGreater(summary["timings"]["compute_ns"], 0)

    def test_files_in_any_order_and_byte_order_give_the_same_answer(self):
        query, key, value = self.random((1, 5, 2, 8), (1, 7, 2, 8), (1, 7, 2, 8))
        _, plain, _, _ = self.attend({"query": query, "key": key, "value": value})
        _, other, _, _ = self.attend({"query": np.asfortranarray(query), "key": key.astype(">f4"),
                                      "value": np.asfortranarray(value.astype(">f4"))})
        np.testing.assert_array_equal(plain, other)

    def test_masks_bias_and_causal_are_their_intersection(self):
        query, key, value, bias = self.random((1, 6, 2, 8), (1, 9, 2, 8), (1, 9, 2, 8), (1, 1, 6, 9))
        keep = np.ones((1, 1, 1, 9), np.uint8)
        keep[..., 0] = 0
        causal = np.arange(9)[None, :] <= np.arange(6)[:, None] + 3
        _, output, lse, weights = self.attend(
            {"query": query, "key": key, "value": value, "keep": keep, "bias": bias}, "--causal", "--alignment",
            "bottom_right")
        expected = attention(query, key, value, visible=causal & (keep != 0), bias=bias)
        for got, wanted in zip((output, lse, weights), expected):
            np.testing.assert_allclose(got, wanted, atol=1e-5)
        self.assertTrue((weights[..., 0] == 0).all())

    def test_doubles_are_converted_when_told_and_refused_otherwise(self):
        query, key, value = (x.astype(np.float64) for x in self.random((1, 4, 1, 8), (1, 4, 1, 8), (1, 4, 1, 8)))
        _, output, _, _ = self.attend({"query": query, "key": key, "value": value}, "--dtype", "f16")
        self.assertEqual(output.dtype, np.float16)
        np.testing.assert_allclose(output, attention(query, key, value)[0], atol=2e-2)
        done = self.triad("attend", "--query", self.path("query.npy"), "--key", self.path("key.npy"), "--value",
                          self.path("value.npy"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("--dtype f32", done.stderr)

    def test_the_reference_kernel_agrees(self):
        query, key, value = self.random((1, 8, 2, 16), (1, 8, 2, 16), (1, 8, 2, 16))
        _, tiled, _, _ = self.attend({"query": query, "key": key, "value": value})
        _, reference, _, _ = self.attend({"query": query, "key": key, "value": value}, "--kernel", "reference")
        np.testing.assert_allclose(tiled, reference, atol=1e-5)

    def test_an_invalid_request_names_the_rule_and_exits_with_2(self):
        query, key, value = self.random((1, 2, 1, 8), (1, 3, 1, 8), (1, 3, 1, 8))
        flags = []
        for name, array in (("query", query), ("key", key), ("value", value)):
            flags += ["--" + name, self.save(name + ".npy", array)]
        done = self.triad("attend", *flags, "--causal")
        self.assertEqual(done.returncode, 2)
        self.assertIn("alignment", done.stderr)

    def forward(self, hidden, *arguments):
        """Runs `triad forward` through the demo layer; returns its summary, and output and weights as numpy loads them."""
        done = self.triad("forward", "--json", "--layer", "demo", "--input", self.save("hidden.npy", hidden), "--output",
                          self.path("states.npy"), "--weights", self.path("map.npy"), *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), np.load(self.path("states.npy")), np.load(self.path("map.npy"))

    def test_the_demo_layer_is_listed_and_answers(self):
        done = self.triad("layers list", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        demo, = json.loads(done.stdout)["layers"]
        self.assertEqual((demo["name"], demo["version"], demo["model_dim"], demo["heads"]), ("demo", 1, 512, 8))
        hidden, = self.random((2, 7, 512))
        summary, output, weights = self.forward(hidden, "--lengths", "7,4")
        self.assertEqual((summary["layer_version"], output.shape, weights.shape), (1, (2, 7, 512), (2, 8, 7, 7)))
        np.testing.assert_allclose(weights[0].sum(axis=-1), 1, atol=1e-5)
        self.assertTrue((weights[1, :, :, 4:] == 0).all())
        _, alone, _ = self.forward(hidden[:1])
        np.testing.assert_array_equal(output[:1], alone)

    def test_a_layer_that_is_not_there_exits_with_1(self):
        hidden, = self.random((1, 2, 512))
        done = self.triad("forward", "--layer", "nobody", "--input", self.save("hidden.npy", hidden))
        self.assertEqual(done.returncode, 1)
        self.assertIn("NOT_FOUND", done.stderr)
        done = self.triad("layers load", "nobody")
        self.assertEqual(done.returncode, 1)
        self.assertIn("PERMISSION_DENIED", done.stderr)

    def test_info_names_kernel_and_limits(self):
        done = self.triad("info", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        info = json.loads(done.stdout)
        self.assertTrue(info["kernel"])
        self.assertGreater(info["limits"]["max_message_bytes"], 0)


if __name__ == "__main__":
    TRIAD = sys.argv.pop(2)
    SERVER = sys.argv.pop(1)
    unittest.main()
