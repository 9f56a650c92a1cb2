#!/usr/bin/env python3
"""lessons_test BUILD ROOT: each command of docs/lessons.md prints what the page shows below it.

The page's first command opens the shell in which the lessons are run. A line of a block that is "..." stands for any lines.
Numbers above 65535 differ from run to run: the page's own are names for those that are said. A number that the page shows
twice in a lesson is twice the same, one more on the page is one more, and a command is typed with the numbers that were said.
Numbers with a decimal point may be any; all other numbers are compared. How much space there is does not count."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from shown_test import BLOCK, can_be_apart

INSIDE = "--inside"
SECTIONS = 7  # with the answers
TOKEN = re.compile(r"\d+(?:\.\d+){3}|\d+\.\d+|0x[0-9a-f]+|\d+|[^\d]")
NUMBER = re.compile(r"0x[0-9a-f]+|\d+")
NAMED_FROM = 0x10000
NEAR = 16
RING = 1 << 24  # what PSNs and numbers of queue pairs are counted in
SECONDS = 20
TRIES = 3  # a process that waits for a CPU may be asked once more by its peer, which a capture shows
PROGRAMS = ("tshark", "ibv_rc_pingpong", "ib_write_bw", "ib_read_lat", "rping")
ROOT_REMARK = "Running as user"  # tshark's, to root


# ---- The page -----------------------------------------------------------------------------------------------------------

def steps_of(block):
    """[(command, lines shown below it), ...] of an indented block."""
    steps = []
    for line in re.sub(r"\\\n *", "", block).rstrip("\n").split("\n"):
        line = line[4:]
        if line.startswith("$ "):
            steps.append((line[2:], []))
        else:
            steps[-1][1].append(line)
    return steps


def sections_of(text):
    """[(title, steps), ...]; the first is what stands before the lessons."""
    first, *lessons = re.split(r"^## ", text, flags=re.M)
    return [("", first)] + [lesson.split("\n", 1) for lesson in lessons]


def steps_of_section(section):
    return [step for block in BLOCK.findall(section) for step in steps_of(block)]


# ---- What is said, and what is shown ------------------------------------------------------------------------------------

class Names:
    """Which numbers of this run the large numbers of the page stand for."""

    def __init__(self):
        self.said = {}

    def of(self, shown):
        """None if the page has shown no such number yet, and none near it."""
        for known in sorted(self.said, key=lambda known: abs(known - shown)):
            if known == shown:
                return self.said[known]
            if abs(known - shown) < NEAR:
                return (self.said[known] & -RING) + (self.said[known] + shown - known) % RING
        return None

    def is_same(self, shown, said):
        if not NUMBER.fullmatch(shown) or int(shown, 0 if "x" in shown else 10) < NAMED_FROM:
            return shown == said or bool(re.fullmatch(r"\d+\.\d+", shown) and re.fullmatch(r"\d+\.\d+", said))
        if not NUMBER.fullmatch(said) or ("x" in shown) != ("x" in said):
            return False
        shown, said = (int(number, 0 if "x" in number else 10) for number in (shown, said))
        if self.of(shown) not in (None, said):
            return False
        self.said[shown] = said
        return True

    def are_same(self, shown, said):
        """Of two lines. Lines that differ give no names."""
        before = dict(self.said)
        shown, said = (TOKEN.findall(" ".join(line.split())) for line in (shown, said))
        if len(shown) == len(said) and all(map(self.is_same, shown, said)):
            return True
        self.said = before
        return False

    def typed(self, command):
        """The command with the numbers of this run."""
        def this_run(found):
            said = self.of(int(found[0], 16))
            return found[0] if said is None else f"{said:#x}"
        return re.sub(r"\b0x[0-9a-f]+\b", this_run, command)


def first_difference(names, shown, said):
    """What is wrong with lines that were said, or None."""
    said, any_lines = list(said), False
    for line in shown:
        if line.strip() == "...":
            any_lines = True
            continue
        while any_lines and said and not names.are_same(line, said[0]):
            del said[0]
        if not said or not names.are_same(line, said[0]):
            return f"shown: {line}\nsaid:  {said[0] if said else 'nothing more'}"
        del said[0]
        any_lines = False
    return None if any_lines or not said else f"said beyond what is shown: {said[0]}"


# ---- Commands -----------------------------------------------------------------------------------------------------------

class Terminal:
    """Runs commands as they are typed, in a folder of its own."""

    def __init__(self, folder):
        self.folder, self.beside = folder, []

    def popen(self, command, output):
        return subprocess.Popen(["sh", "-c", command], cwd=self.folder, text=True, stdin=subprocess.DEVNULL, stdout=output,
                                stderr=subprocess.STDOUT)

    def start(self, command):
        self.beside.append(self.popen(f"exec {command}", subprocess.DEVNULL))

    def say(self, command):
        """Lines of one try."""
        process = self.popen(f"exec timeout {SECONDS} {command}", subprocess.PIPE)
        lines = process.communicate()[0].splitlines()
        return process.returncode, [line for line in lines if line.strip() and not line.startswith(ROOT_REMARK)]

    def run(self, command):
        """Lines that it prints. A client that comes before its server is started again."""
        for _ in range(SECONDS):
            if self.beside:
                time.sleep(0.5)
            status, lines = self.say(command)
            if status == 0 or all(server.poll() is not None for server in self.beside):
                break
        self.end()
        return lines

    def end(self):
        """Servers end with their clients."""
        for server in self.beside:
            try:
                server.wait(SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        self.beside = []


class Lessons(unittest.TestCase):
    build = root = None

    def learn(self, steps):
        """What differs from the page, or None."""
        names = Names()
        with tempfile.TemporaryDirectory(prefix="verbena-") as folder:
            for name, place in ("build", self.build), ("examples", self.root / "examples"):
                (pathlib.Path(folder) / name).symlink_to(place)
            terminal = Terminal(folder)
            self.addCleanup(terminal.end)
            for command, shown in steps:
                if command.endswith("&"):
                    terminal.start(names.typed(command[:-1]))
                    continue
                typed = names.typed(command)
                said = terminal.run(typed)
                difference = first_difference(names, [line for line in shown if line.strip()], said)
                if difference:
                    return "\n".join([f"$ {typed}", difference, "All that was said:", *said])
        return None

    def test_commands__print_what_the_page_shows(self):
        _, *lessons = sections_of((self.root / "docs/lessons.md").read_text())
        lessons = [(title, steps) for title, section in lessons if (steps := steps_of_section(section))]
        self.assertEqual(len(lessons), SECTIONS)
        for title, steps in lessons:
            with self.subTest(title):
                for _ in range(TRIES):
                    difference = self.learn(steps)
                    if difference is None:
                        break
                    print(f"{title}: differs\n{difference}", flush=True)
                self.assertIsNone(difference)


class Comparison(unittest.TestCase):
    """A test that compares numbers by name does find what differs."""

    def differs(self, shown, said):
        return first_difference(Names(), shown, said)

    def test_numbers__stand_for_those_of_the_run(self):
        self.assertIsNone(self.differs(["a 0x123456 4", "1193047 0.5"], ["a  0x00ab00 4", "43777 7.25"]))
        self.assertIsNone(self.differs(["a", "...", "d"], ["a", "b", "c", "d"]))
        self.assertIsNone(self.differs(["0x123456 0x123457"], ["0xffffff 0x000000"]))

    def test_differences__are_found(self):
        for shown, said in ((["psn 1193046", "psn 1193047"], ["psn 77777", "psn 77777"]),
                            (["qp 0x123456 0x123456"], ["qp 0x200000 0x200001"]),
                            (["qp 0x123456"], ["qp 123456"]), (["opcode 4"], ["opcode 17"]), (["127.0.0.1"], ["127.0.0.2"]),
                            (["a"], ["a", "b"]), (["a", "b"], ["a"]), (["a", "...", "d"], ["a", "b"])):
            self.assertIsNotNone(self.differs(shown, said), f"{shown} {said}")

    def test_commands__are_typed_with_numbers_of_the_run(self):
        names = Names()
        self.assertTrue(names.are_same("PSN 0x79244f", "PSN 0x00beef"))
        self.assertEqual(names.typed("tshark -Y 'psn == 0x79244f'"), "tshark -Y 'psn == 0xbeef'")


def missing():
    """What this machine lacks for the lessons, or None."""
    for program in PROGRAMS:
        if not shutil.which(program):
            return program
    if subprocess.run(["python3", "-c", "import pyverbs"], stderr=subprocess.DEVNULL).returncode:
        return "python3-pyverbs"
    return None if can_be_apart() else "a network of its own (unshare -rn)"


def enter(arguments):
    """Runs this test in the shell that the page's first command opens."""
    (command, _), = steps_of_section(sections_of((pathlib.Path(arguments[1]) / "docs/lessons.md").read_text())[0][1])
    again = shlex.join([sys.executable, __file__, *arguments[:2], INSIDE])
    return subprocess.run(["sh", "-c", command], input=f"exec {again}\n", text=True).returncode


if __name__ == "__main__":
    Lessons.build, Lessons.root = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    if INSIDE in sys.argv:
        unittest.main(argv=sys.argv[:1] + sys.argv[4:])
    os.environ.update(PATH=f"/usr/bin:{os.environ['PATH']}", LC_ALL="C.UTF-8")
    lacks = missing()
    if lacks:
        print(f"lessons_test: skipped, as there is no {lacks}")
        sys.exit(77)
    sys.exit(enter([str(Lessons.build), str(Lessons.root)]))
