"""wrong_key.py [right | beyond]: a WRITE with a key that the responder never gave, or with the right one, or with the right one
and an end beyond the responder's memory; and its completion. Both ends are queue pairs of this process. It needs Debian's
python3-pyverbs, and so Debian's python3."""

import sys

from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context, get_device_list
from pyverbs.enums import (IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE, IBV_MTU_1024, IBV_QPT_RC, IBV_SEND_SIGNALED,
                           IBV_WR_RDMA_WRITE)
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

SIZE = 64


class End:
    """A queue pair, and memory that its peer may write to."""

    def __init__(self, context):
        self.pd, self.cq = PD(context), CQ(context, 8)
        self.memory = MR(self.pd, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
        self.qp = QP(self.pd, QPInitAttr(qp_type=IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=QPCap()))

    def connect(self, gid, peer):
        attr = QPAttr()
        attr.dest_qp_num, attr.path_mtu, attr.qp_access_flags = peer.qp.qp_num, IBV_MTU_1024, IBV_ACCESS_REMOTE_WRITE
        attr.ah_attr = AHAttr(gr=GlobalRoute(dgid=gid, sgid_index=0), is_global=1)
        attr.timeout, attr.retry_cnt, attr.rnr_retry = 14, 7, 7
        self.qp.to_rts(attr)


context = Context(name=get_device_list()[0].name.decode())
gid = context.query_gid(1, 0)
requester, responder = End(context), End(context)
requester.connect(gid, responder)
responder.connect(gid, requester)

case = sys.argv[1] if len(sys.argv) > 1 else "wrong"
key = responder.memory.rkey ^ (0x100 if case == "wrong" else 0)
write = SendWR(num_sge=1, sg=[SGE(requester.memory.buf, SIZE, requester.memory.lkey)], opcode=IBV_WR_RDMA_WRITE,
               send_flags=IBV_SEND_SIGNALED)
write.set_wr_rdma(key, responder.memory.buf + (1 if case == "beyond" else 0))
requester.qp.post_send(write)
completions = []
while not completions:
    completions = requester.cq.poll()[1]
print(completions[0])
