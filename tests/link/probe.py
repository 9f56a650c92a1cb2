#!/usr/bin/env python3
"""probe: numbered UDP datagrams from one end of a link to the other, for measuring the link.

    probe.py receive PORT            until one says that it is the last, or for three seconds nothing comes; then prints
                                     one line of JSON: [[number, source port, delay in microseconds], ...] as they came
    probe.py send HOST PORT COUNT [--gap US] [--bytes N] [--ports N]
                                     COUNT datagrams, a gap apart, of so many bytes of IPv4 packets, from so many source
                                     ports in turn: 40000 and those after it

The two ends have one clock, as they are namespaces of one machine. When a datagram came is the kernel's word, since a process may
have to wait for a core before it looks."""

import argparse
import json
import socket
import struct
import time

HEADERS = 28
FORM = struct.Struct("!qqH")  # number, time in ns, source port
LAST = -1
SO_TIMESTAMPNS = 35  # Linux's, which Python has no name for


def came_at(control):
    """The time in ns of a received datagram's control messages."""
    for level, kind, data in control:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
            seconds, ns = struct.unpack("qq", data[:16])
            return seconds * 1_000_000_000 + ns
    raise OSError("the kernel gives no time of arrival")


def receive(port):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    sock.bind(("0.0.0.0", port))
    ready = socket.create_server(("0.0.0.0", port))  # for whoever waits for a TCP port
    sock.settimeout(20)
    came = []
    while True:
        try:
            data, control, _, _ = sock.recvmsg(65536, 256)
        except socket.timeout:
            break
        number, sent, source = FORM.unpack_from(data)
        sock.settimeout(3)
        if number == LAST:
            break
        came.append((number, source, (came_at(control) - sent) / 1e3))
    ready.close()
    print(json.dumps(came), flush=True)


def socket_of(port):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("0.0.0.0", port))
    return sock


def send(options):
    ports = [40000 + i for i in range(options.ports)]
    sockets = [socket_of(port) for port in ports]
    rest = bytes(max(0, options.bytes - HEADERS - FORM.size))
    to = (options.host, options.port)
    due = time.monotonic_ns()
    for number in range(options.count):
        while (now := time.monotonic_ns()) < due:
            if due - now > 300_000:
                time.sleep((due - now - 200_000) / 1e9)
        at = number % options.ports
        sockets[at].sendto(FORM.pack(number, time.time_ns(), ports[at]) + rest, to)
        due += options.gap * 1000
    time.sleep(0.5)
    for _ in range(20):  # some may be lost
        sockets[0].sendto(FORM.pack(LAST, 0, ports[0]), to)
        time.sleep(0.02)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    receiver = commands.add_parser("receive")
    receiver.add_argument("port", type=int)
    sender = commands.add_parser("send")
    sender.add_argument("host")
    sender.add_argument("port", type=int)
    sender.add_argument("count", type=int)
    sender.add_argument("--gap", type=int, default=100)
    sender.add_argument("--bytes", type=int, default=100)
    sender.add_argument("--ports", type=int, default=1)
    options = parser.parse_args()
    if options.command == "receive":
        receive(options.port)
    else:
        send(options)


main()
