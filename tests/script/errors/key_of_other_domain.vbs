# The key of a region in another protection domain.
mr other other_pd access=lw,rw,rr
qp rc
 +0us < rc.write_only psn=200 len=8 va=other rkey=other dropped
 +0us > rc.ack psn=200 nak=remote_access
 +0us event qp_access_err
 +0us state err cause=remote_bad_rkey
