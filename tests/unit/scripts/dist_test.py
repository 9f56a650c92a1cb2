#!/usr/bin/env python3
"""dist_test ROOT VERSION: the release's tarball has the same bytes whenever and by whomever it is made, and everything that git knows."""

import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)


@unittest.skipUnless(shutil.which("git") and shutil.which("xz"), "there is no git or xz")
class Tarball(unittest.TestCase):
    def test_is_the_same_again_and_whole(self):
        if git("rev-parse", "--verify", "HEAD").returncode:
            self.skipTest("git does not know this tree")
        made = []
        with tempfile.TemporaryDirectory() as folder:
            for umask in ("022", "077"):
                done = subprocess.run(["sh", "-c", f'umask {umask}; exec "$@"', "sh", ROOT / "scripts/dist", "--no-tests", f"{folder}/{umask}"],
                                      stdout=subprocess.PIPE, text=True, check=True)
                made.append(pathlib.Path(done.stdout.splitlines()[0]))
            self.assertEqual([path.name for path in made], [f"verbena-{VERSION}.tar.xz"] * 2)
            self.assertEqual(made[0].read_bytes(), made[1].read_bytes())
            subprocess.run(["sha256sum", "--check", "--quiet", f"{made[0].name}.sha256sum"], cwd=made[0].parent, check=True)
            with tarfile.open(made[0]) as tar:
                packed = {name.partition("/")[2] for name in tar.getnames() if not tar.getmember(name).isdir()}
        known = git("ls-tree", "-r", "-z", "--name-only", "HEAD").stdout.decode().split("\0")
        self.assertEqual(packed, set(filter(None, known)))


if __name__ == "__main__":
    ROOT, VERSION = pathlib.Path(sys.argv[1]), sys.argv[2]
    unittest.main(argv=sys.argv[:1])
