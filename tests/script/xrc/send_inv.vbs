# A window is bound through a send queue, which a receiving QP has not: no key of its can be invalidated by the peer.
xrc_srq red
mw w type=2
qp rc name=binder dest_qpn=0x333
qp xrc_recv name=recv
 +0us post bind mw=w len=64 wr=1 qp=binder
 +0us complete wr=1 success qp=binder
 +0us recv len=64 wr=2 srqn=red
 +0us < xrc.send_only_inv qp=recv psn=200 len=8 inv=w srqn=red ackreq
 +0us > xrc.ack qp=recv psn=200 nak=remote_access
 +0us state err qp=recv cause=remote_bad_rkey
 +0us complete recv qp=recv wr=2 loc_access_err
