# Messages of one connection go to two SRQs, those of two connections to one.
cq first size=8 unpolled
cq second size=8 unpolled
xrc_srq red cq=first
xrc_srq blue cq=second limit=1
qp xrc_recv name=a
qp xrc_recv name=b dest_qpn=0x333
 +0us recv len=64 at=local wr=1 srqn=red
 +0us recv len=64 at=local+64 wr=2 srqn=blue
 +0us recv len=64 at=local+128 wr=3 srqn=red
 +0us < xrc.send_only qp=a psn=200 len=8 srqn=red ackreq
 +0us > xrc.ack qp=a psn=200 msn=1
 +0us poll cq=first recv wr=1 success qp=a
 +0us poll cq=second empty
 +0us < xrc.send_only qp=a psn=201 len=9 srqn=blue ackreq
 +0us event srq_limit
 +0us > xrc.ack qp=a psn=201 msn=2
 +0us poll cq=second recv wr=2 success qp=a
 +0us < xrc.send_only qp=b psn=200 len=10 srqn=red ackreq
 +0us > xrc.ack qp=b psn=200 msn=1
 +0us poll cq=first recv wr=3 success qp=b src_qpn=0x333
 +0us idle
