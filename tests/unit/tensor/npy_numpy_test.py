"""Our .npy reader and writer against numpy's own, in both directions.

Usage: npy_numpy_test.py PATH_OF_triad_npy_rewrite
"""
import itertools
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

REWRITE = None
SHAPES = [(), (0,), (5,), (2, 3), (3, 0, 2), (2, 3, 4), (1, 2, 3, 4)]


class NpyTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.source = os.path.join(self.folder.name, "in.npy")
        self.target = os.path.join(self.folder.name, "out.npy")

    def rewrite(self, array, *options, version=None):
        """Saves `array` with numpy, has it read and written by ours, returns what numpy then loads."""
        with open(self.source, "wb") as file:
            np.lib.format.write_array(file, array, version=version)
        done = subprocess.run([REWRITE, self.source, self.target, *options], capture_output=True, text=True)
        if done.returncode:
            raise ValueError(done.stderr)
        with open(self.target, "rb") as file:
            self.assertEqual(np.lib.format.read_magic(file), (1, 0))
            np.lib.format.read_array_header_1_0(file)
            self.assertEqual(file.tell() % 64, 0, "data is aligned to 64 bytes")
        return np.load(self.target)

    def test_every_type_and_order_keeps_its_values(self):
        generator = np.random.default_rng(7)
        for descr, shape, order in itertools.product(["<f4", ">f4", "<f2", ">f2", "|b1"], SHAPES, "CF"):
            with self.subTest(descr=descr, shape=shape, order=order):
                array = np.asarray(generator.normal(size=shape) * 2, order=order).astype(descr)
                loaded = self.rewrite(array)
                self.assertEqual(loaded.dtype, array.dtype.newbyteorder("<"))
                self.assertTrue(loaded.flags.c_contiguous)
                np.testing.assert_array_equal(loaded, array)

    def test_every_format_version_is_read(self):
        array = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
        for version in [(1, 0), (2, 0), (3, 0)]:
            with self.subTest(version=version):
                np.testing.assert_array_equal(self.rewrite(array, version=version), array)

    def test_doubles_and_integers_become_floats_when_told(self):
        generator = np.random.default_rng(8)
        for descr, order in itertools.product(
                ["<f8", ">f8", "<i2", ">i2", "<i4", "<i8", ">i8", "<u2", ">u4", "<u8", "|i1", "|u1"], "CF"):
            with self.subTest(descr=descr, order=order):
                array = np.asarray(generator.normal(size=(3, 5, 2)) * 100, order=order).astype(descr)
                loaded = self.rewrite(array, "convert_to_f32")
                self.assertEqual(loaded.dtype, np.float32)
                np.testing.assert_array_equal(loaded, array.astype(np.float32))
        with self.assertRaisesRegex(ValueError, "would have to be converted"):
            self.rewrite(np.zeros(3))

    def test_bytes_become_booleans_when_told(self):
        array = np.array([[0, 1], [2, 255]], np.uint8)
        np.testing.assert_array_equal(self.rewrite(array, "uint8_as_bool"), array != 0)

    def test_opaque_pairs_of_bytes_become_bfloat16_when_told(self):
        bits = np.arange(6, dtype="<u2").reshape(2, 3)
        loaded = self.rewrite(bits.view("V2"), "void_as_bf16")
        self.assertEqual(loaded.dtype, np.dtype("V2"))
        np.testing.assert_array_equal(loaded.view("<u2"), bits)
        with self.assertRaisesRegex(ValueError, "may be bfloat16"):
            self.rewrite(bits.view("V2"))

    def test_what_is_no_number_is_refused(self):
        for array in [np.zeros(3, "c8"), np.zeros(3, "S4"), np.zeros(3, "U4"), np.zeros(3, "M8[s]"),
                      np.zeros(3, [("a", "f4"), ("b", "f4")]), np.array([None, 1])]:
            with self.subTest(dtype=array.dtype), self.assertRaisesRegex(ValueError, "UNIMPLEMENTED|structured types"):
                self.rewrite(array, "void_as_bf16", "uint8_as_bool", "convert_to_f32")

    def test_a_second_array_in_the_file_is_refused(self):
        with open(self.source, "wb") as file:
            np.save(file, np.zeros(3, np.float32))
            np.save(file, np.zeros(3, np.float32))
        done = subprocess.run([REWRITE, self.source, self.target], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("does not match", done.stderr)


if __name__ == "__main__":
    REWRITE = sys.argv.pop(1)
    unittest.main()
