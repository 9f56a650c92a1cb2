"""nixl_peer.py ROLE HOST PORT BYTES ROUNDS: an agent of NIXL. The initiator READs the target's buffer and WRITEs it, each
ROUNDS times; both see that every byte is right."""

import sys
import time

import numpy
from nixl_cu12 import nixl_agent, nixl_agent_config

from exchange import Exchange

role, host, port, size, rounds = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
FIRST, SECOND = (numpy.arange(size) % modulus for modulus in (251, 241))


def wait_for(what, is_done):
    deadline = time.monotonic() + 100
    while not is_done():
        if time.monotonic() > deadline:
            sys.exit(f"{what} did not end")


def move(operation):
    handle = agent.initialize_xfer(operation, mine, theirs, peer, b"moved")
    began = time.monotonic()
    states = [agent.transfer(handle)]
    wait_for(operation, lambda: states.append(agent.check_xfer_state(handle)) or states[-1] != "PROC")
    took = time.monotonic() - began
    agent.release_xfer_handle(handle)
    if states[-1] != "DONE":
        sys.exit(f"{operation} ended with {states[-1]}")
    return size / took / 1e6


agent = nixl_agent(role, nixl_agent_config(backends=["UCX"]))
buffer = numpy.zeros(size, dtype=numpy.uint8)
if role == "target":
    buffer[:] = FIRST
registered = agent.register_memory(agent.get_reg_descs([(buffer.ctypes.data, size, 0, "")], "DRAM"))
mine = agent.get_xfer_descs([(buffer.ctypes.data, size, 0)], "DRAM")
exchange = Exchange(role == "target", host, port)
exchange.tell((agent.get_agent_metadata(), agent.get_serialized_descs(mine)))
metadata, descriptors = exchange.hear()
peer, theirs = agent.add_remote_agent(metadata), agent.deserialize_descs(descriptors)

if role == "target":
    told = []
    wait_for("what the initiator says", lambda: told.extend(sum(agent.get_new_notifs().values(), [])) or len(told) == 2 * rounds)
    exchange.hear()
    if not (buffer == SECOND).all():
        sys.exit("what was written is wrong")
    exchange.tell("seen")
else:
    for operation in ("READ", "WRITE"):
        rates = [move(operation) for _ in range(rounds)]
        print(f"{operation} {max(rates):.0f} MB/s at best, {min(rates):.0f} at worst", flush=True)
        if operation == "READ" and not (buffer == FIRST).all():
            sys.exit("what was read is wrong")
        buffer[:] = SECOND
    exchange.tell("written")
    exchange.hear()
agent.remove_remote_agent(peer)
agent.deregister_memory(registered)
print("done")
