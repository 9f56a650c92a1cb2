"""mooncake_peer.py ROLE OWN_HOST TARGET_HOST PORT BYTES ROUNDS [DEVICE]: Mooncake's transfer engine over "rdma". The
initiator reads the target's buffer and writes it, each ROUNDS times; both see that every byte is right. Without DEVICE the
engine chooses for itself."""

import sys
import time

import numpy
from mooncake.engine import TransferEngine

from exchange import Exchange

role, own, target, port, size, rounds = *sys.argv[1:4], *map(int, sys.argv[4:7])
device = sys.argv[7] if len(sys.argv) > 7 else ""
FIRST, SECOND = (numpy.arange(size) % modulus for modulus in (251, 241))

engine = TransferEngine()
if engine.initialize(own, "P2PHANDSHAKE", "rdma", device):
    sys.exit("the engine was not made")
buffer = numpy.zeros(size, dtype=numpy.uint8)
if engine.register_memory(buffer.ctypes.data, size):
    sys.exit("the memory was not registered")


def move(what, call, name, address):
    rates = []
    for _ in range(rounds):
        began = time.monotonic()
        if call(name, buffer.ctypes.data, address, size):
            sys.exit(f"a {what} failed")
        rates.append(size / (time.monotonic() - began) / 1e6)
    print(f"{what} {max(rates):.0f} MB/s at best, {min(rates):.0f} at worst", flush=True)


exchange = Exchange(role == "target", target, port)
if role == "target":
    buffer[:] = FIRST
    exchange.tell((f"{own}:{engine.get_rpc_port()}", buffer.ctypes.data))
    exchange.hear()
    if not (buffer == SECOND).all():
        sys.exit("what was written is wrong")
    exchange.tell("seen")
else:
    name, address = exchange.hear()
    move("read", engine.transfer_sync_read, name, address)
    if not (buffer == FIRST).all():
        sys.exit("what was read is wrong")
    buffer[:] = SECOND
    move("write", engine.transfer_sync_write, name, address)
    exchange.tell("written")
    exchange.hear()
print("done", flush=True)
