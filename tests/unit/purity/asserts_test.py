#!/usr/bin/env python3
"""asserts_test ROOT [--write | --print]: the rooms whose state changes are worth it state what holds at their entry and exit:
so many assert()s there are for each function, its subfolders counted with the room."""

import pathlib
import re
import sys
import tempfile
import unittest

import c_source
import left

WANTED = 0.3
ROOMS = ("core", "roce", "local", "engine", "host", "broker", "cm")  # of these those that are there
ASSERT = re.compile(r"\bassert\s*\(")


class Room:
    def __init__(self, root, name):
        self.name, self.root = name, root
        self.files = []  # (functions, asserts, path)
        for path in sorted((root / "src" / name).rglob("*.[ch]")):
            bodies = [function.body for function in c_source.Source(path).functions()]
            self.files.append((len(bodies), sum(len(ASSERT.findall(body)) for body in bodies), path))

    def share(self):
        return sum(asserts for _, asserts, _ in self.files) / max(sum(functions for functions, _, _ in self.files), 1)

    def bare(self):
        """Files without any, those with the most functions first."""
        return [f"    {path.relative_to(self.root)}:1: {functions} functions, no assert"
                for functions, asserts, path in sorted(self.files, reverse=True) if functions and not asserts]


def read_rooms(root):
    return [Room(root, name) for name in ROOMS if (root / "src" / name).is_dir()]


def complaints(rooms, table):
    for room in rooms:
        wanted = min(WANTED, table.get(room.name, WANTED))
        if room.share() < wanted:
            yield "\n".join([f"src/{room.name}/: {room.share():.3f} asserts a function, at least {wanted:g} are wanted", *room.bare()[:20]])


class Asserts(unittest.TestCase):
    root = None

    def test_rooms__assert_what_holds(self):
        wrong = list(complaints(read_rooms(self.root), left.of("asserts")))
        if wrong:
            self.fail("\n" + "\n".join(wrong))

    def test_missing_asserts__are_seen(self):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            (root / "src/cm/inner").mkdir(parents=True)
            (root / "src/cm/a.c").write_text("static int a(int b)\n{\n\tassert(b);\n\treturn b;\n}\n" * 3)
            (root / "src/cm/inner/b.c").write_text("int b(void)\n{\n\t/* assert(1) */\n\treturn 0;\n}\n" * 9)
            rooms = read_rooms(root)
            self.assertEqual([(room.name, room.share()) for room in rooms], [("cm", 0.25)])
            said, = complaints(rooms, {})
            self.assertIn("src/cm/inner/b.c:1: 9 functions, no assert", said)
            self.assertEqual(list(complaints(rooms, {"cm": 0.25})), [])


if __name__ == "__main__":
    Asserts.root = pathlib.Path(sys.argv[1]).resolve()
    if "--print" in sys.argv:
        for one in read_rooms(Asserts.root):
            print(f"{one.name:10} {one.share():.3f}")
    elif "--write" in sys.argv:
        left.write("asserts", {one.name: int(1000 * one.share()) / 1000 for one in read_rooms(Asserts.root) if one.share() < WANTED})
    else:
        unittest.main(argv=sys.argv[:1])
