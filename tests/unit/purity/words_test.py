#!/usr/bin/env python3
"""words_test ROOT [--write | --print]: comments of src/ begin with their subject, and call a thread, a process or a peer "it".
Counted is what can be: comments that open with Who, Whoever, What, Whatever or That, and the words he, his and him."""

import pathlib
import re
import sys
import tempfile
import unittest

import c_source
import left

OPENING = re.compile(r"/[*/]+\s*(Who|Whoever|What|Whatever|That)\b")
PERSON = re.compile(r"\b(he|his|him)\b", re.I)
BOUNDS = {"openings": 60, "persons": 10}


def found(root):
    """{what is counted: ["src/file.c:12: text", ...]}"""
    places = {what: [] for what in BOUNDS}
    for source in c_source.sources(root):
        for comment in source.comments():
            if OPENING.match(comment.text):
                first = comment.text.split("\n", 1)[0]
                places["openings"].append(f"{c_source.place(root, source, comment.line)}: {first}")
            for match in PERSON.finditer(comment.text):
                line = comment.line + comment.text.count("\n", 0, match.start())
                places["persons"].append(f"{c_source.place(root, source, line)}: {match[0]}")
    return places


def complaints(places, table):
    for what, bound in BOUNDS.items():
        allowed = max(bound, table.get(what, 0))
        if len(places[what]) > allowed:
            yield "\n    ".join([f"{what}: {len(places[what])}, at most {allowed:g} may be:", *places[what]])


class Words(unittest.TestCase):
    root = None

    def test_comments__are_in_plain_english(self):
        wrong = list(complaints(found(self.root), left.of("words")))
        if wrong:
            self.fail("\n" + "\n".join(wrong))

    def test_words__are_counted_in_comments_alone(self):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            (root / "src").mkdir()
            (root / "src/a.c").write_text("/* What it is.\n * Whose is\n * his, and him. */\nint a; /* Thatch. */\n// That\n"
                                          "/** Who */\nchar *b = \"/* What he is */\"; int his;\n")
            places = found(root)
            self.assertEqual(places["openings"], ["src/a.c:1: /* What it is.", "src/a.c:5: // That", "src/a.c:6: /** Who */"])
            self.assertEqual(places["persons"], ["src/a.c:3: his", "src/a.c:3: him"])

    def test_more_than_may_be__are_told_with_their_places(self):
        places = {"openings": ["src/a.c:1: /* What"] * 61, "persons": ["src/a.c:1: he"] * 10}
        said, = complaints(places, {})
        self.assertIn("\n    src/a.c:1: /* What", said)
        self.assertEqual(list(complaints(places, {"openings": 61})), [])


if __name__ == "__main__":
    Words.root = pathlib.Path(sys.argv[1]).resolve()
    if "--print" in sys.argv:
        print("\n".join(f"{what}: {one}" for what, places in found(Words.root).items() for one in places))
    elif "--write" in sys.argv:
        left.write("words", {what: len(places) for what, places in found(Words.root).items() if len(places) > BOUNDS[what]})
    else:
        unittest.main(argv=sys.argv[:1])
