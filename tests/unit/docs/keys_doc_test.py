#!/usr/bin/env python3
"""keys_doc_test VERBENA PAGE [--write]: the manual page verbena-sim(1) lists the keys of a scenario as `verbena sim --keys`
prints them, with kinds, defaults and meanings, and every option of --help. --write puts the keys there. Prints "N passed, N failed"."""

import pathlib
import re
import subprocess
import sys

LIST = re.compile(r'(\.\\" Keys:[^\n]*\n)(.*)(\.\\" End of keys\.\n)', re.S)


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def page_list(keys):
    """The page's form of what --keys prints: a line with the key, an indented one with kind, [default] and meaning."""
    rows = re.findall(r"^(\S+)\n    ([^\s\[:]+)(?: \[(.*?)\])?: (.*)$", keys, re.M)
    return "".join(f".TP\n\\fB{roff(key)}\\fR \\fI{roff(kind)}\\fR{roff(f' [{preset}]' if preset else '')}\n{roff(meaning)}\n"
                   for key, kind, preset, meaning in rows), len(rows)


def main():
    verbena, page = sys.argv[1], pathlib.Path(sys.argv[2])
    keys = subprocess.run([verbena, "sim", "--keys"], check=True, stdout=subprocess.PIPE, text=True).stdout
    wanted, count = page_list(keys)
    text = page.read_text()
    if "--write" in sys.argv:
        page.write_text(LIST.sub(lambda found: found[1] + wanted + found[3], text))
        return 0
    usage = subprocess.run([verbena, "sim", "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
    unnamed = [option for option in sorted(set(re.findall(r"--[a-z-]*[a-z]", usage))) if roff(option) not in text]
    lines = len(re.findall(r"^[a-z]", keys, re.M))
    checks = {"each key is understood": count == lines and count > 50, "the page has them all": LIST.search(text)[2] == wanted,
              f"the page has every option{' but ' if unnamed else ''}{', '.join(unnamed)}": not unnamed}
    for claim, holds in checks.items():
        if not holds:
            print(f"keys_doc__{claim}: no. Run {sys.argv[0]} {verbena} {page} --write")
    failed = list(checks.values()).count(False)
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
