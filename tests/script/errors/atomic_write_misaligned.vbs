# Eight bytes that do not lie on their alignment cannot be written at once.
qp rc
 +0us < rc.atomic_write psn=200 len=8 va=remote+12 dropped
 +0us > rc.ack psn=200 nak=invalid_request
 +0us event qp_req_err
 +0us state err cause=remote_bad_request
