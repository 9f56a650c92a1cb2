# One byte before the region's start.
qp rc
 +0us < rc.write_only psn=200 len=8 va=0x1fffffff dropped
 +0us > rc.ack psn=200 nak=remote_access
 +0us event qp_access_err
 +0us state err cause=remote_bad_rkey
