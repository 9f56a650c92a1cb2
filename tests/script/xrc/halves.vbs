# A QP is one half alone: what is the other half's is dropped, and cannot be posted.
xrc_srq red
qp xrc_send name=send
qp xrc_recv name=recv dest_qpn=0x333
 +0us recv len=64 wr=1 srqn=red
 +0us < xrc.send_only  qp=send psn=200 len=8 srqn=red ackreq dropped
 +0us < xrc.ack        qp=recv psn=100 dropped
 +0us < rc.send_only   qp=recv psn=200 len=8 ackreq dropped
 +0us < rc.ack         qp=send psn=99 dropped
 +0us counter drop_transport=4
 +0us post send qp=recv len=8 wr=2 fails=EINVAL
 +0us post read qp=recv len=8 wr=2 fails=EINVAL
 +0us recv len=8 wr=3 qp=send fails=EINVAL
 +0us recv len=8 wr=3 qp=recv fails=EINVAL
 +0us < xrc.send_only qp=recv psn=200 len=8 srqn=red ackreq
 +0us > xrc.ack qp=recv psn=200 msn=1
 +0us complete recv qp=recv wr=1 success
 +0us idle
