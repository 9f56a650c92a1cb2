# Nothing is to come back but that it was done.
qp rc
 +0us post atomic_write len=8 wr=1
 +0us > rc.atomic_write psn=100 len=8 ackreq
 +5us < rc.read_response_only psn=100 len=8 dropped
 +0us complete wr=1 bad_resp_err
 +0us state err cause=bad_response
