# A region that may only be written.
mr writeonly access=lw,rw
qp rc
 +0us < rc.read_request psn=200 dma=8 va=writeonly rkey=writeonly dropped
 +0us > rc.ack psn=200 nak=remote_access
 +0us event qp_access_err
 +0us state err cause=remote_bad_rkey
