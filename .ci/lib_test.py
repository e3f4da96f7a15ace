"""Tests of lib.py: python3 -m unittest discover -s .ci -p '*_test.py'"""

import contextlib
import io
import os
import sys
import tempfile
import unittest

import lib


class Programs(unittest.TestCase):
    def test_what_is_printed_is_returned(self):
        self.assertEqual(lib.must("echo", "a"), "a\n")
        self.assertEqual(lib.must("cat", input=b"\xff", text=False), b"\xff")
        self.assertEqual(lib.run("false").returncode, 1)

    def test_a_failure_names_the_command_and_what_it_said(self):
        for text in (True, False):
            with self.assertRaisesRegex(RuntimeError, "^sh -c echo out; echo err >&2; exit 4: status 4: out\nerr\n$"):
                lib.must("sh", "-c", "echo out; echo err >&2; exit 4", text=text)

    def test_options_of_the_caller_come_first(self):
        with tempfile.TemporaryDirectory() as place:
            self.assertEqual(lib.must("pwd", "-P", cwd=place).strip(), os.path.realpath(place))


class Ends(unittest.TestCase):
    def test_failures_are_noted(self):
        before, printed = list(lib.FAILURES), io.StringIO()
        with contextlib.redirect_stdout(printed):
            lib.fail("x")
        self.assertEqual(lib.FAILURES, [*before, "x"])
        self.assertEqual(printed.getvalue(), "WRONG: x\n")
        lib.FAILURES[:] = before

    def test_a_lack_is_status_3(self):
        printed = io.StringIO()
        with contextlib.redirect_stderr(printed), self.assertRaises(SystemExit) as end:
            lib.cannot("no network")
        self.assertEqual(end.exception.code, 3)
        self.assertEqual(printed.getvalue(), "cannot be downloaded: no network\n")


class Arguments(unittest.TestCase):
    def asked(self, *words):
        before, sys.argv = sys.argv, ["script", *words]
        try:
            return lib.arguments()
        finally:
            sys.argv = before

    def test_the_directory_is_first_and_may_be_missing(self):
        with tempfile.TemporaryDirectory() as place:
            self.assertEqual(self.asked(place, "jax"), (place, ["jax"]))
        self.assertEqual(self.asked("jax"), (os.path.abspath("target/debug"), ["jax"]))

    def test_names_choose(self):
        self.assertTrue(lib.chooser([])("a"))
        chosen = lib.chooser(["jax", "rand"])
        self.assertTrue(chosen("made", "librocrand1") and chosen("jax-rocm7"))
        self.assertFalse(chosen("cupy", "thin"))

    def test_a_name_that_chooses_nothing_is_an_error(self):
        self.assertTrue(lib.chooser(["jax"], ["made", "jax-rocm7"])("jax-rocm7"))
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as end:
            lib.chooser(["jax", "jx"], ["made", "jax-rocm7"])
        self.assertEqual(end.exception.code, 2)
        self.assertEqual(said.getvalue(), "'jx': expected a part of one of made, jax-rocm7\n")


class Files(unittest.TestCase):
    def test_files_are_in_order(self):
        with tempfile.TemporaryDirectory() as place:
            os.mkdir(os.path.join(place, "b"))
            for name in ("b/c", "a"):
                with open(os.path.join(place, name), "w") as file:
                    file.write(name)
            self.assertEqual(lib.files_below(place), [os.path.join(place, name) for name in ("a", "b/c")])
            self.assertEqual(lib.read(os.path.join(place, "b/c")), b"b/c")

    def test_wheels_are_for_linux(self):
        words = lib.of_python("3.11")
        self.assertEqual(words[words.index("--python-version") + 1], "3.11")
        self.assertEqual(words.count("--platform"), len(lib.VERSIONS))
        self.assertIn("manylinux_2_28_x86_64", words)


if __name__ == "__main__":
    unittest.main()
