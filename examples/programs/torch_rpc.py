"""torch_rpc.py RANK HOST PORT: two workers of torch.distributed.rpc over TensorPipe's transport "ibv"; worker 1 asks worker 0."""

import os
import sys
import time

import torch
from torch.distributed import rpc

rank = int(sys.argv[1])
os.environ.update(MASTER_ADDR=sys.argv[2], MASTER_PORT=sys.argv[3])


def double(tensor):
    return tensor * 2


options = rpc.TensorPipeRpcBackendOptions(_transports=["ibv"], _channels=["basic"], rpc_timeout=30)
rpc.init_rpc(f"worker{rank}", rank=rank, world_size=2, rpc_backend_options=options)
if rank == 1:
    for count in (1, 1000, 1 << 20, 1 << 22):
        tensor = torch.arange(count, dtype=torch.float32)
        if not torch.equal(rpc.rpc_sync("worker0", double, (tensor,)), tensor * 2):
            sys.exit(f"the answer of {count} numbers is wrong")
    pair, rounds = torch.ones(2), 100
    began = time.monotonic()
    for _ in range(rounds):
        rpc.rpc_sync("worker0", double, (pair,))
    print(f"a call with 8 bytes {(time.monotonic() - began) / rounds * 1e3:.2f} ms")
rpc.shutdown()
print("done", flush=True)
