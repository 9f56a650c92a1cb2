#!/usr/bin/env python3
"""Interop: unmodified programs on Verbena here, the same programs on a Linux kernel's rxe in a virtual machine there;
then the same programs with Verbena at both ends inside that machine, on its kernel. docs/interop.md says more.

RXE_PEER names a script `rxe-peer` that boots machine N (start, stop, status, exec CMD, put FILE) with a tap device to
it: here 10.77.N.1/30 and fd77:0:0:N::1 on rxepeerN, there 10.77.N.2 and fd77:0:0:N::2, rxe0 with GID index 1 for IPv4
and 2 for IPv6. The tap lies in a network namespace of this test's; nothing leaves it. By hand, not in CI: needs root,
qemu, minutes."""

import argparse
import ipaddress
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/conformance"))
sys.dont_write_bytecode = True

import by_address
import captures
import places
import programs
from process import Failure, Process, finish

SECONDS = 120  # for one program pair: an emulated machine is slow, and slower where other work goes on
RXE_GID = {4: 1, 6: 2}
VARIANTS = [(version, is_server_here) for version in (4, 6) for is_server_here in (True, False)]
HEADINGS = [f"IPv{version}, server {'here' if here else 'there'}" for version, here in VARIANTS]

# The programs and options, each run in every variant.
PINGPONGS = [("ibv_rc_pingpong", "-n", "100", "-m", "1024", "-c"), ("ibv_rc_pingpong", "-n", "100", "-m", "4096", "-c"),
             ("ibv_rc_pingpong", "-n", "30", "-s", "200000", "-m", "4096", "-e", "-c"),
             ("ibv_uc_pingpong", "-n", "100", "-m", "1024", "-c"), ("ibv_uc_pingpong", "-n", "100", "-m", "4096", "-c"),
             ("ibv_ud_pingpong", "-n", "100", "-s", "1000", "-c"), ("ibv_srq_pingpong", "-n", "60", "-q", "4", "-c")]
BANDWIDTHS = [(f"ib_{operation}_bw", "-n", "100", "-m", mtu)
              for operation in ("write", "read", "send", "atomic") for mtu in ("1024", "4096")]
OTHERS = [("ib_write_bw", "-n", "16", "-s", "1000000", "-q", "4"), ("ib_write_bw", "-n", "10", "-a"),
          ("ib_write_bw", "-n", "50", "-b")] + [(f"ib_{operation}_lat", "-n", "100")
                                               for operation in ("write", "read", "send", "atomic")]
VERIFIES = [("verify", "-m", "1024"), ("verify", "-m", "4096")]
TESTS = VERIFIES + PINGPONGS + BANDWIDTHS + OTHERS


