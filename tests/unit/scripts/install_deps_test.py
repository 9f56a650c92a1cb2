#!/usr/bin/env python3
"""install_deps_test ROOT: scripts/install-deps names the packages of all programs that tests look for, and starts no service of
theirs. With a dpkg, an apt-get and an update-rc.d of the test's own: nothing is installed."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

# Where the programs are whose absence skips a test. None: of every Debian, or nothing that a test would miss.
PACKAGES = {"cmtime": "rdmacm-utils", "mckey": "rdmacm-utils", "qperf": "qperf", "nginx": "nginx", "curl": "curl",
            "memcached": "memcached", "iperf3": "iperf3", "tshark": "tshark", "ip": "iproute2", "rping": "rdmacm-utils",
            "ibv_devices": "ibverbs-utils", "ibv_devinfo": "ibverbs-utils", "ibv_rc_pingpong": "ibverbs-utils",
            "unshare": "util-linux", "setpriv": "util-linux", "redis-server": "redis-server", "valgrind": "valgrind", "ib_write_bw": "perftest", "perftest": "perftest",
            "systemd-analyze": None, "git": None, "xz": "xz-utils", "gdb": None, "su": None, "cc": "gcc",
            "mpicc": None, "mpirun": None}

FAKES = {
    "dpkg-query": "echo not-installed",
    "id": "echo 0",
    "apt-get": 'echo "apt-get $*" >>"$LOG"; if [ -e "$POLICY_RC_D" ]; then sh "$POLICY_RC_D"; echo "policy $?" >>"$LOG"; fi; exit $APT',
    "update-rc.d": 'echo "update-rc.d $*" >>"$LOG"',
}


class InstallDeps(unittest.TestCase):
    root = None

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.place = pathlib.Path(scratch.name)
        self.policy, self.log = self.place / "policy-rc.d", self.place / "log"
        for name, body in FAKES.items():
            (self.place / name).write_text(f"#!/bin/sh\n{body}\n")
            (self.place / name).chmod(0o755)

    def install(self, *groups, apt=0, **fakes):
        for name, body in fakes.items():
            (self.place / name).write_text(f"#!/bin/sh\n{body}\n")
        environment = dict(os.environ, PATH=f"{self.place}:{os.environ['PATH']}", LOG=str(self.log), APT=str(apt),
                           POLICY_RC_D=str(self.policy))
        done = subprocess.run([self.root / "scripts/install-deps", *groups], env=environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        return done, self.log.read_text() if self.log.exists() else ""

    def test_programs_that_tests_look_for__are_installed(self):
        log = self.install("build", "check")[1]
        installed = log.split()
        for path in sorted((self.root / "tests").rglob("*.py")):
            if path.parts[len(self.root.parts) + 1] in ("wheels", "portability", "interop") or path == pathlib.Path(__file__).resolve():
                continue
            for program in re.findall(r'shutil\.which\("([^"]+)"\)', path.read_text()):
                with self.subTest(f"{path.name}: {program}"):
                    self.assertIn(program, PACKAGES)
                    if PACKAGES[program]:
                        self.assertIn(PACKAGES[program], installed)

    def test_services__do_not_start(self):
        done, log = self.install("check")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("policy 101\n", log)
        self.assertFalse(self.policy.exists())
        for service in ("nginx", "memcached", "tgt"):
            self.assertIn(f"update-rc.d {service} disable\n", log)

    def test_services__that_were_there_are_left_alone(self):
        has_all_but_curl = 'case "$*" in *curl*) echo not-installed;; *) echo installed;; esac'
        log = self.install("check", **{"dpkg-query": has_all_but_curl})[1]
        self.assertIn(" curl\n", log)
        self.assertNotIn("update-rc.d", log)

    def test_policy__of_the_machine_stays(self):
        self.policy.write_text("exit 104\n")
        log = self.install("check")[1]
        self.assertIn("policy 104\n", log)
        self.assertEqual(self.policy.read_text(), "exit 104\n")

    def test_policy__goes_where_apt_fails_too(self):
        done, _ = self.install("check", apt=100)
        self.assertNotEqual(done.returncode, 0)
        self.assertFalse(self.policy.exists())


if __name__ == "__main__":
    InstallDeps.root = pathlib.Path(sys.argv[1]).resolve()
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
