# A type-1 window changes its key at each bind: the old key is dead, the new one works; any QP of the domain may use it.
mw w type=1
qp rc name=a
qp rc name=b dest_qpn=0x333
 +0us post bind mw=w at=remote+4096 len=256 access=rw wr=1 qp=a
 +0us complete wr=1 success qp=a
 +0us < rc.write_only psn=200 len=8 va=remote+4096 rkey=w qp=b ackreq
 +0us > rc.ack psn=200 qp=b
 +0us post bind mw=w at=remote+8192 len=256 access=rw wr=2 qp=a
 +0us complete wr=2 success qp=a
 +0us < rc.write_only psn=201 len=8 va=remote+8192 rkey=w qp=b ackreq
 +0us > rc.ack psn=201 qp=b
 +0us < rc.write_only psn=202 len=8 va=remote+4096 rkey=w qp=b ackreq dropped
 +0us > rc.ack psn=202 nak=remote_access qp=b
 +0us event qp_access_err qp=b
 +0us state err cause=remote_bad_rkey qp=b
