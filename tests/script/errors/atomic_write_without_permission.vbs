# It needs what a WRITE needs: the region may only be read.
mr readonly access=rr
qp rc
 +0us < rc.atomic_write psn=200 len=8 va=readonly rkey=readonly dropped
 +0us > rc.ack psn=200 nak=remote_access
 +0us event qp_access_err
 +0us state err cause=remote_bad_rkey
