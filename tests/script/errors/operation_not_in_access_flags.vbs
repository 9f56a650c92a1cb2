# A QP whose access flags do not allow WRITEs refuses them as invalid, whatever the key.
qp rc access=rr
 +0us < rc.read_request psn=200 dma=8
 +0us > rc.read_response_only psn=200 len=8
 +0us < rc.write_only psn=201 len=8 ackreq dropped
 +0us > rc.ack psn=201 nak=invalid_request
 +0us event qp_req_err
 +0us state err cause=remote_bad_request
