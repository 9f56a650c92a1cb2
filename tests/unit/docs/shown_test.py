#!/usr/bin/env python3
"""shown_test BUILD ROOT [--write]: what the pages show of commands is what these commands say. Of README, docs/*.md and the
manual pages:

- An indented block of Markdown that begins with "$ COMMAND" goes on with what that prints. If it runs programs
  (`verbena run`), lines that begin with "$ " and end with "&" are started first, in a network of their own, and numbers
  may differ.
- A table of Markdown below the line "<!-- figures of the commands above -->" has a row for each run of the commands in the
  block before. What its columns are is found by their names in COLUMNS; the first is the page's own.
- Every simulation that a page names is accepted, every file of this tree that it runs is there, and each `make` is a target.
- Programs of bench/ that need Verbena's library are named with `verbena run`, and so run.

--write (make shown) puts into the pages what the commands say. What a simulation cost, which differs each time, is let pass."""

import difflib
import functools
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

BLOCK = re.compile(r"^    .*\n(?:    .*\n|\n(?=    ))*", re.M)
MARK = "<!-- figures of the commands above -->\n"
TABLE = re.compile(r"(?P<commands>(?:^    .*\n)+)\n" + re.escape(MARK) + r"(?P<table>(?:^\|.*\n)+)", re.M)
# What a run costs; and of a comparison's lines the last column.
COST = re.compile(r" in \S+ s of CPU time, after .*|(?<=[\d ]) +[\d.]+ [kM]?(?=$|  LOSSLESS DROPS$)", re.M)
# What differs from run to run of real programs.
NUMBER = re.compile(r"\b(?:0x[0-9a-f]+|\d[\d.]*)\b")
APART = ["unshare", "-rn", "sh", "-c", 'ip link set lo up; exec "$@"', "apart"]
README_LINES = 150
OWN_TEST = "lessons.md"  # its blocks go on from each other: lessons_test.py runs them
TREE = ("build/", "bench/", "tests/", "scripts/", "examples/")


# ---- Figures ----------------------------------------------------------------------------------------------------------

def three_digits(value):
    """12345.6 is "12,300", 3.284 "3.28"."""
    digits = f"{value:.3g}"
    return f"{float(digits):,.0f}" if "e" in digits or float(digits) >= 1000 else digits.ljust(4, "0") if "." in digits else digits


def ms(picoseconds):
    value = picoseconds / 1e9
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f} ms"


def us(picoseconds):
    return f"{picoseconds / 1e6:,.0f} us"


def kb(size):
    return f"{three_digits(size / 1e3)} kB" if size >= 1e5 else f"{size / 1e3:.0f} kB"


def smallest(result):
    """Of the flows of the smallest size that there are."""
    return next(iter(result["summary_by_size"].values()))


COLUMNS = {
    "last flow at": lambda result: ms(result["jct_ps"]),
    "all done": lambda result: ms(result["jct_ps"]),
    "half of the flows by": lambda result: ms(result["summary"]["fct_ps"]["p50"]),
    "short flows, median": lambda result: us(smallest(result)["fct_ps"]["p50"]),
    "queue, mean": lambda result: kb(result["busiest_links"][0]["mean_queued_bytes"]),
    "at most": lambda result: kb(result["busiest_links"][0]["most_queued_bytes"]),
    "drops": lambda result: f"{result['drops']:,}",
    "pauses": lambda result: f"{result['pauses']:,}",
    "PAUSE frames": lambda result: f"{result['pauses']:,}",
}


# ---- Commands ---------------------------------------------------------------------------------------------------------

def commands_of(block):
    """Of an indented block: a line each, without what is said of it, "\\" going on in the next."""
    text = re.sub(r"\\\n", " ", block)
    return [command for command in (re.sub(r"(^| )#.*", "", line).strip() for line in text.splitlines()) if command]


@functools.cache
def can_be_apart():
    return bool(shutil.which("unshare") and shutil.which("ip") and shutil.which("ibv_rc_pingpong")) and \
        subprocess.run(APART + ["true"], stderr=subprocess.DEVNULL).returncode == 0


