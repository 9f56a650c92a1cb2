# A message goes to one SRQ; its receive is lost to the error.
xrc_srq red
xrc_srq blue
qp xrc_recv
 +0us recv len=4096 at=local wr=1 srqn=red
 +0us recv len=4096 at=local+8192 wr=2 srqn=blue
 +0us < xrc.send_first psn=200 len=1024 srqn=red
 +0us < xrc.send_last  psn=201 len=8 srqn=blue ackreq dropped
 +0us > xrc.ack psn=201 nak=invalid_request
 +0us state err cause=remote_bad_srq psn=201
 +0us complete recv wr=1 rem_inv_req_err
 +0us idle
