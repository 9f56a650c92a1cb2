#!/usr/bin/env python3
"""links_test ROOT BUILD: each link of README.md, the other pages of ROOT and those of docs/ leads to a file of the tree, and
that of a page which is installed leads to one that is installed too, under the name that the link has."""

import json
import pathlib
import re
import subprocess
import sys
import unittest

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def links_of(page):
    """The relative ones, as paths."""
    for target in LINK.findall(page.read_text()):
        if "://" not in target:
            yield target, (page.parent / target).resolve()


def installed(build):
    """Of each file or folder of the tree that is installed: where."""
    said = subprocess.run([*MESON, "introspect", "--install-plan", str(build)], stdout=subprocess.PIPE, text=True, check=True)
    plan = json.loads(said.stdout)
    return {pathlib.Path(source).resolve(): place["destination"]
            for kind in ("data", "install_subdirs") for source, place in plan.get(kind, {}).items()}


class LinksTest(unittest.TestCase):
    def setUp(self):
        self.pages = sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").glob("*.md"))

    def test_each_link_leads_to_a_file(self):
        self.assertGreater(len(self.pages), 20)
        for page in self.pages:
            for target, path in links_of(page):
                with self.subTest(page=page.name, link=target):
                    self.assertTrue(path.exists())

    def test_each_link_of_an_installed_page_leads_to_an_installed_file(self):
        where = installed(BUILD)
        self.assertIn(ROOT / "README.md", where)
        for page in self.pages:
            if page not in where:
                continue
            for target, path in links_of(page):
                with self.subTest(page=page.name, link=target):
                    self.assertIn(path, where)
                    expected = (pathlib.Path(where[page]).parent / target).as_posix()
                    self.assertEqual(re.sub(r"[^/]+/\.\./", "", expected), where[path])


if __name__ == "__main__":
    ROOT, BUILD = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
    MESON = sys.argv[3:]
    unittest.main(argv=sys.argv[:1])
