#!/usr/bin/env python3
"""product_test BUILD NINJA: the target "product" of a build, which `make` and `make demo` compile, is all that a build without
tests would make of src/: the programs and libraries that are installed, and what running them from the build takes."""

import json
import pathlib
import subprocess
import sys
import unittest


class Product(unittest.TestCase):
    build = ninja = None

    def inputs(self, target):
        said = subprocess.run([self.ninja, "-C", self.build, "-t", "query", target], check=True, stdout=subprocess.PIPE, text=True).stdout
        return {line.strip().removeprefix("| ") for line in said.split("outputs:")[0].splitlines() if line.startswith("    ")}

    def test_product__is_all_that_is_made_of_src(self):
        made = {name for name in self.inputs("all") if name.startswith("src/") and not name.endswith(".a")}
        self.assertIn("src/rdmacm/libibverbs.so.1", made)
        self.assertEqual(self.inputs("product"), made)

    def test_product__has_what_is_installed(self):
        targets = json.loads((self.build / "meson-info/intro-targets.json").read_text())
        installed = {str(pathlib.Path(name).relative_to(self.build)) for target in targets if target["installed"] for name in target["filename"]}
        self.assertIn("src/cli/verbena", installed)
        self.assertLessEqual({name for name in installed if name.startswith("src/")}, self.inputs("product"))


if __name__ == "__main__":
    Product.build, Product.ninja = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    unittest.main(argv=sys.argv[:1])
