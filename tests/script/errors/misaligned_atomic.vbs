# An atomic's address is a multiple of eight.
qp rc
 +0us < rc.fetch_add psn=200 va=remote+4 add=1 dropped
 +0us > rc.ack psn=200 nak=invalid_request
 +0us event qp_req_err
 +0us state err cause=remote_bad_request