class Guest:
    """The virtual machine, with the part of places.Place that Process needs."""

    label = "guest"

    def __init__(self, script, kernel):
        self.script = script
        self.kernel = kernel
        self.number = int(os.environ.get("RXE_PEER_ID") or self._free_number())
        self.namespace = f"verbena-interop-{self.number}"
        self.settings = {"RXE_PEER_NETNS": self.namespace, "RXE_PEER_KERNEL": kernel, "RXE_PEER_ID": str(self.number)}
        self.environment = {**os.environ, **self.settings}

    def _free_number(self):
        for number in range(64):
            status = subprocess.run([self.script, "status"], env={**os.environ, "RXE_PEER_ID": str(number)},
                                    check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if status.returncode == 3:
                return number
        raise Failure("all 64 machines are running")

    def address(self, who, version):
        if version == 4:
            return f"10.77.{self.number}.{who}"
        return str(ipaddress.ip_address(f"fd77:0:0:{self.number:x}::{who}"))

    def command(self, arguments, _user="root", _through_verbena=False):
        # What runs there does not end when the connection does, so it has an end of its own.
        # Process hides the home directory, where the machine's image and key are.
        settings = {**self.settings, "HOME": os.environ.get("HOME", "/root")}
        settings = [f"{name}={value}" for name, value in settings.items()]
        return ["env", *settings, self.script, "exec", "timeout", "-k", "1", str(SECONDS), *arguments]

    def tool(self, *arguments, check=True, stdin=subprocess.DEVNULL):
        done = subprocess.run([self.script, *arguments], env={**os.environ, **self.settings}, check=False, stdin=stdin,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if check and done.returncode:
            raise Failure(f"{self.script} {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done

    def shell(self, line, check=True):
        return self.tool("exec", line, check=check).stdout

    def wait_listening(self, server, port, namespace=None):
        """Looks several times with one command, for each costs half a second."""
        look = f"grep -qi ':{port:04x} .* 0A ' /proc/net/tcp /proc/net/tcp6"
        loop = f"for i in 1 2 3 4 5 6 7 8 9 10; do {look} && exit 0; sleep 0.1; done; exit 1"
        command = ["ip", "netns", "exec", namespace, "sh", "-c", loop] if namespace else ["sh", "-c", loop]
        deadline = time.monotonic() + SECONDS
        while self.tool("exec", *command, check=False).returncode:
            if server.status is not None or time.monotonic() > deadline:
                raise Failure(f"{server.name} does not listen on TCP port {port}\n{server.evidence()}")


def arguments_of(test, binary, device, gid, port):
    program, *more = test
    gid_option = "-x" if program.startswith("ib_") else "-g"
    extra = ["-F", "-u", "18"] if program.startswith("ib_") else []
    return [binary, "-d", device, gid_option, str(gid), "-p", str(port), *extra, *more]


def judge_output(test, process):
    """What the program printed says that all went well."""
    program = test[0]
    if "invalid data" in process.stdout + process.stderr:
        raise Failure(f"{process.name} found wrong data\n{process.evidence()}")
    if program == "verify" and not re.search(r"^verified [1-9]\d* operations", process.stdout, re.M):
        raise Failure(f"{process.name} did not verify\n{process.evidence()}")
    if program.startswith("ibv_") and not re.search(r"^\d+ bytes in [\d.]+ seconds", process.stdout, re.M):
        raise Failure(f"{process.name} printed no result\n{process.evidence()}")


def judge_client(test, client):
    if test[0].startswith("ib_") and not programs.result_rows(client.stdout):
        raise Failure(f"{client.name} printed no row of results\n{client.evidence()}")


# ------------------------------------------------------------------------------------------- Verbena here, rxe there

class Bench:
    """Both machines and what the tests between them need."""

    def __init__(self, options, guest, scratch):
        self.guest = guest
        self.scratch = scratch
        self.keep_captures = options.captures
        self.verify = str(pathlib.Path(options.build).resolve() / "tests/interop/verify")
        launcher = places.launcher_for_everyone(options.build, str(scratch))
        self.here = places.Place(["ip", "netns", "exec", guest.namespace], "here", launcher,
                                 f"vb_rxepeer{guest.number}", guest.address(1, 4), guest.address(1, 6))
        self.packets = 0
        self.repeats = 0  # of pairs whose client asked too early

    def run(self, test, version, is_server_here):
        port = programs.next_port()
        capture = pathlib.Path(self.keep_captures or self.scratch) / f"{self.guest.kernel}-{port}.pcap"
        program = test[0]
        binary = self.verify if program == "verify" else program
        ours = arguments_of(test, binary, self.here.device, self.here.gid_index(version), port)
        theirs = arguments_of(test, program, "rxe0", RXE_GID[version], port)
        settings = {"VERBENA_PCAP": str(capture)}
        if is_server_here:
            server = Process(self.here, ours, settings=settings, name="server on Verbena")
            listening = lambda: server.wait_listening(port)
            start_client = lambda: Process(self.guest, theirs + [self.here.address[4]], through_verbena=False,
                                           name="client on rxe")
        else:
            server = Process(self.guest, theirs, through_verbena=False, name="server on rxe")
            listening = lambda: self.guest.wait_listening(server, port)
            start_client = lambda: Process(self.here, ours + [self.guest.address(2, 4)], settings=settings,
                                           name="client on Verbena")
        with server:
            listening()
            with start_client() as client:
                finish([server, client], SECONDS)
        for process in (server, client):
            judge_output(test, process)
        judge_client(test, client)
        self.packets += captures.judge(capture)
        if not self.keep_captures:
            capture.unlink()

    def run_by_address(self, test, version, is_server_here):
        packets, attempts = by_address.run(self.here, self.guest, self.keep_captures or self.scratch, test, version,
                                           is_server_here, SECONDS, self.keep_captures)
        self.packets += packets
        self.repeats += attempts - 1


# ------------------------------------------------------------------------------------------- Verbena at both ends there

INSIDE = [("verify", "-m", "1024"), ("ibv_rc_pingpong", "-n", "200", "-c"), ("ibv_ud_pingpong", "-n", "200", "-c"),
          ("ib_write_bw", "-n", "200"), ("ib_read_bw", "-n", "200"), ("ib_send_bw", "-n", "200"),
          ("ib_atomic_bw", "-n", "200"), ("ib_write_lat", "-n", "200"), ("ib_write_bw", "-n", "50", "-q", "16")]

CONFORMANCE = "/opt/verbena/tests/conformance"
DMABUF = "/opt/verbena/tests/dmabuf"


class Inside:
    """Two namespaces of the guest with a veth pair, and Verbena installed in it: its kernel under our sockets."""

    def __init__(self, options, guest, scratch):
        self.guest = guest
        tree = scratch / "inside"
        subprocess.run(["meson", "install", "-C", options.build, "--no-rebuild", "--quiet", "--destdir", str(tree)],
                       check=True, stdout=subprocess.DEVNULL)
        launcher = next(tree.glob("**/bin/verbena"))
        self.launcher = "/" + str(launcher.relative_to(tree))
        dmabuf = pathlib.Path(options.build) / "tests/unit/verbs/verbs_dmabuf_test"
        for path in needed_libraries(next(tree.glob("**/libibverbs.so.1"))) + needed_libraries(dmabuf):
            target = tree / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        shutil.copytree(ROOT / "tests/conformance", tree / CONFORMANCE.lstrip("/"), ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(dmabuf, tree / DMABUF.lstrip("/"))
        archive = scratch / "inside.tar"
        subprocess.run(["tar", "-cf", str(archive), "-C", str(tree), "."], check=True)
        guest.tool("put", str(archive), "/tmp/inside.tar")
        guest.shell("ip netns del a 2>/dev/null; ip netns del b 2>/dev/null; tar -xf /tmp/inside.tar -C / && "
                    "for n in a b; do ip netns add $n && ip -n $n link set lo up; done && "
                    "ip link add v0 netns a type veth peer name v1 netns b && "
                    "ip -n a addr add 10.79.0.1/24 dev v0 && ip -n b addr add 10.79.0.2/24 dev v1 && "
                    "ip -n a addr add fd79::1/64 dev v0 nodad && ip -n b addr add fd79::2/64 dev v1 nodad && "
                    "ip -n a link set v0 mtu 1500 up && ip -n b link set v1 mtu 1500 up")

    def command(self, namespace, arguments):
        return ["ip", "netns", "exec", namespace, "env", "VERBENA_STATS=1", self.launcher, "run", "--", *arguments]

    def gid(self, version):
        return 0 if version == 4 else 1

    def run_dmabuf(self, test):
        said = self.guest.shell(f"{DMABUF} 2>&1", check=False)
        if f"[       OK ] {test}" not in said:
            raise Failure(said)

    def run_conformance(self, arguments):
        """The runner of tests/conformance there, its output shown as it comes; whether it was content."""
        command = ["python3", f"{CONFORMANCE}/run.py", "--build", os.path.dirname(self.launcher), "--no-live", *arguments]
        return subprocess.run([self.guest.script, "exec", *command], env={**os.environ, **self.guest.settings},
                              check=False, stdin=subprocess.DEVNULL).returncode == 0

    def run(self, test, version):
        port = programs.next_port()
        arguments = [arguments_of(test, test[0], device, self.gid(version), port) for device in ("vb_v0", "vb_v1")]
        server = Process(self.guest, self.command("a", arguments[0]), through_verbena=False, name="server")
        with server:
            self.guest.wait_listening(server, port, "a")
            with Process(self.guest, self.command("b", arguments[1] + ["10.79.0.1"]), through_verbena=False,
                         name="client") as client:
                finish([server, client], SECONDS)
        for process in (server, client):
            judge_output(test, process)
            if not process.stats():
                raise Failure(f"{process.name} did not run on Verbena\n{process.evidence()}")
        judge_client(test, client)


def needed_libraries(library):
    """What the guest lacks: everything that our library needs but the C library."""
    done = subprocess.run(["ldd", str(library)], stdout=subprocess.PIPE, text=True, check=True)
    found = re.findall(r"=> (/\S+)", done.stdout)
    return [os.path.join("/usr", path.lstrip("/")) if path.startswith("/lib/") else path  # /lib is a link to usr/lib
            for path in found if not re.search(r"/(libc|libm)\.", path)]


# --------------------------------------------------------------------------------------------------------------- a run

class Table:
    """One row a program, one column a variant; printed as it grows, failures below their row."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.details = []

    def head(self, title, headings):
        print(f"\n{title:50}" + "".join(f"{heading:>20}" for heading in headings), flush=True)

    def cell(self, name, run):
        began = time.monotonic()
        try:
            run()
        except Failure as failure:
            self.failed += 1
            self.details.append(f"FAILED  {name}\n{failure}")
            text = "FAILED"
        else:
            self.passed += 1
            text = f"passed {time.monotonic() - began:5.1f} s"
        print(f"{text:>20}", end="", flush=True)

    def row(self, label, cells):
        print(f"{label:50}", end="", flush=True)
        for name, run in cells:
            self.cell(name, run)
        print("".join("\n" + text for text in self.details), flush=True)
        self.details.clear()

    def skip(self, name, reason):
        self.skipped += 1
        print(f"skipped  {name}: {reason}", flush=True)

    def fail(self, name, failure):
        self.failed += 1
        print(f"FAILED  {name}\n{failure}", flush=True)


def chosen(tests, options):
    return [test for test in tests if options.filter in " ".join(test)]


def run_against_rxe(table, bench, options, kernel):
    table.head(f"Verbena here, rxe of Linux {kernel} there", HEADINGS)
    for test in chosen(TESTS, options):
        label = " ".join(test)
        table.row(label, [(f"{label}, {kernel}, {heading}", lambda v=variant: bench.run(test, *v))
                          for variant, heading in zip(VARIANTS, HEADINGS)])


def run_by_address(table, bench, options, kernel):
    table.head(f"The same by IP address, with Linux {kernel}'s connection manager", HEADINGS)
    for test in by_address.TESTS:
        label = by_address.label(test)
        if options.filter in label:
            variants = [pair for pair in zip(VARIANTS, HEADINGS) if pair[0][0] in by_address.versions(test)]
            table.row(label, [(f"{label}, {kernel}, {heading}", lambda t=test, v=variant: bench.run_by_address(t, *v))
                              for variant, heading in variants])


def run_inside(table, inside, options, kernel):
    table.head(f"Verbena at both ends on Linux {kernel}", ["IPv4", "IPv6"])
    for test in chosen(INSIDE, options):
        label = " ".join(test)
        table.row(label, [(f"{label}, inside {kernel}, IPv{version}", lambda v=version: inside.run(test, v))
                          for version in (4, 6)])
    run_dmabuf(table, inside, options, kernel)


def run_dmabuf(table, inside, options, kernel):
    for device, test in (("/dev/udmabuf", "dmabuf__of_a_memfd_is_memory"),
                         ("/dev/dma_heap/system", "dmabuf__of_a_heap_is_memory")):
        name = f"dma-buf of {device}"
        if options.filter not in name:
            continue
        if inside.guest.tool("exec", f"test -e {device}", check=False).returncode:
            table.skip(name, f"Linux {kernel} has none")
        else:
            table.row(name, [(f"{name}, inside {kernel}", lambda t=test: inside.run_dmabuf(t))])


def run_conformance(table, inside, options, kernel):
    def run():
        if not inside.run_conformance(options.conformance.split()):
            raise Failure("see above")
    print(f"Conformance on Linux {kernel}", flush=True)
    table.row("", [(f"conformance inside {kernel}", run)])


def run_kernel(table, options, script, kernel):
    guest = Guest(script, kernel)
    with tempfile.TemporaryDirectory(prefix="verbena-") as name:
        scratch = pathlib.Path(name)
        os.chmod(scratch, 0o755)
        try:
            guest.tool("start")
            running = guest.shell("uname -r").strip()
            if options.conformance is not None:
                run_conformance(table, Inside(options, guest, scratch), options, running)
                return
            bench = Bench(options, guest, scratch)
            guest.tool("put", bench.verify, "/usr/bin/")
            if options.only in (None, "rxe"):
                run_against_rxe(table, bench, options, running)
            if options.only in (None, "by-address"):
                run_by_address(table, bench, options, running)
                print(f"{bench.repeats} more attempts for clients that asked before their server listened again")
            if options.only != "inside":
                if captures.can_dissect():
                    print(f"{bench.packets} captured packets dissected by tshark")
                else:
                    table.skip(f"dissection of what was captured with {running}", "there is no tshark")
            if options.only in (None, "inside"):
                run_inside(table, Inside(options, guest, scratch), options, running)
        except Failure as failure:
            table.fail(f"the machine with kernel {kernel}", failure)
        finally:
            if not options.keep:
                guest.tool("stop", check=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--kernels", default="6.12,6.1", help="kernels of the image to boot, one after the other")
    parser.add_argument("--filter", default="", help="only tests whose command line contains this")
    parser.add_argument("--only", choices=("rxe", "by-address", "inside"), help="one of the tables")
    parser.add_argument("--captures", help="an existing folder for the captures, which are deleted otherwise")
    parser.add_argument("--conformance", metavar="ARGUMENTS", help="instead of the tables, run the machine's Debian programs "
                        "as CI does ours, with these arguments of tests/conformance/run.py")
    parser.add_argument("--keep", action="store_true", help="leave the virtual machine running (with one kernel)")
    options = parser.parse_args()
    script = os.environ.get("RXE_PEER") or shutil.which("rxe-peer")
    if not script:
        sys.exit("RXE_PEER must name the rxe-peer script that boots a machine with rxe; docs/interop.md says more")
    if os.geteuid() != 0:
        sys.exit("this needs root: a tap device and a network namespace are made")
    table = Table()
    for kernel in options.kernels.split(","):
        run_kernel(table, options, script, kernel)
    print(f"\n{table.passed} passed, {table.failed} failed, {table.skipped} skipped")
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
