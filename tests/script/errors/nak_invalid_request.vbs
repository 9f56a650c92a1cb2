# The peer refuses a request as invalid: that one fails, those before it were executed, the rest is flushed.
qp rc
 +0us post send len=8 wr=1
 +0us > rc.send_only psn=100 len=8 ackreq
 +0us post send len=8 wr=2
 +0us > rc.send_only psn=101 len=8 ackreq
 +0us post send len=8 wr=3
 +0us > rc.send_only psn=102 len=8 ackreq
 +5us < rc.ack psn=101 nak=invalid_request
 +0us complete wr=1 success
 +0us complete wr=2 rem_inv_req_err
 +0us complete wr=3 wr_flush_err
 +0us state err cause=nak_invalid_request
