#!/usr/bin/env python3
"""coupling_test ROOT [--write | --print]: how much of each room is one knot: of its .c files those that reach each other by
calls, as a share of the room's lines. A subfolder is a room of its own. A call is a name that one file of src/ alone defines,
not static, in the body of another file's function; calls through tables of functions are not seen, and none is meant."""

import pathlib
import re
import sys
import tempfile
import unittest

import c_source
import left

BOUND = 40  # per cent
BOUNDS = {"core": 25, "local": 25}
EXEMPT = {"rspreload"}  # what it stands in for is one table of functions

WORD = re.compile(r"\b[A-Za-z_]\w+\b")


class Room:
    def __init__(self, name):
        self.name = name
        self.lines = {}  # of each file, by its path in src/ without ".c"
        self.calls = {}  # {file: {other file: (line, function)}} the first of each

    def knot(self):
        """The largest set of files of which each reaches each, by calls."""
        return max((part for part in components(self.lines, self.calls) if len(part) > 1), key=len, default=[])

    def share(self):
        return 100 * sum(self.lines[file] for file in self.knot()) / sum(self.lines.values())

    def bound(self):
        return BOUNDS.get(self.name, BOUND)


def components(nodes, edges):
    """Tarjan's strongly connected components."""
    numbers, low, stack, found = {}, {}, [], []

    def visit(node):
        numbers[node] = low[node] = len(numbers)
        stack.append(node)
        for other in edges.get(node, ()):
            if other not in numbers:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == numbers[node]:
            at = stack.index(node)
            found.append(stack[at:])
            del stack[at:]

    for node in nodes:
        if node not in numbers:
            visit(node)
    return found


def read_rooms(root):
    sources = {str(s.path.relative_to(root / "src")): s for s in c_source.sources(root)}
    functions = {name: list(source.functions()) for name, source in sources.items()}
    definers = {}
    for name, its in functions.items():
        for function in its:
            if not function.is_static:
                definers.setdefault(function.name, set()).add(name)
    sole = {function: next(iter(names)) for function, names in definers.items() if len(names) == 1}
    rooms = {}
    for name, source in sources.items():
        if not name.endswith(".c"):
            continue
        folder, file = str(pathlib.PurePath(name).parent), name[:-2]
        room = rooms.setdefault(folder, Room(folder))
        room.lines[file] = source.lines
        for function in functions[name]:
            for match in WORD.finditer(function.body):
                other = sole.get(match[0], name)
                if other != name and other.endswith(".c") and str(pathlib.PurePath(other).parent) == folder:
                    line = function.line + function.body.count("\n", 0, match.start())
                    room.calls.setdefault(file, {}).setdefault(other[:-2], (line, match[0]))
    return [rooms[name] for name in sorted(rooms)]


def knot_text(room):
    knot = set(room.knot())
    return "\n".join(f"    src/{file}.c:{line} calls {function}() of src/{other}.c" for file in sorted(knot)
                     for other, (line, function) in sorted(room.calls[file].items()) if other in knot)


def complaints(rooms, table):
    for room in rooms:
        allowed = max(room.bound(), table.get(room.name, 0))
        if room.name not in EXEMPT and room.share() > allowed:
            yield (f"src/{room.name}/: {room.share():.1f}% of its lines call each other, {allowed:g}% may "
                   f"({len(room.knot())} files):\n{knot_text(room)}")


class Coupling(unittest.TestCase):
    root = None

    def test_rooms__keep_to_their_bounds(self):
        wrong = list(complaints(read_rooms(self.root), left.of("knot")))
        if wrong:
            self.fail("\n" + "\n".join(wrong))

    def tree(self, files):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        for name, text in files.items():
            path = pathlib.Path(scratch.name, "src", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return {room.name: room for room in read_rooms(pathlib.Path(scratch.name))}

    def test_knot__is_seen_and_told_with_its_calls(self):
        rooms = self.tree({"hall/a.c": "int aa(void)\n{\n\treturn bb();\n}\n", "hall/b.c": "int bb(void)\n{\n\treturn aa();\n}\n",
                           "hall/c.c": "int cc(void)\n{\n\treturn aa() + bb();\n}\n"})
        self.assertAlmostEqual(rooms["hall"].share(), 100 * 8 / 12)
        said, = complaints(rooms.values(), {})
        self.assertIn("src/hall/a.c:3 calls bb() of src/hall/b.c", said)
        self.assertNotIn("src/hall/c.c", said)
        self.assertEqual(list(complaints(rooms.values(), {"hall": 67})), [])

    def test_subfolder__is_a_room_whatever_its_name(self):
        rooms = self.tree({"wire/a.c": "int aa(void)\n{\n\treturn bb();\n}\n", "host/wire/b.c": "int bb(void)\n{\n\treturn aa();\n}\n"})
        self.assertEqual({name: room.share() for name, room in rooms.items()}, {"wire": 0, "host/wire": 0})

    def test_call__is_none_in_a_comment_a_literal_or_of_a_name_that_two_define(self):
        rooms = self.tree({"hall/a.c": 'int aa(void)\n{\n\t/* bb() */\n\treturn cc("bb()");\n}\n', "hall/b.c": "int bb(void)\n{\n\treturn aa();\n}\n",
                           "hall/c.c": "int cc(void)\n{\n\treturn aa();\n}\n", "attic/c.c": "int cc(void)\n{\n\treturn 0;\n}\n"})
        self.assertEqual(rooms["hall"].knot(), [])


if __name__ == "__main__":
    Coupling.root = pathlib.Path(sys.argv[1]).resolve()
    if "--print" in sys.argv:
        for one in read_rooms(Coupling.root):
            print(f"{one.name:16} {len(one.knot()):3} of {len(one.lines):3} files, {one.share():3.0f}% of {sum(one.lines.values()):5} lines")
    elif "--write" in sys.argv:
        left.write("knot", {one.name: -(-one.share() // 1) for one in read_rooms(Coupling.root)
                            if one.name not in EXEMPT and one.share() > one.bound()})
    else:
        unittest.main(argv=sys.argv[:1])
