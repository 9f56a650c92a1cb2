# The peer refuses access to its memory.
qp rc
 +0us post read len=8 wr=1
 +0us > rc.read_request psn=100 ackreq
 +5us < rc.ack psn=100 nak=remote_access
 +0us complete wr=1 rem_access_err
 +0us state err cause=nak_remote_access access=read len=8
