# A peer without that SRQ: the request fails, the rest is flushed.
qp xrc_send
 +0us post send len=8 srqn=7 wr=1
 +0us > xrc.send_only psn=100 len=8 ackreq
 +0us post send len=8 srqn=8 wr=2
 +0us > xrc.send_only psn=101 len=8 ackreq
+10us < xrc.ack psn=101 nak=invalid_request
 +0us complete wr=1 success
 +0us state err cause=nak_invalid_request psn=101
 +0us complete wr=2 rem_inv_req_err
 +0us post send len=8 srqn=7 wr=3 unsent
 +0us complete wr=3 wr_flush_err
