#!/usr/bin/env python3
"""Interop: unmodified programs on Verbena here, the same programs on a Linux kernel's rxe in a virtual machine there.

RXE_PEER names a script `rxe-peer` that boots such a machine (start, stop, exec CMD) with a tap device to it: here
10.77.0.1/30 and fd77::1 on rxepeer0, there 10.77.0.2 and fd77::2, rxe0 with GID index 1 for IPv4 and 2 for IPv6. The
tap lies in a network namespace of this test's. Both directions: server here and there. By hand, not in CI: it needs
qemu and takes minutes."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/conformance"))
sys.dont_write_bytecode = True

import places
import programs
from process import Failure, Process, finish

NAMESPACE = "verbena-interop"
SECONDS = 120  # an emulated machine is slow
GUEST = {4: ("10.77.0.2", 1), 6: ("fd77::2", 2)}

PINGPONGS = (("ibv_rc_pingpong", "-n", "200", "-c"), ("ibv_rc_pingpong", "-n", "50", "-s", "200000", "-m", "4096", "-c"),
             ("ibv_uc_pingpong", "-n", "200", "-c"), ("ibv_ud_pingpong", "-n", "200", "-s", "1000", "-c"),
             ("ibv_srq_pingpong", "-n", "100", "-c"))
PERFTESTS = tuple((f"ib_{operation}_{what}", *more) for operation in ("write", "read", "send", "atomic")
                  for what, more in (("bw", ("-n", "200")), ("lat", ("-n", "200")))) + (
    ("ib_write_bw", "-n", "50", "-s", "1000000", "-q", "4"), ("ib_send_bw", "-n", "200", "-s", "100", "-c", "UC"),
    ("ib_send_bw", "-n", "100", "-s", "1024", "-c", "UD"), ("ib_write_bw", "-a", "-n", "10"))


class Guest:
    """The virtual machine, with the part of places.Place that Process needs."""

    label = "guest"

    def __init__(self, script):
        self.script = script
        self.environment = {**os.environ, "RXE_PEER_NETNS": NAMESPACE}

    def command(self, arguments, _user, _through_verbena):
        return ["env", f"RXE_PEER_NETNS={NAMESPACE}", self.script, "exec", *arguments]

    def tool(self, *arguments, check=True):
        return subprocess.run([self.script, *arguments], env=self.environment, check=check, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True)

    def wait_listening(self, port, seconds=30):
        deadline = time.monotonic() + seconds
        while self.tool("exec", f"grep -qi ':{port:04x} .* 0A ' /proc/net/tcp /proc/net/tcp6", check=False).returncode:
            if time.monotonic() > deadline:
                raise Failure(f"nothing listens on TCP port {port} in the guest")


def arguments_of(test, device, gid, port):
    program, *more = test
    gid_option = "-g" if program.startswith("ibv_") else "-x"
    extra = [] if program.startswith("ibv_") else ["-F", "-u", "18"]
    return [program, "-d", device, gid_option, str(gid), "-p", str(port), *extra, *more]


def run_test(test, here, guest, is_server_here, version):
    port = programs.next_port()
    ours = arguments_of(test, here.device, here.gid_index(version), port)
    theirs = arguments_of(test, "rxe0", GUEST[version][1], port)
    if is_server_here:
        server = Process(here, ours, name="server on Verbena")
        wait = lambda: server.wait_listening(port)
        start_client = lambda: Process(guest, theirs + [here.address[4]], through_verbena=False, name="client on rxe")
    else:
        server = Process(guest, theirs, through_verbena=False, name="server on rxe")
        wait = lambda: guest.wait_listening(port)
        start_client = lambda: Process(here, ours + [GUEST[4][0]], name="client on Verbena")
    with server:
        wait()
        with start_client() as client:
            finish([server, client], SECONDS)
    for process in (server, client):
        if "invalid data" in process.stdout:
            raise Failure(f"{process.name} found wrong data\n{process.evidence()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--filter", default="", help="only tests whose name contains this")
    parser.add_argument("--keep", action="store_true", help="leave the virtual machine running")
    options = parser.parse_args()
    script = os.environ.get("RXE_PEER") or shutil.which("rxe-peer")
    if not script:
        sys.exit("RXE_PEER must name the rxe-peer script that boots a machine with rxe; docs/hacking.md says more")
    if os.geteuid() != 0:
        sys.exit("this needs root: a tap device and a network namespace are made")
    guest = Guest(script)
    passed = failed = 0
    try:
        guest.tool("start")
        with tempfile.TemporaryDirectory(prefix="verbena-") as scratch:
            os.chmod(scratch, 0o755)
            launcher = places.launcher_for_everyone(options.build, scratch)
            here = places.Place(["ip", "netns", "exec", NAMESPACE], "here", launcher, "vb_rxepeer0", "10.77.0.1", "fd77::1")
            for version in (4, 6):
                for test in PINGPONGS + PERFTESTS:
                    for is_server_here in (True, False):
                        name = f"{' '.join(test)} ipv{version} server {'here' if is_server_here else 'there'}"
                        if options.filter not in name:
                            continue
                        try:
                            run_test(test, here, guest, is_server_here, version)
                        except Failure as failure:
                            failed += 1
                            print(f"FAILED  {name}\n{failure}", flush=True)
                        else:
                            passed += 1
                            print(f"passed  {name}", flush=True)
    finally:
        if not options.keep:
            guest.tool("stop", check=False)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
