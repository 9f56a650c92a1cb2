# What an SRQ received is its own: it stays in its CQ when the QP that it came by is reset.
cq other size=8 unpolled
xrc_srq red cq=other
qp xrc_recv
 +0us recv len=64 wr=1 srqn=red
 +0us < xrc.send_only psn=200 len=8 srqn=red ackreq
 +0us > xrc.ack psn=200
 +0us modify state=reset
 +0us poll cq=other recv wr=1 success
 +0us modify state=init
 +0us modify state=rtr
 +0us recv len=64 at=local+64 wr=2 srqn=red
 +0us < xrc.send_only psn=200 len=8 srqn=red ackreq
 +0us event comm_est
 +0us > xrc.ack psn=200
 +0us poll cq=other recv wr=2 success
