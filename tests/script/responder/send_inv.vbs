# SEND with invalidate lands, kills the window's key and says which; the key is refused afterwards.
mw w type=2
qp rc
 +0us post bind mw=w at=remote+4096 len=4096 access=rw,rr wr=1
 +0us complete wr=1 success
 +0us < rc.write_only psn=200 len=8 va=remote+4096 rkey=w ackreq
 +0us > rc.ack psn=200
 +0us recv len=64 wr=2
 +0us < rc.send_only_inv psn=201 len=64 inv=w ackreq
 +0us > rc.ack psn=201
 +0us complete recv wr=2 success len=64 inv=w
 +0us < rc.write_only psn=202 len=8 va=remote+4096 rkey=w ackreq dropped
 +0us > rc.ack psn=202 nak=remote_access
 +0us event qp_access_err
 +0us state err cause=remote_bad_rkey
