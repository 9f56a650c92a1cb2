# The message is longer than the receive: both sides hear of it, the receiver through the SRQ's CQ.
cq other size=8 unpolled
xrc_srq red cq=other
qp xrc_recv
 +0us recv len=4 wr=1 srqn=red
 +0us recv len=64 at=local+64 wr=2 srqn=red
 +0us < xrc.send_only psn=200 len=8 srqn=red ackreq dropped takes_recv
 +0us > xrc.ack psn=200 nak=invalid_request
 +0us state err cause=recv_too_short
 +0us poll cq=other recv wr=1 loc_len_err
 +0us poll cq=other empty
