#!/usr/bin/env python3
"""format_test ROOT: each C file that git knows is as clang-format lays it out, in the version that this file names: another one
differs here and there, so with it this is skipped. And lines have 120 columns at most, but for a few."""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

VERSION = 14
COLUMNS = 120
TAB = 8
LONGER = 40  # so many lines may have more: literals and tables that would not be clearer when cut
AT_ONCE = 16  # files for each process


def find_program():
    """(program, why there is none)"""
    seen = []
    for name in (f"clang-format-{VERSION}", "clang-format"):
        if program := shutil.which(name):
            said = subprocess.run([program, "--version"], stdout=subprocess.PIPE, text=True).stdout
            if f"version {VERSION}." in said:
                return program, None
            seen.append(said.strip())
    return None, f"clang-format {VERSION} is not installed" + (f", only {seen[-1]}" if seen else "")


def differences(program, root, paths):
    """"FILE:LINE: ..." of each first line that would be laid out otherwise."""
    said = subprocess.run([program, "--dry-run", "--ferror-limit=1", *paths], cwd=root, stderr=subprocess.PIPE, text=True).stderr
    return {match[1]: f"{match[0]}: not as {pathlib.Path(program).name} has it: make format"
            for match in re.finditer(r"^([^\s:]+):\d+(?=:\d+: (?:warning|error): code should be clang-formatted)", said, re.M)}


def all_differences(program, root, paths):
    parts = [paths[at:at + AT_ONCE] for at in range(0, len(paths), AT_ONCE)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [line for part in pool.map(lambda part: differences(program, root, part), parts) for line in part.values()]


def long_lines(root, paths):
    for path in paths:
        for number, line in enumerate((root / path).read_text(errors="replace").split("\n"), 1):
            if (width := len(line.expandtabs(TAB))) > COLUMNS:
                yield f"{path}:{number}: {width} columns"


def tracked(root):
    """Of a tree that git does not know, as a package's, all C files."""
    said = subprocess.run(["git", "ls-files", "-z", "*.c", "*.h"], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True) if shutil.which("git") else None
    if said is None or said.returncode:
        return sorted(str(path.relative_to(root)) for folder in ("src", "tests", "bench") for path in (root / folder).rglob("*.[ch]"))
    return [name for name in said.stdout.split("\0") if name and (root / name).exists()]


class Format(unittest.TestCase):
    root = None

    def program(self):
        program, why = find_program()
        if why:
            self.skipTest(why)
        return program

    def test_files__are_laid_out(self):
        wrong = all_differences(self.program(), self.root, tracked(self.root))
        if wrong:
            self.fail("\n" + "\n".join(wrong))

    def test_long_lines__are_few(self):
        wrong = list(long_lines(self.root, tracked(self.root)))
        if len(wrong) > LONGER:
            self.fail(f"{len(wrong)} lines have more than {COLUMNS} columns, {LONGER} may:\n" + "\n".join(wrong))

    def test_layout_of_another_kind__is_told_with_its_line(self):
        program = self.program()
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            shutil.copy(self.root / ".clang-format", root)
            (root / "a.c").write_text("int a;\nint  b;\n")
            (root / "b.c").write_text("int b;\n")
            said, = all_differences(program, root, ["a.c", "b.c"])
            self.assertTrue(said.startswith("a.c:2: "), said)

    def test_width__counts_tabs_as_eight(self):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            (root / "a.c").write_text("\t" + "x" * 112 + "\n\t" + "x" * 113 + "\n")
            self.assertEqual(list(long_lines(root, ["a.c"])), ["a.c:2: 121 columns"])


if __name__ == "__main__":
    Format.root = pathlib.Path(sys.argv[1]).resolve()
    result = unittest.main(argv=sys.argv[:1], exit=False).result
    for _, reason in result.skipped[:1]:
        print(f"skipped: the layout is not compared: {reason}")
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)  # 77: Meson's word for skipped
