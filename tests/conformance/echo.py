"""Servers that answer each request with their process's number, and clients of them. They know nothing of rsockets.
  echo.py serve ADDRESS PORT           waits by epoll
  echo.py fork ADDRESS PORT CHILDREN   so do its children, who inherit the listener
  echo.py detach ADDRESS PORT          so does its child, when it has ended
  echo.py inetd ADDRESS PORT           accepts, and a child is to serve the connection
  echo.py ask ADDRESS PORT CLIENTS REQUESTS
The clients ask again as soon as they are answered, so that answers come while waiters look; memcached may be asked, too.
They print how many answers were different, and exit with 1 when one took two seconds."""

import os
import select
import socket
import sys
import time

REQUEST = b"get nothing\r\n"
LONGEST = 2  # on a busy machine; a waiter that was not woken sleeps for five


def listener(address, port):
    made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((address, port))
    made.listen(64)
    return made


def serve(server):
    waiter, ends = select.epoll(), {}
    server.setblocking(False)
    waiter.register(server, select.EPOLLIN)
    while True:
        for fd, _ in waiter.poll():
            if fd == server.fileno():
                try:
                    end, _ = server.accept()
                except BlockingIOError:
                    continue
                ends[end.fileno()] = end
                waiter.register(end, select.EPOLLIN)
            elif ends[fd].recv(4096):
                ends[fd].send(b"%d" % os.getpid())
            else:
                waiter.unregister(fd)
                ends.pop(fd).close()


def fork(server, count):
    for _ in range(count):
        if not os.fork():
            serve(server)
    os.wait()


def detach(server):
    if os.fork():
        os._exit(0)
    serve(server)


def inetd(server):
    while True:
        end, _ = server.accept()
        if not os.fork():
            try:
                end.send(end.recv(4096))
            except ConnectionResetError:
                print("child: connection reset", flush=True)
            os._exit(0)
        end.close()
        os.wait()


def ask(address, port, count, requests):
    waiter, clients, slowest, seen = select.epoll(), {}, 0, set()
    for _ in range(count):
        client = socket.create_connection((address, port))
        waiter.register(client, select.EPOLLIN)
        clients[client.fileno()] = client
    answers, asked = dict.fromkeys(clients, 0), {}
    for fd, client in clients.items():
        asked[fd] = time.monotonic()
        client.send(REQUEST)
    while clients:
        for fd, _ in waiter.poll():
            seen.add(clients[fd].recv(4096))
            now = time.monotonic()
            slowest, asked[fd] = max(slowest, now - asked[fd]), now
            answers[fd] += 1
            if answers[fd] < requests:
                clients[fd].send(REQUEST)
                continue
            waiter.unregister(fd)
            clients.pop(fd).close()
    print(f"{len(seen)} different answers, slowest answer {slowest:.3f} s")
    sys.exit(slowest > LONGEST)


def main():
    role, address, port, *counts = sys.argv[1:]
    if role == "ask":
        ask(address, int(port), *map(int, counts))
    roles = {"serve": serve, "fork": fork, "detach": detach, "inetd": inetd}
    roles[role](listener(address, int(port)), *map(int, counts))


main()
