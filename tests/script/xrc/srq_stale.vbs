# A number that its entry had, or will have, at another time: refused when it is the request's turn.
xrc_srq red
qp xrc_recv
 +0us recv len=64 wr=1 srqn=red
 +0us < xrc.send_only psn=202 len=8 srqn=red+0x10000 ackreq dropped
 +0us > xrc.ack psn=200 nak=psn_sequence
 +0us < xrc.send_only psn=200 len=8 srqn=red+0x10000 ackreq dropped
 +0us > xrc.ack psn=200 nak=invalid_request
 +0us event qp_req_err
 +0us state err cause=remote_bad_srq psn=200
 +0us < xrc.send_only psn=201 len=8 srqn=red ackreq dropped
 +0us counter drop_qp_state=1
