# FLUSH is not offered: refused as invalid.
qp rc
 +0us < rc.flush psn=200 dropped
 +0us > rc.ack psn=200 nak=invalid_request
 +0us event qp_req_err
 +0us state err cause=remote_bad_request
