# Nothing is longer than 2^31 bytes.
qp rc
 +0us < rc.read_request psn=200 dma=0x80000001 dropped
 +0us > rc.ack psn=200 nak=invalid_request
 +0us event qp_req_err
 +0us state err cause=remote_bad_request
