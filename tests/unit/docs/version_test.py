#!/usr/bin/env python3
"""version_test ROOT VERSION VERBENA PKG_CONFIG_FILE: everything that says a version says the one of meson.build: the command,
verbena.pc, the manual pages and the newest entry of CHANGELOG.md, which SECURITY.md takes for the one that is mended."""

import pathlib
import re
import subprocess
import sys
import unittest


class VersionTest(unittest.TestCase):
    def test_of_the_command(self):
        said = subprocess.run([VERBENA, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertEqual(said, f"verbena {VERSION}\n")

    def test_of_pkg_config(self):
        self.assertIn(f"Version: {VERSION}\n", PKG_CONFIG.read_text())

    def test_of_manual_pages(self):
        pages = sorted((ROOT / "docs").glob("*.1"))
        self.assertEqual(len(pages), 2)
        for page in pages:
            self.assertEqual(page.read_text().split('"')[3], f"Verbena {VERSION}", page.name)

    def test_of_changelog(self):
        newest = re.search(r"^## \[(\d[^\]]*)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
        self.assertEqual(newest[1], VERSION)

    def test_of_security(self):
        self.assertIn(f"today {VERSION.rpartition('.')[0]}.", (ROOT / "SECURITY.md").read_text())


if __name__ == "__main__":
    ROOT, VERSION, VERBENA, PKG_CONFIG = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])
    unittest.main(argv=sys.argv[:1])
