# A region that may only be read.
mr readonly access=rr
qp rc
 +0us < rc.read_request psn=200 dma=8 va=readonly rkey=readonly
 +0us > rc.read_response_only psn=200 len=8
 +0us < rc.write_only psn=201 len=8 va=readonly rkey=readonly ackreq dropped
 +0us > rc.ack psn=201 nak=remote_access
 +0us event qp_access_err
 +0us state err cause=remote_bad_rkey
