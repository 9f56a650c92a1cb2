# A bound window opens exactly its range with exactly its permissions, to its own QP alone.
mw w type=2
qp rc name=a
qp rc name=b dest_qpn=0x333
 +0us post bind mw=w at=remote+4096 len=256 access=rr wr=1 qp=a
 +0us complete wr=1 success qp=a
 +0us < rc.read_request psn=200 va=remote+4096 dma=256 rkey=w qp=a
 +0us > rc.read_response_only psn=200 len=256 qp=a
 +0us < rc.read_request psn=200 va=remote+4096 dma=8 rkey=w qp=b dropped
 +0us > rc.ack psn=200 nak=remote_access qp=b
 +0us event qp_access_err qp=b
 +0us state err cause=remote_bad_rkey qp=b
 +0us < rc.read_request psn=201 va=remote+4095 dma=8 rkey=w qp=a dropped
 +0us > rc.ack psn=201 nak=remote_access qp=a
 +0us event qp_access_err qp=a
 +0us state err cause=remote_bad_rkey qp=a
