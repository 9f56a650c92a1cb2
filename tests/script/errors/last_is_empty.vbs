# Last carries at least one byte.
qp rc
 +0us < rc.write_first psn=200 len=1024 dma=2000
 +0us < rc.write_last psn=201 len=0 ackreq dropped
 +0us > rc.ack psn=201 nak=invalid_request
 +0us event qp_req_err
 +0us state err cause=remote_bad_request
