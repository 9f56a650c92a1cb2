# The receive in hand is flushed into the SRQ's CQ, the others stay the SRQ's. The QP has none to be the last.
cq other size=8 unpolled
xrc_srq red cq=other
qp xrc_recv
 +0us recv len=4096 wr=1 srqn=red
 +0us recv len=4096 at=local+8192 wr=2 srqn=red
 +0us < xrc.send_first psn=200 len=1024 srqn=red
 +0us modify state=err
 +0us poll cq=other recv wr=1 wr_flush_err
 +0us poll cq=other empty
 +0us idle
