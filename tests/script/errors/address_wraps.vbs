# A range that wraps around the end of all addresses is no range.
qp rc
 +0us < rc.read_request psn=200 dma=64 va=0xfffffffffffffff0 dropped
 +0us > rc.ack psn=200 nak=remote_access
 +0us event qp_access_err
 +0us state err cause=remote_bad_rkey
