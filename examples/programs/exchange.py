"""Two peers tell each other what they must know, over a TCP connection beside what is tried."""

import pickle
import socket
import time


class Exchange:
    def __init__(self, is_server, host, port):
        self._socket = accept(host, port) if is_server else connect(host, port)
        self._file = self._socket.makefile("rwb")

    def tell(self, what):
        pickle.dump(what, self._file)
        self._file.flush()

    def hear(self):
        return pickle.load(self._file)


def accept(host, port):
    with socket.create_server((host, port)) as listener:
        return listener.accept()[0]


def connect(host, port, seconds=60):
    deadline = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection((host, port))
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
