"""A clean Debian of its own in a directory, made by mmdebstrap. What runs in it has its own mounts, processes and, unless
it needs the archive, network: when it ends, or is killed, nothing of these is left."""

import os
import pathlib
import shutil
import subprocess

from tree import files_of

MIRROR = "http://deb.debian.org/debian"
SOURCE = "/src/verbena"

ALONE = ("unshare", "--mount", "--pid", "--fork", "--kill-child")

ENTER = """set -e
mount --make-rprivate /
mount -t proc proc "$1/proc"
mount -t sysfs sys "$1/sys"
mount -t tmpfs tmpfs "$1/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
mount -t tmpfs tmpfs "$1/run"
[ "$3" = network ] || ip link set lo up
exec chroot "$1" /bin/bash -c "$2"
"""


# A clean root is clean of this machine's variables too: certificates, compilers, package indexes. Of the way to the archive it is told.
CLEAN = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
         **{name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}}


class Broken(Exception):
    """A command that failed; its text is what one wants to see of it."""


class Root:
    def __init__(self, suite, path, log):
        self.suite, self.path, self._log_path = suite, pathlib.Path(path), pathlib.Path(log)

    def make(self, packages=("make", "ca-certificates", "python3"), architectures=None, mirror=MIRROR):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._finish(subprocess.Popen(
            [*ALONE, "--mount-proc", "mmdebstrap", "--variant=minbase", "--dpkgopt=force-unsafe-io", f"--include={','.join(packages)}",
             *([f"--architectures={architectures}"] if architectures else []), self.suite, self.path, mirror],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"),
            "mmdebstrap", 1800)

    def put_tree(self, tree):
        """The tree's files, as they are."""
        target = self.path / SOURCE.lstrip("/")
        target.mkdir(parents=True, exist_ok=True)
        packed = subprocess.run(["tar", "-c", "--null", "--no-recursion", "-T", "-"], cwd=tree, check=True,
                                input="\0".join(files_of(tree)).encode(), stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "-x", "--no-same-owner", "-C", target], input=packed, check=True)

    def run(self, command, seconds=1800, network=False):
        """What a shell's command printed in the tree, standard error included. Broken: it did not end with 0."""
        wanted = f"cd {SOURCE} 2>/dev/null || cd /; export LC_ALL=C.UTF-8 HOME=/root DEBIAN_FRONTEND=noninteractive\n{command}"
        process = subprocess.Popen(
            [*ALONE, *([] if network else ["--net"]), "sh", "-c", ENTER,
             "sh", self.path, wanted, "network" if network else "none"],
            env=CLEAN, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        return self._finish(process, command, seconds)

    def _finish(self, process, command, seconds):
        try:
            output = process.communicate(timeout=seconds)[0]
        except BaseException as error:
            process.kill()
            output = process.communicate()[0]
            self._log(command, output)
            if isinstance(error, subprocess.TimeoutExpired):
                raise Broken(f"not done after {seconds} s: {_end_of(output)}") from None
            raise
        self._log(command, output)
        if process.returncode:
            raise Broken(f"status {process.returncode}: {_end_of(output)}")
        return output

    def _log(self, command, output):
        with self._log_path.open("a") as log:
            log.write(f"\n==== {command}\n{output}")

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)


def _end_of(output):
    return "\n".join(output.strip().splitlines()[-12:])
