"""sockets.py ADDRESS: a program of sockets that checks what each call promises. It knows nothing of rsockets, and does the
same over the kernel's. Exits 1 and names the check that failed."""

import ctypes
import errno
import hashlib
import os
import select
import signal
import socket
import sys
import tempfile
import threading
import time

ADDRESS = sys.argv[1]
FAMILY = socket.AF_INET6 if ":" in ADDRESS else socket.AF_INET
BULK = os.urandom(1 << 20) * 8


def check(claim, seen, wanted=True):
    if seen != wanted:
        sys.exit(f"{claim}: saw {seen!r}, not {wanted!r}")


def fails_with(call, *errors):
    try:
        call()
    except OSError as error:
        return error.errno in errors
    return False


def listener(backlog=5):
    made = socket.socket(FAMILY)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((ADDRESS, 0))
    made.listen(backlog)
    return made


def pair():
    with listener() as server:
        client = socket.socket(FAMILY)
        client.settimeout(20)
        client.connect(server.getsockname())
        accepted, address = server.accept()
    accepted.settimeout(20)
    check("accept tells the peer", address[:2], client.getsockname()[:2])
    check("both ends name each other", accepted.getsockname()[:2], client.getpeername()[:2])
    return client, accepted


def read_all(end):
    parts = []
    while part := end.recv(100003):
        parts.append(part)
    return b"".join(parts)


def stream_both_ways():
    a, b = pair()
    digests = {}

    def send(end):
        end.sendall(BULK)
        end.shutdown(socket.SHUT_WR)

    def receive(end):
        digests[end] = hashlib.sha256(read_all(end)).digest()

    threads = [threading.Thread(target=work, args=(end,)) for end in (a, b) for work in (send, receive)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wanted = hashlib.sha256(BULK).digest()
    check("every byte arrives, both ways at once", [digests.get(a), digests.get(b)], [wanted, wanted])
    a.close()
    b.close()


def small_pieces():
    a, b = pair()
    text = bytes(range(251)) * 40
    thread = threading.Thread(target=lambda: [a.sendall(text[i:i + 31]) for i in range(0, len(text), 31)])
    thread.start()
    seen = b""
    while len(seen) < len(text):
        b.recv(3, socket.MSG_PEEK)
        seen += b.recv(1 + len(seen) % 97)
    thread.join()
    check("pieces keep their order", seen, text)
    a.sendall(b"abcdef")
    check("MSG_WAITALL waits", b.recv(6, socket.MSG_WAITALL), b"abcdef")
    a.close()
    b.close()


def ends():
    a, b = pair()
    a.shutdown(socket.SHUT_WR)
    check("the other direction's end is seen", b.recv(10), b"")
    b.sendall(b"late")
    check("a half-closed stream still brings data", a.recv(10), b"late")
    b.close()
    check("the end after data", a.recv(10), b"")
    check("to a peer that closed", fails_with(lambda: a.sendall(b"x"), errno.EPIPE, errno.ECONNRESET))
    a.close()
    a, b = pair()
    a.sendall(BULK[:200000])
    a.close()
    check("nothing sent before close is lost", read_all(b), BULK[:200000])
    b.close()
    a, b = pair()
    seen = []
    thread = threading.Thread(target=lambda: seen.append(a.recv(5)))
    thread.start()
    time.sleep(0.2)
    a.shutdown(socket.SHUT_RDWR)
    thread.join(5)
    check("shutdown wakes a reader", seen, [b""])
    a.close()
    b.close()


def refusals():
    with socket.socket(FAMILY) as alone:
        check("nobody listens", fails_with(lambda: alone.connect((ADDRESS, 1)), errno.ECONNREFUSED))
    with socket.socket(FAMILY) as alone:
        check("not connected", fails_with(lambda: alone.recv(1), errno.ENOTCONN))
        check("no peer", fails_with(alone.getpeername, errno.ENOTCONN))
    with listener() as first, socket.socket(FAMILY) as second:
        check("a port has one owner", fails_with(lambda: second.bind(first.getsockname()[:2]), errno.EADDRINUSE))
    with socket.socket(FAMILY) as first, socket.socket(FAMILY) as second, socket.socket(FAMILY) as third:
        first.bind(("", 0))
        port = first.getsockname()[1]
        check("a port has one owner at all addresses", fails_with(lambda: second.bind(("", port)), errno.EADDRINUSE))
        check("and at each of them", fails_with(lambda: third.bind((ADDRESS, port)), errno.EADDRINUSE))


def without_waiting():
    server = listener()
    server.setblocking(False)
    check("nobody to accept", fails_with(server.accept, errno.EAGAIN))
    client = socket.socket(FAMILY)
    client.setblocking(False)
    check("a connection begins", client.connect_ex(server.getsockname()) in (0, errno.EINPROGRESS))
    poll = select.poll()
    poll.register(server, select.POLLIN)
    poll.register(client, select.POLLOUT)
    waiting, accepted = {server.fileno(), client.fileno()}, None
    deadline = time.monotonic() + 20
    while waiting and time.monotonic() < deadline:
        for fd, _ in poll.poll(1000):
            if fd == server.fileno():
                accepted, _ = server.accept()
            poll.unregister(fd)
            waiting.discard(fd)
    check("poll sees both ends of it", waiting, set())
    check("and no error", client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), 0)
    check("nothing to read", fails_with(lambda: client.recv(1), errno.EAGAIN))
    sent = 0
    try:
        while True:
            sent += client.send(BULK[:50000])
    except BlockingIOError:
        pass
    check("a full stream is not writable", select.select([], [client], [], 0)[1], [])
    received = 0
    while received < sent:
        received += len(accepted.recv(1 << 20))
    check("a read one is", select.select([], [client], [], 10)[1], [client])
    client.close()
    check("an end is readable", select.select([accepted], [], [], 10)[0], [accepted])
    check("as the end", accepted.recv(1), b"")
    accepted.close()
    server.close()


