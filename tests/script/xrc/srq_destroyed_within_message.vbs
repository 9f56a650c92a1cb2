# The receive that a message was arriving into goes with its SRQ, without a completion; the message is refused, and no
# other SRQ takes it up.
xrc_srq red
xrc_srq blue
qp xrc_recv name=a
qp xrc_recv name=b dest_qpn=0x333
 +0us recv len=4096 wr=1 srqn=red
 +0us recv len=4096 at=local+8192 wr=2 srqn=red
 +0us recv len=4096 at=local+16384 wr=3 srqn=blue
 +0us < xrc.send_first qp=a psn=200 len=1024 srqn=red
 +0us < xrc.send_first qp=b psn=200 len=1024 srqn=red
 +0us destroy_srq srqn=red
 +0us < xrc.send_last qp=a psn=201 len=8 srqn=red ackreq dropped
 +0us > xrc.ack qp=a psn=201 nak=invalid_request
 +0us event qp_req_err qp=a
 +0us state err qp=a cause=remote_bad_srq
 +0us < xrc.send_last qp=b psn=201 len=8 srqn=blue ackreq dropped
 +0us > xrc.ack qp=b psn=201 nak=invalid_request
 +0us event qp_req_err qp=b
 +0us state err qp=b cause=remote_bad_srq
 +0us idle
