"""mpi_ranks.py: each rank reduces, sends round the ring, gets and accumulates, and sees that every number is right."""

import time

import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, ranks = world.Get_rank(), world.Get_size()
after, before = (rank + 1) % ranks, (rank - 1) % ranks
print(MPI.Get_library_version().splitlines()[0], flush=True)


def expect(what, is_right):
    if not is_right:
        print(f"rank {rank}: {what} is wrong", flush=True)
        world.Abort(1)


for count in (1, 1000, 1 << 16, 1 << 20):
    mine = numpy.arange(count, dtype=numpy.int64) + rank
    got = numpy.zeros_like(mine)
    world.Allreduce(mine, got)
    expect("a sum", (got == numpy.arange(count) * ranks + ranks * (ranks - 1) // 2).all())
    world.Sendrecv(mine, after, 0, got, before, 0)
    expect("a message", (got == numpy.arange(count) + before).all())

window = MPI.Win.Allocate(8 * 1000, 8, comm=world)
memory = numpy.frombuffer(window, dtype=numpy.int64)
memory[:] = rank
got = numpy.zeros(1000, dtype=numpy.int64)
window.Fence()
window.Get(got, after)
window.Fence()
expect("what was got", (got == after).all())
window.Accumulate(numpy.ones(1000, dtype=numpy.int64), after)
window.Fence()
expect("what was accumulated", (memory == rank + 1).all())
window.Free()

one, rounds = numpy.zeros(1, dtype=numpy.int64), 200
began = time.monotonic()
for _ in range(rounds):
    world.Sendrecv_replace(one, after, 0, before, 0)
if rank == 0:
    print(f"8 bytes to and fro {(time.monotonic() - began) / rounds * 1e6:.0f} us", flush=True)
print("done", flush=True)
