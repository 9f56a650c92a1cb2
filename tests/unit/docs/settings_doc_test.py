#!/usr/bin/env python3
"""settings_doc_test SOURCE_ROOT: docs/settings.md and the manual page list exactly the settings of src/host/settings.h,
with the same allowed values, defaults and meanings. Prints "N passed, N failed"."""

import pathlib
import re
import sys

FIELDS = ("allowed values", "default", "meaning")


def rows_of_header(text):
    """{name: (allowed, default, meaning)} of VB_SETTINGS, in order."""
    table = text.split("#define VB_SETTINGS(X)", 1)[1]
    table = table.split("\n\n", 1)[0].replace("\\\n", "\n")
    string = r'"((?:[^"\\]|\\.)*)"'
    rows = re.findall(r"X\((\w+),\s*%s,\s*%s,\s*%s\)" % (string, string, string), table)
    return {name: (allowed, default, meaning) for name, allowed, default, meaning in rows}


def rows_of_document(text):
    rows = {}
    for line in text.splitlines():
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
        if len(cells) == 4 and cells[0].startswith("`VERBENA_"):
            rows[cells[0].strip("`")[len("VERBENA_"):]] = (cells[1], cells[2].strip("`"), cells[3])
    return rows


def names_of_manual(text):
    return re.findall(r"^\.B VERBENA_(\w+)", text, re.M)


def check_document(expected, found):
    """Yields (claim, complaint or None)."""
    yield "the same settings in the same order", (
        None if list(expected) == list(found) else f"header {list(expected)}, document {list(found)}")
    for name in expected:
        if name not in found:
            continue
        for field, want, have in zip(FIELDS, expected[name], found[name]):
            yield f"{name}: {field}", None if want == have else f"header '{want}', document '{have}'"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    expected = rows_of_header((root / "src/host/settings.h").read_text())
    checks = [("settings.h has settings", None if expected else "none found")]
    checks += check_document(expected, rows_of_document((root / "docs/settings.md").read_text()))
    manual = names_of_manual((root / "docs/verbena.1").read_text())
    checks.append(("the manual page lists them all", None if manual == list(expected) else f"it lists {manual}"))
    failed = 0
    for claim, complaint in checks:
        if complaint:
            failed += 1
            print(f"settings_doc__{claim}: {complaint}")
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