class Pages:
    def __init__(self, build, root):
        self.build, self.root = build, root
        self.pages = [root / "README.md", *sorted((root / "docs").glob("*.md"))]

    def sim(self, command, *more):
        words = shlex.split(command)
        words[0] = str(self.build / "src/cli/verbena")
        return subprocess.run(words + ["--no-progress", *more], cwd=self.root, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=300)

    def programs(self, commands):
        """What the last command prints, its standard error first, while the others run; without the servers' own."""
        script = "".join(f"{command[:-1]} >/dev/null 2>&1 & sleep 2\n" if command.endswith("&") else
                         f"{command} 2>errors >output\nstatus=$?\nkill $! 2>/dev/null\ncat errors output\nexit $status\n"
                         for command in commands)
        with tempfile.TemporaryDirectory(prefix="verbena-") as scratch:
            (pathlib.Path(scratch) / "build").symlink_to(self.build)
            return subprocess.run(APART + ["timeout", "60", "sh", "-c", script], cwd=scratch, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout

    def renewed_programs(self, block):
        lines = [line[4:].rstrip() for line in block.rstrip("\n").split("\n")]
        commands = [line[2:] for line in lines if line.startswith("$ ")]
        shown, said = lines[len(commands):], self.programs(commands).rstrip("\n").split("\n")
        if [NUMBER.sub("N", line) for line in shown] == [NUMBER.sub("N", line.rstrip()) for line in said]:
            return block
        return "".join(f"    {line}".rstrip() + "\n" for line in lines[:len(commands)] + said)

    def renewed_block(self, found):
        first, *shown = found[0].split("\n")
        if not first.startswith("    $ "):
            return found[0]
        if first.startswith("    $ build/verbena run "):
            return self.renewed_programs(found[0]) if can_be_apart() else found[0]
        said = self.sim(first[6:]).stdout.rstrip("\n").split("\n")
        shown = "\n".join(line[4:].rstrip() for line in shown).rstrip("\n")
        said = "\n".join(line.rstrip() for line in said)
        if COST.sub("", shown) == COST.sub("", said):
            return found[0]
        return "\n".join([first] + [f"    {line}" if line else "" for line in said.split("\n")]) + "\n"

    def renewed_table(self, found):
        runs = []
        for command in commands_of(found["commands"]):
            said = json.loads(self.sim(command, "--json").stdout)
            runs += [run["result"] for run in said] if isinstance(said, list) else [said]
        heading, line, *rows = found["table"].splitlines()
        columns = [COLUMNS[name.strip()] for name in heading.split("|")[2:-1]]
        if len(rows) != len(runs):
            raise ValueError(f"{len(rows)} rows of {len(runs)} runs: {heading}")
        rows = [" | ".join(["|" + row.split("|")[1].rstrip(), *(column(run) for column in columns)]) + " |"
                for row, run in zip(rows, runs)]
        return found["commands"] + "\n" + MARK + "\n".join([heading, line, *rows]) + "\n"

    def renewed(self, page):
        if page.name == OWN_TEST:
            return page.read_text()
        return TABLE.sub(self.renewed_table, BLOCK.sub(self.renewed_block, page.read_text()))

    def commands(self):
        """(page, command) of all that a page has a reader type."""
        for page in self.pages:
            text = page.read_text()
            spans = re.findall(r"`([^`\n]+)`", BLOCK.sub("", text))
            for block in BLOCK.findall(text):
                lines = commands_of(block)
                typed = [line[2:] for line in lines if line.startswith("$ ")]
                spans += typed or lines
            for span in spans:
                yield page.name, span
        for page in sorted((self.root / "docs").glob("*.1")):
            for line in page.read_text().replace("\\-", "-").splitlines():
                if line.startswith("verbena sim "):
                    yield page.name, re.sub(r"(?<= )([\w-]+\.yaml)", r"examples/\1", f"build/{line}")


class Shown(unittest.TestCase):
    pages = maxDiff = None

    def test_pages__show_what_commands_say(self):
        for page in self.pages.pages:
            with self.subTest(page.name):
                differs = difflib.unified_diff(page.read_text().splitlines(), self.pages.renewed(page).splitlines(), "shown", "said",
                                               n=0, lineterm="")
                self.assertEqual("\n".join(differs), "", "Run: make shown")

    def test_simulations__are_accepted(self):
        """Each for a moment of virtual time: 4 says that it ended so."""
        said = {}
        for page, command in self.pages.commands():
            if not re.match(r"build/verbena sim .*examples/", command) or re.search(r"\bFILE\b", command):
                continue
            command = re.sub(r"--pcap \S+", "--pcap /dev/null", command)
            moment = () if "--loggops" in command else ("--set", "run.limit=1us")      # that has no network, and no time to limit
            done = said[command] = said.get(command) or self.pages.sim(command, *moment)
            self.assertIn(done.returncode, (0, 4), f"{page}: {command}: {done.stderr}")
        self.assertGreater(len(said), 20)

    def test_files__that_are_run_exist(self):
        targets = set(re.findall(r"^([a-z-]+):", (self.pages.root / "Makefile").read_text(), re.M))
        for page, command in self.pages.commands():
            words = command.split()
            with self.subTest(f"{page}: {command}"):
                if words[0] == "make" and len(words) > 1 and re.fullmatch(r"[a-z-]+", words[1]):
                    self.assertIn(words[1], targets)
                for word in words if words[0].startswith(TREE) or words[0] == "python3" else []:
                    if word.startswith(TREE) and "*" not in word and not word.startswith(("build/venv", "build/verbena")):
                        place = self.pages.build / word[6:] if word.startswith("build/") else self.pages.root / word
                        self.assertTrue(place.exists(), f"{word} is not there")

    def test_programs_that_need_the_library__are_run_with_it(self):
        """And come to an end; in a network of their own, as they talk over UDP port 4791."""
        count = 0
        for page, command in self.pages.commands():
            for name in re.findall(r"build/(bench/\w+)", command):
                if b"libibverbs.so.1" not in (self.pages.build / name).read_bytes():
                    continue
                count += 1
                with self.subTest(f"{page}: {command}"):
                    self.assertTrue(command.startswith("build/verbena run "), "it finds no library")
                    if not can_be_apart():
                        self.skipTest("no network of its own")
                    words = shlex.split(command.replace("build/verbena", str(self.pages.build / "src/cli/verbena"))
                                        .replace(f"build/{name}", str(self.pages.build / name)))
                    done = subprocess.run(APART + words, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
                    self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(count, 1)

    def test_readme__is_short_and_shows_the_demo(self):
        text = (self.pages.root / "README.md").read_text()
        self.assertLessEqual(text.count("\n"), README_LINES)
        sys.path.insert(0, str(self.pages.root / "bench"))
        import demo
        rows = [(program, what, unit) for program, what, unit in re.findall(
            r'yield "(\w+)", "([^"]+)", "([^"]+)"', pathlib.Path(demo.__file__).read_text())]
        rows += [(program, what, "Gb/s") for program, what in demo.BANDWIDTHS]
        block = next(block for block in BLOCK.findall(text) if demo.line("", "", "", demo.COLUMNS) in block)
        shown = [line[4:4 + len(demo.line("", "", "", []))].split() for line in block.splitlines()[1:]]
        self.assertEqual(sorted(shown), sorted(" ".join(row).split() for row in rows))

    def test_tables__are_held_against_runs(self):
        """What is checked is no less than was."""
        text = "\n".join(page.read_text() for page in self.pages.pages)
        self.assertGreaterEqual(len(TABLE.findall(text)), 4)
        self.assertEqual(len(TABLE.findall(text)), text.count(MARK))
        self.assertGreaterEqual(len(re.findall(r"^    \$ build/verbena sim", text, re.M)), 1)
        self.assertGreaterEqual(len(re.findall(r"^    \$ build/verbena run .*[^&]$", text, re.M)), 2)


if __name__ == "__main__":
    Shown.pages = Pages(*(pathlib.Path(argument).resolve() for argument in sys.argv[1:3]))
    if "--write" in sys.argv:
        for changed in Shown.pages.pages:
            changed.write_text(Shown.pages.renewed(changed))
    else:
        unittest.main(argv=sys.argv[:1] + sys.argv[3:])
