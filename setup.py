"""The part of the wheel's build that pyproject.toml cannot say: the version, which is meson's, the tree that meson installs,
and for which systems the wheel is."""

import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70.1
    from wheel.bdist_wheel import bdist_wheel

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "python"))

import build_tree


class BuildTree(build_py):
    def run(self):
        super().run()
        package = Path(self.build_lib) / "verbena"
        build_tree.install(ROOT, package / "tree")
        page = package / "__init__.py"
        page.write_text(page.read_text().replace("@VERSION@", build_tree.version(ROOT)))


class WithBinaries(Distribution):
    def has_ext_modules(self):
        return True


class PlatformWheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", build_tree.platform_tag(Path(self.bdist_dir) / "verbena/tree")


setup(version=build_tree.version(ROOT), distclass=WithBinaries, cmdclass={"build_py": BuildTree, "bdist_wheel": PlatformWheel})
