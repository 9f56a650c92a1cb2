# The peer cannot complete the request.
qp rc
 +0us post send len=2000 wr=1
 +0us > rc.send_first psn=100 len=1024
 +0us > rc.send_last  psn=101 len=976 ackreq
 +5us < rc.ack psn=101 nak=remote_operation
 +0us complete wr=1 rem_op_err
 +0us state err cause=nak_remote_operation
