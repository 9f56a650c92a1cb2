"""transfer_pair.py LIBRARY WAY ROLE OWN_HOST TARGET_HOST PORT BLOCK SECONDS [DEVICE]: NIXL's agents or Mooncake's engine (LIBRARY) move
blocks of a key-value cache, 16 of so many bytes at once; WAY is verbs or tcp. The initiator reads them and then writes them, for so
long each, and sees that they are right. Prints read_gbps=RATE and write_gbps=RATE."""

import os
import pathlib
import sys
import time

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "examples/programs"))
from exchange import Exchange

library, way, role, own, target, port, block, seconds = *sys.argv[1:6], *map(int, sys.argv[6:9])
device = sys.argv[9] if len(sys.argv) > 9 else ""
BLOCKS = 16
size = BLOCKS * block
FIRST, SECOND = (numpy.arange(size) % modulus for modulus in (251, 241))
buffer = numpy.zeros(size, dtype=numpy.uint8)
ADDRESS = buffer.ctypes.data


class Nixl:
    """Both of its ends spin: the initiator asks whether the transfer is done, the target whether it was told."""

    def __init__(self):
        from nixl_cu12 import nixl_agent, nixl_agent_config
        self._agent = nixl_agent(role, nixl_agent_config(backends=["UCX"]))
        self._registered = self._agent.register_memory(self._agent.get_reg_descs([(ADDRESS, size, 0, "")], "DRAM"))
        self._handles = []
        self._mine = self._agent.get_xfer_descs([(ADDRESS + i * block, block, 0) for i in range(BLOCKS)], "DRAM")

    def about(self):
        return self._agent.get_agent_metadata(), self._agent.get_serialized_descs(self._mine)

    def meet(self, said):
        self._peer, self._theirs = self._agent.add_remote_agent(said[0]), self._agent.deserialize_descs(said[1])

    def mover(self, operation):
        handle = self._agent.initialize_xfer(operation, self._mine, self._theirs, self._peer, b"")
        self._handles.append(handle)

        def move():
            state = self._agent.transfer(handle)
            while state == "PROC":
                state = self._agent.check_xfer_state(handle)
            if state != "DONE":
                sys.exit(f"{operation} ended with {state}")
        return move

    def tell(self):
        self._agent.send_notif(self._peer, b"done")

    def serve(self):
        while not self._agent.get_new_notifs():
            pass

    def end(self):
        for handle in self._handles:
            self._agent.release_xfer_handle(handle)
        self._agent.remove_remote_agent(self._peer)
        self._agent.deregister_memory(self._registered)


class Mooncake:
    """Its engine's own threads spin."""

    def __init__(self):
        from mooncake.engine import TransferEngine
        self._engine = TransferEngine()
        if self._engine.initialize(own, "P2PHANDSHAKE", "rdma" if way == "verbs" else "tcp", device):
            sys.exit("the engine was not made")
        if self._engine.register_memory(ADDRESS, size):
            sys.exit("the memory was not registered")

    def about(self):
        return f"{own}:{self._engine.get_rpc_port()}", ADDRESS

    def meet(self, said):
        self._name, self._theirs = said

    def mover(self, operation):
        call = getattr(self._engine, f"batch_transfer_sync_{operation.lower()}")
        mine, theirs = ([base + i * block for i in range(BLOCKS)] for base in (ADDRESS, self._theirs))

        def move():
            if call(self._name, mine, theirs, [block] * BLOCKS):
                sys.exit(f"{operation} failed")
        return move

    def tell(self):
        pass

    def serve(self):
        pass

    def end(self):
        pass


def rate(move):
    """Gb/s, from the second transfer on: the first one connects."""
    move()
    began, count = time.monotonic(), 0
    while time.monotonic() < began + seconds:
        move()
        count += 1
    return count * size * 8 / (time.monotonic() - began) / 1e9


ends = {"nixl": Nixl, "mooncake": Mooncake}[library]()
if role == "target":
    buffer[:] = FIRST
exchange = Exchange(role == "target", target, port)
exchange.tell(ends.about())
ends.meet(exchange.hear())
if role == "target":
    ends.serve()
    exchange.hear()
    if not (buffer == SECOND).all():
        sys.exit("what was written is wrong")
    exchange.tell("seen")
else:
    for operation in ("READ", "WRITE"):
        print(f"{operation.lower()}_gbps={rate(ends.mover(operation)):.3f}", flush=True)
        if operation == "READ" and not (buffer == FIRST).all():
            sys.exit("what was read is wrong")
        buffer[:] = SECOND
    ends.tell()
    exchange.tell("written")
    exchange.hear()
ends.end()
print("done", flush=True)
if way == "tcp":
    os._exit(0)  # NIXL's agent ends with SIGSEGV now and then; who goes over Verbena must end well
