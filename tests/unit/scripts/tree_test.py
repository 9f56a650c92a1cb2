#!/usr/bin/env python3
"""tree_test ROOT: what is taken along of a source tree is the same of a clone and of a tarball that was unpacked and built."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCES = {"Makefile", "src/a.c", ".ci/run"}


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="verbena-")
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)
        for name in (*SOURCES, "build/a.o", "build-release/a.o", "tests/__pycache__/a.pyc"):
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            (self.tree / name).write_text(name)
        (self.tree / "link").symlink_to("nowhere")

    def test_without_git_it_is_all_but_what_is_built(self):
        self.assertEqual(set(files_of(self.tree)), SOURCES | {"link"})

    @unittest.skipUnless(shutil.which("git"), "there is no git")
    def test_with_git_it_is_what_git_knows_or_would(self):
        (self.tree / ".gitignore").write_text("/build*/\n__pycache__/\n")
        for command in (["init", "--quiet"], ["add", "Makefile", "src"]):
            subprocess.run(["git", *command], cwd=self.tree, check=True)
        self.assertEqual(set(files_of(self.tree)), SOURCES | {"link", ".gitignore"})
        (self.tree / "Makefile").unlink()
        self.assertEqual(set(files_of(self.tree)), (SOURCES | {"link", ".gitignore"}) - {"Makefile"})


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "tests/portability"))
    from tree import files_of
    unittest.main(argv=sys.argv[:1])
