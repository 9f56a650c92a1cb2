"""Live tests: fault injection, captures, wrong settings, a port that somebody else has, another user's broker."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import peers
import places
import programs
from live import live_test
from process import Failure, Process

FAULTS = ("drop=1%,seed=7", "dup=2%,seed=7", "reorder=2%,seed=7", "corrupt=1%,seed=7", "delay=300us,seed=7",
          "drop=1%,dup=1%,reorder=1%,corrupt=0.5%,delay=100us,seed=11", "drop=4%,burst=4,seed=7",
          "late=2%,late-by=300us,seed=7", "drop=1%,late=1%,late-by=300us,if=lo,seed=7")
SUMMARY_PATIENCE = 5.0  # seconds
START_SECONDS = 2.0  # within which perftest has measured the clock and shaken hands
ERROR = 8388608  # severity of an expert item
FAULT_KINDS = ("dropped", "doubled", "delayed", "reordered", "corrupted", "late")
OPERATIONS = (("write", 30000, 200), ("read", 30000, 200), ("send", 9000, 200), ("atomic", 8, 200))


@live_test("with injected faults every operation finishes with the right data")
def faults(context):
    path = context.world.own_loopback("set")
    for spec in FAULTS:
        seen = 0
        for op, size, count in OPERATIONS:
            ended = peers.run_verified(context, path, op, "-s", size, "-n", count, settings={"VERBENA_FAULTS": spec})
            seen += sum(peers.sum_stats(ended, f"port_faults_{kind}") for kind in FAULT_KINDS)
        if not seen:
            raise Failure(f"VERBENA_FAULTS={spec} injected nothing")


def dropped_over(context, path, interface):
    """How many packets of a run were dropped, where one of a hundred over that interface is."""
    settings = {"VERBENA_FAULTS": f"drop=1%,seed=7,if={interface}"}
    ended = peers.run_verified(context, path, "write", "-s", 30000, "-n", 200, settings=settings)
    return peers.sum_stats(ended, "port_faults_dropped")


@live_test("faults of an interface strike what comes over it, and nothing else")
def fault_interface(context):
    path = context.world.own_loopback("set")
    if dropped_over(context, path, "vbt9") or not dropped_over(context, path, "lo"):
        raise Failure("faults of an interface struck what came over another, or not what came over it")


@live_test("ib_write_bw, ib_send_bw and ib_read_bw finish with 1% of packets dropped, one by one and in runs, or late")
def faults_perftest(context):
    path = context.world.own_loopback("set")
    for spec in ("drop=1%,seed=3", "drop=1%,burst=4,seed=3", "late=1%,late-by=300us,seed=3"):
        for program in ("ib_write_bw", "ib_send_bw", "ib_read_bw"):
            settings = {"VERBENA_FAULTS": spec}
            with peers.perftest_pair(path, program, "-n", 500, "-b", settings=settings) as (server, client):
                programs.finish([server, client], 60)
            if not programs.result_rows(client.stdout):
                raise Failure(f"no row of results under {spec}\n{client.evidence()}")


def expect_refusal(context, settings, patterns, arguments=("ibv_devinfo",)):
    """The program fails, and what it says on stderr contains each pattern."""
    place = context.world.own_loopback("set").server
    with Process(place, arguments, settings=settings) as process:
        if process.wait(20) == 0:
            raise Failure(f"accepted\n{process.evidence()}")
    for pattern in patterns:
        if not re.search(pattern, process.stderr):
            raise Failure(f"stderr does not contain /{pattern}/\n{process.evidence()}")


@live_test("a malformed setting is an error that says what is allowed")
def malformed_setting(context):
    expect_refusal(context, {"VERBENA_TRAINS": "maybe"}, ("VERBENA_TRAINS", "maybe", r"auto.*off"))
    expect_refusal(context, {"VERBENA_RCVBUF": "12k5"}, ("VERBENA_RCVBUF", "12k5", "65536"))
    expect_refusal(context, {"VERBENA_FAULTS": "drop=110%"}, ("VERBENA_FAULTS", "110%"))


@live_test("an unknown setting is an error that names it")
def unknown_setting(context):
    expect_refusal(context, {"VERBENA_TRIANS": "off"}, ("VERBENA_TRIANS",))


def hold_port(place, user):
    code = "import socket,time;s=socket.socket(socket.AF_INET6,socket.SOCK_DGRAM);s.bind(('::',4791));print('held',flush=True);time.sleep(60)"
    holder = Process(place, ["python3", "-c", code], user, through_verbena=False, name="somebody on UDP 4791")
    holder.wait_output("held")
    return holder


@live_test("UDP 4791 taken by somebody else is an error that names the port and, if it can, the holder")
def port_taken(context):
    place = context.world.own_loopback("set").server
    with hold_port(place, "root") as holder:
        with Process(place, ["ibv_rc_pingpong", "-d", "vb_lo", "-g", "0"]) as process:
            if process.wait(20) == 0:
                raise Failure(f"started although the port is taken\n{process.evidence()}")
        for pattern in ("4791", rf"{holder.pid}|python3"):
            if not re.search(pattern, process.stderr):
                raise Failure(f"stderr does not contain /{pattern}/\n{process.evidence()}")


@live_test("another user's broker is refused with the reason, and accepted with VERBENA_BROKER=any")
def foreign_broker(context):
    if os.geteuid() != 0:
        raise places.Unavailable("needs root")
    path = context.world.own_loopback("set")
    port = programs.next_port()
    with peers.start_server(context, path.server, port, user="nobody"):
        with Process(path.server, ["ibv_rc_pingpong", "-d", "vb_lo", "-g", "0"]) as process:
            if process.wait(20) == 0:
                raise Failure(f"root took nobody's broker\n{process.evidence()}")
        if not re.search(r"nobody|65534", process.stderr) or "VERBENA_BROKER" not in process.stderr:
            raise Failure(f"the refusal does not say whose broker it is and what to do\n{process.evidence()}")
        peers.run_verified(context, path, "write", "-n", 100, settings={"VERBENA_BROKER": "any"})


def dissect(capture):
    """(packets, those that are InfiniBand, those that its dissector calls malformed) of a capture."""
    done = subprocess.run(["tshark", "-r", capture, "-T", "fields", "-E", "separator=|", "-e", "frame.protocols",
                           "-e", "_ws.malformed", "-e", "_ws.expert.severity"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise Failure(f"tshark does not read {capture}: {done.stderr}")
    packets = [line.split("|") for line in done.stdout.splitlines()]
    good = [packet for packet in packets if "infiniband" in packet[0]]
    # tshark guesses at what our payloads, which are noise, may contain; only its InfiniBand dissector's verdict counts.
    bad = [packet for packet in good if packet[0].endswith("infiniband") and (packet[1] or str(ERROR) in packet[2])]
    return len(packets), len(good), len(bad)


@live_test("VERBENA_PCAP writes captures that tshark dissects with no malformed packet")
def captures(context):
    if not shutil.which("tshark"):
        raise places.Unavailable("tshark is not installed")
    path = context.world.own_loopback("set")
    with tempfile.TemporaryDirectory() as folder:
        for version in (4, 6):
            for op, size in (("write", 5000), ("read", 5000), ("send", 1), ("atomic", 8)):
                settings = {"VERBENA_PCAP": f"{folder}/{version}-{op}-%p.pcap"}
                peers.run_verified(context, path, op, "-s", size, "-n", 50, settings=settings, version=version)
        files = sorted(pathlib.Path(folder).glob("*.pcap"))
        if len(files) != 16:
            raise Failure(f"expected 16 captures, two for each run, found {[file.name for file in files]}")
        for file in files:
            everything, good, bad = dissect(str(file))
            if bad or not everything or good != everything:
                raise Failure(f"{file.name}: {everything} packets, {good} of them InfiniBand, {bad} malformed")


# Opens the first device; then ends in a way.
ENDS_PROGRAM = """
import ctypes, os, subprocess
verbs = ctypes.CDLL("libibverbs.so.1")
verbs.ibv_get_device_list.restype = verbs.ibv_open_device.restype = ctypes.c_void_p
def open_device():
    devices = ctypes.cast(verbs.ibv_get_device_list(None), ctypes.POINTER(ctypes.c_void_p))
    assert verbs.ibv_open_device(ctypes.c_void_p(devices[0]))
