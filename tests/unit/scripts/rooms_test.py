#!/usr/bin/env python3
"""rooms_test ROOT: scripts/rooms draws what the #includes of a tree say."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest


def without_sizes(page):
    return re.sub(r" +", " ", re.sub(r"\d+", "", re.sub(r"[\w.]+ \d+ +(?=reads|nobody|\w+('s [\w ]+)? \d)", "", page)))


class Rooms(unittest.TestCase):
    root = None

    def rooms(self, *arguments):
        return subprocess.run([self.root / "scripts/rooms", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout

    def build(self, files):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        for name, text in files.items():
            path = pathlib.Path(scratch.name, "src", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return scratch.name

    def test_text__has_rooms_by_height_and_their_arrows(self):
        tree = self.build({"attic/a.c": '#include "cellar/one.h"\n#include "hall/x.h"\n', "cellar/one.h": "",
                           "hall/x.h": "\n", "hall/y.c": '#include "cellar/one.h"\n#include "cellar/two.h"\n#include "x.h"\n'
                                                         '#include "cellar/three.h"\n', "empty/meson.build": ""})
        lines = [" ".join(line.split()) for line in self.rooms(tree).splitlines()]
        self.assertEqual(lines[1:], ["cellar 1 0 one.h 0 nobody", "hall 2 5 y.c 4 cellar 3",
                                     "attic 1 2 a.c 2 cellar's one 1, hall's x 1", "4 7"])

    def test_text__says_where_two_rooms_read_each_other(self):
        tree = self.build({"a/a.c": '#include "b/b.h"\n', "b/b.c": '#include "a/a.h"\n'})
        self.assertIn("a and b read each other", self.rooms(tree))

    def test_pictures__have_the_same_arrows(self):
        drawn = re.findall(r"^\t(\w+) -> (\w+)", self.rooms("--dot"), re.M)
        self.assertIn(("port", "wire"), drawn)
        self.assertEqual(drawn, re.findall(r"^    (\w+) -\.?-> (\w+)$", self.rooms("--mermaid"), re.M))

    def test_page__has_the_rooms_and_arrows_of_today(self):
        """Sizes, and the longest file, differ from commit to commit."""
        page = (self.root / "docs/rooms.md").read_text()
        self.assertEqual(without_sizes(page), without_sizes(self.rooms("--page")), "Run: make shown")

    def test_page__differs_where_an_arrow_does(self):
        page = self.rooms("--page")
        for old, new in (("-.->", "-->"), ("    cc --> base\n", ""), (" wire 5", " cm 5")):
            self.assertIn(old, page)
            self.assertNotEqual(without_sizes(page.replace(old, new, 1)), without_sizes(page), old)
        self.assertEqual(without_sizes(page.replace("wire 5", "wire 6", 1)), without_sizes(page))

    def test_house__is_read_one_way(self):
        self.assertNotIn("read each other", self.rooms())


if __name__ == "__main__":
    Rooms.root = pathlib.Path(sys.argv[1]).resolve()
    unittest.main(argv=sys.argv[:1])
