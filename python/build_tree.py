"""What the wheel's build does with meson: an installed tree without links, and which glibc it needs."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NEEDED = {"libc.so.6", "libm.so.6"}  # and the loader: all that a manylinux wheel may count on here
PARTS = ("bin", "lib/verbena", "libexec/verbena", "share/man")


def version(root):
    return re.search(r"version: '([^']+)'", (root / "meson.build").read_text())[1]


def run(*command, **options):
    try:
        return subprocess.run([str(word) for word in command], check=True, text=True, **options)
    except FileNotFoundError:
        sys.exit(f"verbena: {command[0]} is not here. To build from source: a C compiler, meson, ninja and pkg-config, and the "
                 "headers of libibverbs, librdmacm, libyaml and zlib (Debian: libibverbs-dev librdmacm-dev libyaml-dev "
                 "zlib1g-dev)")


def links_in(folder, names):
    return [name for name in names if os.path.islink(os.path.join(folder, name))]


def install(root, tree):
    """Builds a release of root, or takes the one in the build directory VERBENA_BUILD, and copies what is needed at run time
    into tree."""
    with tempfile.TemporaryDirectory() as scratch:
        build, staged = os.environ.get("VERBENA_BUILD"), Path(scratch) / "staged"
        if not build:
            build = Path(scratch) / "build"
            run("meson", "setup", build, root, "--prefix=/verbena", "-Dtests=false", "-Db_ndebug=true")
            run("ninja", "-C", build)
        run("meson", "install", "-C", build, "--quiet", "--no-rebuild", env={**os.environ, "DESTDIR": str(staged)})
        (prefix,) = (path.parent for path in staged.rglob("bin"))
        shutil.rmtree(tree, ignore_errors=True)
        for part in PARTS:
            shutil.copytree(prefix / part, tree / part, ignore=links_in)  # links are for linkers; a wheel has none


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def platform_tag(tree):
    """manylinux by the newest symbol of glibc that a file of tree asks for (PEP 600)."""
    newest = (2, 17)
    binaries = [path for path in tree.rglob("*") if path.is_file() and is_elf(path)]
    if not binaries:
        sys.exit(f"verbena: no program is in {tree}: what meson installs has moved")
    for path in binaries:
        said = run("readelf", "-dVW", path, stdout=subprocess.PIPE).stdout
        needed = {name for name in re.findall(r"\(NEEDED\).*\[(.+?)\]", said) if not name.startswith("ld-linux")}
        if needed - NEEDED - {"libibverbs.so.1", "librdmacm.so.1"}:
            sys.exit(f"verbena: {path.name} needs {needed - NEEDED}: no wheel can be made of it")
        found = re.findall(r"Name: GLIBC_(\d+)\.(\d+)", said)
        newest = max([newest] + [(int(major), int(minor)) for major, minor in found])
    return f"manylinux_{newest[0]}_{newest[1]}_{os.uname().machine}"
