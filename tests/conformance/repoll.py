"""A program of repoll: rsockets and a pipe in one list, level-triggered, changed by another thread under a wait. Its calls
are librdmacm's, of rdma-core 65; Debian's Python brings them to it.
Usage: repoll.py ADDRESS PORT. Prints "done"."""

import ctypes
import os
import socket
import struct
import sys
import threading
import time

rdma = ctypes.CDLL("librdmacm.so.1", use_errno=True)
rdma.rrecv.restype = rdma.rsend.restype = ctypes.c_ssize_t
EPOLLIN, EPOLLOUT, ADD, DEL, MOD = 1, 4, 1, 2, 3
PATIENCE_MS = 20000


class Event(ctypes.Structure):
    _pack_ = 1 if os.uname().machine == "x86_64" else 0
    _fields_ = [("events", ctypes.c_uint32), ("data", ctypes.c_uint64)]


def must(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def address():
    return struct.pack("=H", socket.AF_INET) + struct.pack("!H", int(sys.argv[2])) + socket.inet_aton(sys.argv[1]) + bytes(8)


def control(list_fd, operation, fd, events=EPOLLIN):
    must(rdma.repoll_ctl(list_fd, operation, fd, ctypes.byref(Event(events, fd))))


def wait(list_fd, timeout_ms=PATIENCE_MS):
    """{fd: events}."""
    events = (Event * 8)()
    count = must(rdma.repoll_wait(list_fd, events, 8, timeout_ms))
    return {events[i].data: events[i].events for i in range(count)}


def expect(seen, wanted):
    if seen != wanted:
        sys.exit(f"saw {seen}, not {wanted}")


def client():
    fd = must(rdma.rsocket(socket.AF_INET, socket.SOCK_STREAM, 0))
    must(rdma.rconnect(fd, address(), 16))
    must(rdma.rsend(fd, b"hello", 5, 0))
    buffer = ctypes.create_string_buffer(16)
    assert must(rdma.rrecv(fd, buffer, 16, 0)) == 3
    must(rdma.rclose(fd))


def main():
    listener = must(rdma.rsocket(socket.AF_INET, socket.SOCK_STREAM, 0))
    must(rdma.rbind(listener, address(), 16))
    must(rdma.rlisten(listener, 4))
    list_fd = must(rdma.repoll_create(0))
    reader, writer = os.pipe()
    control(list_fd, ADD, listener)
    expect(wait(list_fd, 0), {})
    other = threading.Thread(target=client)
    other.start()
    expect(wait(list_fd), {listener: EPOLLIN})
    accepted = must(rdma.raccept(listener, None, None))

    control(list_fd, ADD, accepted)
    control(list_fd, ADD, reader)
    expect(wait(list_fd), {accepted: EPOLLIN})
    expect(wait(list_fd), {accepted: EPOLLIN})  # level-triggered: nothing was read
    buffer = ctypes.create_string_buffer(16)
    assert must(rdma.rrecv(accepted, buffer, 16, 0)) == 5 and buffer.raw[:5] == b"hello"
    expect(wait(list_fd, 50), {})
    os.write(writer, b"x")
    expect(wait(list_fd), {reader: EPOLLIN})
    control(list_fd, DEL, reader)

    # A wait under way learns of the change.
    threading.Timer(0.2, control, (list_fd, MOD, accepted, EPOLLOUT)).start()
    expect(wait(list_fd), {accepted: EPOLLOUT})
    control(list_fd, MOD, accepted, EPOLLIN)
    must(rdma.rsend(accepted, b"bye", 3, 0))
    seen = wait(list_fd)  # the other side leaves
    if not seen.get(accepted, 0) & EPOLLIN:
        sys.exit(f"saw {seen}, and no end")
    other.join()
    must(rdma.rclose(accepted))
    must(rdma.rclose(list_fd))
    print("done")


main()
