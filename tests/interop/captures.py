"""Captures of a test: made on the tap device, where the connection manager's datagrams pass too, which the broker sends
and a process's own capture lacks; and what tshark says of them."""

import shutil
import signal
import subprocess
import time

from process import Failure, Process

CM_REQUESTS = {"0x0010", "0x0017"}  # REQ and SIDR_REQ
SETTLES = 0.5  # seconds after which dumpcap has read what its socket holds


class Tap:
    """While it is open, what passes an interface of a place is written to a file."""

    def __init__(self, place, interface, file):
        self.file = file
        arguments = ["dumpcap", "-q", "-i", interface, "-f", "udp port 4791", "-w", str(file)]
        self._process = Process(place, arguments, through_verbena=False) if can_dissect() else None

    def __enter__(self):
        if self._process:
            self._process.wait_output(r"^File: ")
        return self

    def __exit__(self, *_):
        if self._process:
            time.sleep(SETTLES)
            self._process.signal(signal.SIGINT)
            self._process.wait(10)
            self._process.kill()


def can_dissect():
    return shutil.which("tshark") is not None and shutil.which("dumpcap") is not None


def dissect(file):
    """[frame number, opcode, protocols, malformed, attribute of a MAD] of each packet."""
    fields = ["frame.number", "infiniband.bth.opcode", "frame.protocols", "_ws.malformed", "infiniband.mad.attributeid"]
    wanted = [word for field in fields for word in ("-e", field)]
    done = subprocess.run(["tshark", "-r", str(file), "-T", "fields", *wanted],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise Failure(f"tshark does not read {file}: {done.stderr}")
    return [(line.split("\t") + [""] * len(fields))[:len(fields)] for line in done.stdout.splitlines()]


def judge(file, has_requests=False):
    """tshark finds no packet malformed, sent or received; how many there were. It also guesses what random payload
    might be, and calls a bad guess malformed: then its list of protocols goes on after infiniband, which does not
    count."""
    if not can_dissect():
        return 0
    packets = dissect(file)
    own = (":infiniband", ":udp", ":ip", ":ipv6")
    bad = [packet for packet in packets if not packet[1] or packet[3] and packet[2].endswith(own)]
    if bad or not packets:
        raise Failure(f"tshark complains about {len(bad)} of {len(packets)} packets, the first: {bad[:3]}")
    if has_requests and not CM_REQUESTS.intersection(packet[4] for packet in packets):
        raise Failure(f"no request of a connection manager among {len(packets)} packets")
    return len(packets)
