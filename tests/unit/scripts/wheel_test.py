#!/usr/bin/env python3
"""wheel_test ROOT BUILD VERSION: the wheel that scripts/wheel makes of BUILD installs into a fresh virtual environment, without
network; its command, its module and its libraries work there, and it says for which glibc it is. Skipped, with a reason,
where Python's packages for that are missing."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SKIP = 77
PYTHON = "/usr/bin/python3"  # the distribution's, whose packages scripts/install-deps installs
APART = ["unshare", "-rn", "sh", "-c", 'ip link set lo up; exec "$@"', "apart"]
# Prints where the libibverbs that a program gets by its name comes from.
WHICH = "import ctypes; ctypes.CDLL('libibverbs.so.1'); print(*{l.split()[-1] for l in open('/proc/self/maps') if 'libibverbs.so' in l})"


def run(*command, **options):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100,
                          env={**{k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}, "PATH": os.environ["PATH"]}, **options)


def what_is_missing():
    for module in ("setuptools", "wheel", "ensurepip"):
        if run(PYTHON, "-c", f"import {module}").returncode:
            return f"{PYTHON} has no {module}"
    if run(*APART, "true").returncode:
        return "no namespaces can be made here"
    return None


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="verbena-wheel-")
        cls.output, cls.venv = pathlib.Path(cls.scratch.name) / "out", pathlib.Path(cls.scratch.name) / "venv"
        cls.made = run(PYTHON, ROOT / "scripts/wheel", BUILD, cls.output)
        if "libasan.so" in cls.made.stdout or "libtsan.so" in cls.made.stdout:
            raise unittest.SkipTest("a build with a sanitizer makes no wheel")
        assert cls.made.returncode == 0, cls.made.stdout
        (cls.wheel,) = cls.output.glob("verbena-*.whl")
        for command in ([PYTHON, "-m", "venv", cls.venv],
                        [cls.venv / "bin/pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", cls.wheel]):
            said = run(*command)
            assert said.returncode == 0, said.stdout

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_name_says_version_and_glibc(self):
        self.assertRegex(self.wheel.name, rf"^verbena-{re.escape(VERSION)}-py3-none-manylinux_2_[3-9]\d_{os.uname().machine}\.whl$")
        self.assertTrue((self.output / f"verbena-{VERSION}.tar.gz").exists())

    def test_command_and_module_say_the_version(self):
        for command in ([self.venv / "bin/verbena"], [self.venv / "bin/python", "-m", "verbena"]):
            self.assertEqual(run(*command, "--version").stdout, f"verbena {VERSION}\n")
        self.assertEqual(run(self.venv / "bin/python", "-c", "import verbena; print(verbena.__version__)").stdout, f"{VERSION}\n")

    def test_program_gets_its_libraries(self):
        where = run(self.venv / "bin/python", "-c", "import verbena; print(verbena.library_path())").stdout.strip()
        self.assertTrue(where.startswith(str(self.venv)))
        said = run(*APART, self.venv / "bin/python", "-m", "verbena", "run", "--", self.venv / "bin/python", "-c", WHICH)
        self.assertEqual((said.returncode, said.stdout), (0, f"{where}/libibverbs.so.1\n"))

    def test_two_programs_talk(self):
        both = 'verbena run -- ibv_rc_pingpong -g 0 >/dev/null & sleep 1; verbena run --stats -- ibv_rc_pingpong -g 0 127.0.0.1 && wait'
        said = run(*APART, "env", f"PATH={self.venv}/bin:{os.environ['PATH']}", "sh", "-c", both)
        self.assertEqual(said.returncode, 0, said.stdout)
        self.assertIn("8192000 bytes in", said.stdout)
        self.assertIn("shared memory", said.stdout)


if __name__ == "__main__":
    ROOT, BUILD, VERSION = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    missing = what_is_missing()
    if missing:
        print(f"SKIP: {missing}")
        sys.exit(SKIP)
    unittest.main(argv=sys.argv[:1])
