"""Streams of bytes over sockets that live through disturbances, over rsockets: `streams.py server|client ADDRESS PORT`.

The server echoes; a client sends and compares, connection after connection, until SIGTERM. Whatever goes wrong with a
connection is told and the program goes on. Twice a second a line "status ..." as talk.c prints it."""

import hashlib
import os
import signal
import socket
import sys
import threading
import time

CHUNK = 8192
CHUNKS = 20
SILENCE_SECONDS = 80  # after which neither bytes nor an error is a fault

counts = dict.fromkeys(("made", "whole", "told", "wrong", "silent", "open", "messages", "worst_ms"), 0)
lock = threading.Lock()
ending = threading.Event()


def count(name, by=1):
    with lock:
        counts[name] += by


def say_status():
    with lock:
        said = " ".join(f"{name}={value:.0f}" for name, value in counts.items())
        print(f"status {said} pending=0 at={time.monotonic():.1f}", flush=True)


def tell(error):
    """Our own patience ends without an errno; ETIMEDOUT is a word of the other's end."""
    is_silence = isinstance(error, TimeoutError) and error.errno is None
    count("silent" if is_silence else "told")
    print(f"{'SILENT' if is_silence else 'told'}: {error!r}", flush=True)


def chunk(seed, number):
    return (hashlib.sha256(f"{seed} {number}".encode()).digest() * (CHUNK // 32))


def receive(connection, length):
    parts = []
    while length and (part := connection.recv(length)):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def echo(connection):
    count("made")
    count("open")
    try:
        connection.settimeout(SILENCE_SECONDS)
        while data := connection.recv(CHUNK):
            connection.sendall(data)
            count("messages")
        count("whole")
    except OSError as error:
        tell(error)
    finally:
        count("open", -1)
        connection.close()


def serve(address, port):
    with socket.create_server((address, port), family=socket.AF_INET, backlog=64) as listener:
        listener.settimeout(0.3)
        print("listening", flush=True)
        while not ending.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            except OSError as error:  # who asked is no more
                tell(error)
                continue
            threading.Thread(target=echo, args=(connection,), daemon=True).start()


def talk(address, port, seed):
    began = time.monotonic()
    with socket.socket() as connection:
        connection.settimeout(SILENCE_SECONDS)
        connection.connect((address, port))
        with lock:
            counts["made"] += 1
            counts["worst_ms"] = max(counts["worst_ms"], (time.monotonic() - began) * 1000)
        for number in range(CHUNKS):
            data = chunk(seed, number)
            connection.sendall(data)
            back = receive(connection, CHUNK)
            if len(back) < CHUNK:
                raise ConnectionError(f"closed by the server after {number} chunks")
            if back != data:
                count("wrong")
                print(f"WRONG: chunk {number} of {seed} came back as other bytes", flush=True)
            count("messages")
        count("whole")


def dial(address, port):
    number = 0
    while not ending.is_set():
        number += 1
        try:
            talk(address, port, f"{os.getpid()}-{number}")
        except OSError as error:
            tell(error)
            time.sleep(0.1)


def say_forever():
    while True:
        say_status()
        time.sleep(0.5)


def main():
    role, address, port = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    threading.Thread(target=say_forever, daemon=True).start()
    (serve if role == "server" else dial)(address, int(port))
    say_status()
    return 1 if counts["wrong"] or counts["silent"] else 0


if __name__ == "__main__":
    sys.exit(main())
