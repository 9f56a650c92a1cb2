# A region without remote atomic permission.
mr plain access=lw,rw,rr
qp rc
 +0us < rc.fetch_add psn=200 va=plain rkey=plain add=1 dropped
 +0us > rc.ack psn=200 nak=remote_access
 +0us event qp_access_err
 +0us state err cause=remote_bad_rkey
