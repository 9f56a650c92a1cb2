#!/usr/bin/env python3
"""names_test ROOT: the files and functions that the pages of docs/ name exist. `room/file.c`, `file.c` and `room/part*.c`
are files of this tree, `vb_name` is a word of src/, and where a list's item or a table's row begins with a file,
`name()` in it is a function that this file defines."""

import functools
import pathlib
import re
import sys
import unittest

CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"[\w./*-]*\w\.(?:[ch]|py|vbs|tsv|map)$")
NAME = re.compile(r"vb_[a-z0-9_]*[a-z0-9]$")
CALL = re.compile(r"([a-z]\w*)\(\)$")
# An item of a list, or a row of a table, that begins with a file: what it says until the next, or until a blank line.
STEP = re.compile(r"^(?: *(?:\d+\.|-)|\|) +`([\w./-]+\.[ch])`(.*(?:\n(?! *(?:\d+\.|-) |\||\n).*)*)", re.M)
PLACES = ("", "src", "docs")  # whence a path may count
TREES = ("src", "tests", "docs", "bench", "scripts")


class Tree:
    def __init__(self, root):
        self.root = root

    @functools.cache
    def files(self):
        return [p for tree in TREES for p in sorted((self.root / tree).rglob("*")) if p.is_file()]

    @functools.cache
    def words(self):
        return set(re.findall(r"\w+", "\n".join(self.text(p) for p in self.files()
                                                if p.suffix in (".c", ".h") and "src" in p.relative_to(self.root).parts)))

    @functools.cache
    def text(self, path):
        return path.read_text()

    def find(self, name):
        """All files that a page may mean by it."""
        found = [p for place in PLACES for p in sorted((self.root / place).glob(name)) if p.is_file()]
        return found or ([] if "/" in name else [p for p in self.files() if p.match(name)])

    def defines(self, path, function):
        return re.search(r"^\w[^;{}=#]*\b%s\([^;{}]*\)\s*\{" % function, self.text(path), re.M)


def complaints(tree, page):
    for code in CODE.findall(page):
        if FILE.match(code) and not tree.find(code):
            yield f"{code} is no file"
        if NAME.match(code) and code not in tree.words():
            yield f"{code} is not in src/"
    for name, said in STEP.findall(page):
        found = tree.find(name)
        for call in (match[1] for match in map(CALL.match, CODE.findall(said)) if match):
            if not any(tree.defines(path, call) for path in found):
                yield f"{name} defines no {call}()"


class Names(unittest.TestCase):
    root = None

    def test_pages__name_what_exists(self):
        tree = Tree(self.root)
        for page in sorted((self.root / "docs").glob("*.md")):
            with self.subTest(page.name):
                self.assertEqual(list(complaints(tree, page.read_text())), [])

    def test_checker__sees_what_is_gone(self):
        tree = Tree(self.root)
        self.assertEqual(list(complaints(tree, "`wire/cm.c`, `src/wire/cm.h`, `opcode.c`, `wire/crc32*.c`, `vb_cm_decode`")), [])
        self.assertEqual(len(list(complaints(tree, "`wire/gone.c` and `gone.c`, `vb_gone`, `rdmacm/opcode.c`"))), 4)

    def test_checker__looks_for_a_function_where_it_is_said_to_be(self):
        tree = Tree(self.root)
        told = "1. `wire/cm.c`: `vb_cm_decode()` reads\n   it, `%s()`.\n2. Then `vb_mad_header_decode()`.\n"
        self.assertEqual(list(complaints(tree, told % "vb_cm_encode")), [])
        self.assertEqual(len(list(complaints(tree, told % "vb_mad_header_decode"))), 1)
        self.assertEqual(len(list(complaints(tree, "- `wire/cm.h`: `vb_cm_decode()`"))), 1)  # declared there only
        self.assertEqual(len(list(complaints(tree, "| `wire/cm.c` | `vb_packet_decode()` |"))), 1)


if __name__ == "__main__":
    Names.root = pathlib.Path(sys.argv[1])
    unittest.main(argv=sys.argv[:1])
