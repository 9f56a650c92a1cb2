# The SRQ's CQ overruns: the QP that filled it fails, as any QP does.
cq small size=1 unpolled
xrc_srq red cq=small
qp xrc_recv
 +0us recv len=64 wr=1 srqn=red
 +0us recv len=64 at=local+64 wr=2 srqn=red
 +0us < xrc.send_only psn=200 len=8 srqn=red ackreq
 +0us > xrc.ack psn=200
 +0us < xrc.send_only psn=201 len=8 srqn=red
 +0us event cq_err
 +0us event qp_fatal
 +0us state err cause=cq_overrun
 +0us poll cq=small recv wr=1 success
 +0us poll cq=small overrun