def timeouts():
    a, b = pair()
    a.settimeout(0.2)
    began = time.monotonic()
    try:
        a.recv(1)
        sys.exit("a timeout did not come")
    except socket.timeout:
        pass
    check("it came in time", 0.1 < time.monotonic() - began < 5)
    a.close()
    b.close()


def signals():
    a, b = pair()
    b.settimeout(None)
    signal.signal(signal.SIGALRM, lambda number, frame: None)
    for number in (signal.SIGALRM, signal.SIGINT):
        signal.siginterrupt(number, False)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    thread = threading.Timer(0.5, lambda: a.send(b"1"))
    thread.start()
    # Python itself would begin again.
    check("SA_RESTART restarts", ctypes.CDLL(None).recv(b.fileno(), ctypes.create_string_buffer(1), 1, 0), 1)
    thread.join()
    signal.siginterrupt(signal.SIGINT, True)
    a.close()
    b.close()


def epoll():
    a, b = pair()
    waiter = select.epoll()
    waiter.register(b, select.EPOLLIN)
    check("nothing yet", waiter.poll(0.05), [])
    a.send(b"1")
    check("data", waiter.poll(10), [(b.fileno(), select.EPOLLIN)])
    b.recv(1)
    waiter.modify(b, select.EPOLLOUT | select.EPOLLET)
    check("room", waiter.poll(10), [(b.fileno(), select.EPOLLOUT)])
    check("room is told once", waiter.poll(0.05), [])
    waiter.modify(b, select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET)
    a.shutdown(socket.SHUT_WR)
    check("an end", waiter.poll(10), [(b.fileno(), select.EPOLLIN | select.EPOLLRDHUP)])
    check("an end is told once", waiter.poll(0.05), [])
    check("which is the end", b.recv(1), b"")
    check("also when it was read", waiter.poll(0.05), [])
    reader, writer = os.pipe()
    waiter.register(reader, select.EPOLLIN)
    os.write(writer, b"x")
    check("another descriptor among them", waiter.poll(10), [(reader, select.EPOLLIN)])
    for fd in (reader, writer):
        os.close(fd)
    waiter.close()
    a.close()
    b.close()


