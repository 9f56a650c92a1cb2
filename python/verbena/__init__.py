"""Verbena, RDMA for machines without RDMA hardware, as a package: its command and its libraries lie in `tree/` beside this
file, and run without Python. `verbena run -- PROGRAM`, or `python -m verbena run -- PROGRAM`, runs a program with them."""

import os
import sys

__version__ = "@VERSION@"
__all__ = ["command", "execute", "library_path"]

_TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tree")


def command():
    """The path of the `verbena` command."""
    return os.path.join(_TREE, "bin", "verbena")


def library_path():
    """The directory of libibverbs.so.1 and librdmacm.so.1: for LD_LIBRARY_PATH, before a program is started."""
    return os.path.join(_TREE, "lib", "verbena")


def execute():
    """Becomes the command, with this process's arguments: no Python is left."""
    try:
        os.execv(command(), ["verbena", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"verbena: cannot run {command()}: {error.strerror}. Is the wheel one for this machine "
                 f"({os.uname().machine})? pip install --force-reinstall verbena")
