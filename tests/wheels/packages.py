"""What is installed from PyPI: each group's wheels, pinned, into a virtual environment that is made once and kept."""

import collections
import os
import pathlib
import signal
import subprocess
import sys
import time

# alone: without what its metadata asks for. nixl asks for torch, which it uses where it is there.
Wheel = collections.namedtuple("Wheel", "name version alone", defaults=(False,))

NUMPY = Wheel("numpy", "2.4.6")
NIXL = Wheel("nixl-cu12", "1.5.1", True)
GROUPS = {
    "nixl": (NUMPY, NIXL),
    "ucx": (NIXL, Wheel("libucx-cu12", "1.22.0")),
    "mooncake": (NUMPY, Wheel("mooncake-transfer-engine-non-cuda", "0.3.13.post1")),
    "mpi4py": (NUMPY, Wheel("mpi4py", "4.1.2")),
    "impi": (NUMPY, Wheel("mpi4py", "4.1.2"), Wheel("impi-rt", "2021.18.1")),
    "torch": (NUMPY, Wheel("torch", "2.15.0")),  # with all of its CUDA libraries, without which it is not imported
    "nccl": (),
}


class NotInstalled(Exception):
    """A wheel is not to be had here; the text says what pip said."""


class Environment:
    def __init__(self, path):
        self.path = pathlib.Path(path).resolve()
        self.python = self.path / "bin/python"
        self._failed = {}

    def program(self, name):
        return self.path / "bin" / name

    def packages(self):
        """Where the wheels lie."""
        return next(self.path.glob("lib/python*/site-packages"))

    def install(self, group):
        for wheel in GROUPS[group]:
            if wheel in self._failed:
                raise NotInstalled(self._failed[wheel])
            if not self._has(wheel):
                try:
                    self._install(wheel)
                except NotInstalled as reason:
                    self._failed[wheel] = str(reason)
                    raise

    def _has(self, wheel):
        stem = wheel.name.replace("-", "_")
        return any(self.path.glob(f"lib/python*/site-packages/{stem}-{wheel.version}.dist-info"))

    def install_file(self, path):
        """A wheel that is here, in place of an earlier one of this name."""
        self._make()
        self._run([*self._pip(), "--no-index", "--force-reinstall", str(path)], f"installing {path}")

    def _install(self, wheel):
        self._make()
        self._run([*self._pip(), *["--no-deps"] * wheel.alone, f"{wheel.name}=={wheel.version}"],
                  f"installing {wheel.name} {wheel.version}")

    def _make(self):
        if not self.program("pip").exists():  # it comes last
            self._run([sys.executable, "-m", "venv", str(self.path)], f"making {self.path}")

    def _pip(self):
        return [str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]

    def _run(self, command, what):
        print(f"{what} ...", flush=True)
        began = time.monotonic()
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              start_new_session=True) as child:
            try:
                said = child.communicate()[0].strip().splitlines()
            except BaseException:
                os.killpg(child.pid, signal.SIGKILL)
                raise
        if child.returncode:
            raise NotInstalled(f"{what}: {said[-1] if said else f'status {child.returncode}'}")
        print(f"{what}: {time.monotonic() - began:.0f} s", flush=True)