def epoll_of_another_thread():
    waiter, got = select.epoll(), []
    thread = threading.Thread(target=lambda: got.extend(waiter.poll(20)))
    thread.start()
    time.sleep(0.2)
    a, b = pair()
    waiter.register(b, select.EPOLLIN)
    a.send(b"1")
    thread.join()
    check("a wait sees what another thread adds", got, [(b.fileno(), select.EPOLLIN)])
    waiter.close()
    a.close()
    b.close()


def duplicates():
    a, b = pair()
    copy = os.dup(b.fileno())
    os.write(copy, b"copy")
    check("a duplicate is the same socket", a.recv(10), b"copy")
    b.close()
    os.write(copy, b"more")
    check("which lives as long as one of them", a.recv(10), b"more")
    os.close(copy)
    check("and no longer", a.recv(10), b"")
    a.close()


def children():
    a, b = pair()
    child = os.fork()
    if not child:
        a.close()
        b.close()
        os._exit(0)
    check("a child that closes", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
    a.send(b"on")
    check("does not disturb its parent", b.recv(10), b"on")
    a.close()
    b.close()


def files():
    a, b = pair()
    with tempfile.TemporaryFile() as file:
        file.write(BULK[:300000])
        file.seek(0)

        def send():
            a.sendfile(file)
            a.close()

        thread = threading.Thread(target=send)
        thread.start()
        check("a file by sendfile", read_all(b), BULK[:300000])
        thread.join()
    b.close()


def crowd():
    pairs = [pair() for _ in range(30)]
    for i, (a, _) in enumerate(pairs):
        a.send(b"%d" % i)
    check("many at once", [b.recv(10) for _, b in pairs], [b"%d" % i for i in range(30)])
    for a, b in pairs:
        a.close()
        b.close()


def receive_or_none(end):
    try:
        return end.recvfrom(4096)
    except socket.timeout:
        return None


def datagrams():
    a, b = socket.socket(FAMILY, socket.SOCK_DGRAM), socket.socket(FAMILY, socket.SOCK_DGRAM)
    for end in (a, b):
        end.bind((ADDRESS, 0))
        end.settimeout(1)
    arrived = 0
    for i in range(100):
        b.sendto(b"%d" % i, a.getsockname())
        seen = receive_or_none(a)
        if not seen:
            continue  # lost, as datagrams may be
        check("a datagram and whose", (seen[0], seen[1][:2]), (b"%d" % i, b.getsockname()[:2]))
        a.sendto(seen[0] * 10, seen[1])
        back = receive_or_none(b)
        arrived += bool(back)
        check("its answer", back is None or back[0] == seen[0] * 10)
    check("most arrive", arrived > 80)
    a.close()
    b.close()


def datagrams_of_segment_size():
    a, b = pair()
    size = a.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
    check("a segment has bytes", size > 500)
    with socket.socket(FAMILY, socket.SOCK_DGRAM) as alone:
        alone.bind((ADDRESS, 0))
        check("a datagram takes as many", alone.sendto(bytes(size), alone.getsockname()), size)
    a.close()
    b.close()


def datagrams_of_both_families():
    if FAMILY != socket.AF_INET:
        return
    server, client = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM), socket.socket(FAMILY, socket.SOCK_DGRAM)
    server.bind(("::", 0))
    client.connect((ADDRESS, server.getsockname()[1]))
    arrived = 0
    for end in (server, client):
        end.settimeout(1)
    for i in range(20):
        client.send(b"%d" % i)
        seen = receive_or_none(server)
        if seen:
            check("an IPv4 peer of an IPv6 socket", seen[1][:2], ("::ffff:" + ADDRESS, client.getsockname()[1]))
            server.sendto(seen[0], seen[1])
            arrived += receive_or_none(client) is not None
    check("most arrive between families", arrived > 10)
    server.close()
    client.close()


for test in (stream_both_ways, small_pieces, ends, refusals, without_waiting, timeouts, signals, epoll,
             epoll_of_another_thread, duplicates, children, files, crowd, datagrams, datagrams_of_segment_size,
             datagrams_of_both_families):
    test()
