# First and Middle are exactly the path MTU.
qp rc
 +0us < rc.write_first psn=200 len=1000 dma=3000 dropped
 +0us > rc.ack psn=200 nak=invalid_request
 +0us event qp_req_err
 +0us state err cause=remote_bad_request
