# Binding a type-2 window and using it is one queue: the bind happens before the SEND that tells the peer.
mw w type=2
qp rc
 +0us post bind mw=w at=remote+256 len=512 access=rw,rr wr=1
 +0us complete wr=1 success
 +0us post send len=8 wr=2
 +0us > rc.send_only psn=100 len=8 ackreq
 +5us < rc.ack psn=100
 +0us complete wr=2 success
