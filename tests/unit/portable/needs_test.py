#!/usr/bin/env python3
"""needs_test READELF FILE...: what the installed files need of a system, so that one directory can be copied into any
image with glibc 2.34 or newer: no other library, no symbol of a newer version, no other feature of its loader."""

import pathlib
import re
import subprocess
import sys
import unittest

GLIBC = (2, 34)
LIBRARIES = re.compile(r"libc\.so\.6|libc\.so|ld-linux[-\w]*\.so\.\d|libibverbs\.so\.1|librdmacm\.so\.1")    # libc.so: musl


def read_libraries(dynamic):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)


def newer_versions(text):
    """Of readelf -V: what is asked of the C library beyond the one we promise to run with."""
    asked = set(re.findall(r"Name: (GLIBC_\S+)", text))
    return sorted(name for name in asked
                  if not re.fullmatch(r"GLIBC_[\d.]+", name) or tuple(map(int, name[6:].split("."))) > GLIBC)


def symbols_of(versions, table):
    """Who asks: names of readelf --dyn-syms with one of these versions."""
    return [name for name in re.findall(r"\S+@\S+", table) if name.split("@")[-1] in versions]


class Needs(unittest.TestCase):
    readelf, files = None, []

    def read(self, option, file):
        return subprocess.run([self.readelf, "-W", option, file], check=True, stdout=subprocess.PIPE, text=True).stdout

    def test_installed_files__need_no_library_but_the_c_library_and_each_other(self):
        for file in self.files:
            with self.subTest(pathlib.Path(file).name):
                libraries = read_libraries(self.read("-d", file))
                self.assertTrue(libraries)
                self.assertEqual([name for name in libraries if not LIBRARIES.fullmatch(name)], [])

    def test_installed_files__ask_for_no_symbol_newer_than_glibc_2_34(self):
        for file in self.files:
            with self.subTest(pathlib.Path(file).name):
                newer = newer_versions(self.read("-V", file))
                self.assertEqual(symbols_of(newer, self.read("--dyn-syms", file)) or newer, [])

    def test_checker__sees_what_is_newer(self):
        text = "  Name: GLIBC_2.34  Flags: none\n  Name: GLIBC_2.2.5  Flags\n  Name: GLIBC_2.38  Flags: none\n" \
               "  Name: GLIBC_ABI_DT_RELR  Flags: none\n"
        self.assertEqual(newer_versions(text), ["GLIBC_2.38", "GLIBC_ABI_DT_RELR"])
        table = "  7: 0000 0 FUNC GLOBAL DEFAULT UND __isoc23_strtol@GLIBC_2.38 (3)\n  8: 0 FUNC UND read@GLIBC_2.2.5 (2)"
        self.assertEqual(symbols_of(["GLIBC_2.38"], table), ["__isoc23_strtol@GLIBC_2.38"])


if __name__ == "__main__":
    Needs.readelf, *Needs.files = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
