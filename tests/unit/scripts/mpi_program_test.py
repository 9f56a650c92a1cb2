#!/usr/bin/env python3
"""mpi_program_test ROOT: a build that was configured before mpicc came makes the MPI programs once it is there."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest


class MpiProgram(unittest.TestCase):
    root = None

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.path = self.scratch / "bin"
        self.path.mkdir()
        for tool in ("sh", "env", "meson", "ninja", "cc", "gcc", "as", "ld", "ar", "sed", "python3", "cp"):
            if found := shutil.which(tool):
                (self.path / tool).symlink_to(found)

    def run_in(self, *command):
        environment = {"PATH": str(self.path), "HOME": str(self.scratch)}
        done = subprocess.run(command, cwd=self.scratch, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def lay_out_project(self):
        """The part of our meson.build that is about MPI, with a program."""
        text = (self.root / "meson.build").read_text()
        start = text.index("of_mpi = {")
        (self.scratch / "scripts").mkdir()
        shutil.copy(self.root / "scripts/mpi-program", self.scratch / "scripts/mpi-program")
        (self.scratch / "meson.build").write_text("project('late', 'c')\n" + text[start:text.index("}", start) + 1] +
                                                  "\ncustom_target('p', input: 'p.c', output: 'p', kwargs: of_mpi)\n")
        (self.scratch / "p.c").write_text("int main(void) { return 0; }\n")

    def test_mpicc_that_comes_after_configuration__is_noticed(self):
        self.lay_out_project()
        self.run_in("meson", "setup", "b")
        self.run_in("ninja", "-C", "b")
        self.assertFalse((self.scratch / "b/p").exists())
        mpicc = self.path / "mpicc"
        mpicc.write_text("#!/bin/sh\nexec gcc \"$@\"\n")
        mpicc.chmod(0o755)
        self.run_in("ninja", "-C", "b")
        self.assertTrue((self.scratch / "b/p").exists())


if __name__ == "__main__":
    MpiProgram.root = pathlib.Path(sys.argv[1])
    unittest.main(argv=sys.argv[:1])