def fork(in_child):
    child = os.fork()
    if child == 0:
        in_child()
        os._exit(0)
    os.waitpid(child, 0)
def fail_to_exec():
    try:
        subprocess.Popen(["/nonexistent"], close_fds=False)
    except FileNotFoundError:
        pass
"""
ENDS = {  # the way: how many processes have something to say
    "open_device()": 1,
    "open_device(); os._exit(0)": 1,
    "verbs.ibv_get_device_list(None); os._exit(0)": 1,
    "fork(open_device)": 1,
    "open_device(); fork(int); os._exit(0)": 1,
    "open_device(); fail_to_exec(); os._exit(0)": 1,
    "open_device(); fork(open_device); os._exit(0)": 2,
}


@live_test("VERBENA_STATS=1 prints one summary a process, also of a child, also at _exit()")
def summary_at_every_end(context):
    place = context.world.own_loopback("set").server
    for way, expected in ENDS.items():
        with Process(place, ["/usr/bin/python3", "-c", ENDS_PROGRAM + way], settings={"VERBENA_STATS": "1"}) as process:
            process.wait_success(20)
        said = len(re.findall(r"wire: (?:nothing was sent|no device was opened)", process.stderr))
        if said != expected:
            raise Failure(f"{way}: {said} summaries, not {expected}\n{process.evidence()}")


def wait_summary(process):
    """Of a process that was ended suddenly it comes a moment later."""
    deadline = time.monotonic() + SUMMARY_PATIENCE
    while "verbena: port:" not in process.stderr and time.monotonic() < deadline:
        time.sleep(0.01)


@live_test("VERBENA_STATS=1 tells what a perftest server did that ^C, SIGTERM or SIGKILL ends")
def summary_of_the_killed(context):
    path = context.world.own_loopback("set")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with peers.perftest_pair(path, "ib_write_bw", "-D", "20", "-s", "65536") as (server, client):
            time.sleep(START_SECONDS)
            server.signal(number)
            server.wait(20)
            wait_summary(server)
        received = re.findall(r"verbena: local: .* sent, [0-9.]+ [MG]B received, process \d+", server.stderr)
        if len(received) != 1 or server.stderr.count("verbena: lane:") != 1:
            raise Failure(f"signal {number}: not one summary of what came\n{server.evidence()}")


@live_test("verbena run of a program that does not exist fails with status 127 and says so")
def no_such_program(context):
    place = context.world.own_loopback("set").server
    with Process(place, ["no-such-program"]) as process:
        if process.wait(10) != 127 or "no-such-program" not in process.stderr:
            raise Failure(f"status {process.status}\n{process.evidence()}")
