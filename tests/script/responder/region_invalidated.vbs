# A key that died in the middle of a message refuses the rest of it.
qp rc
 +0us < rc.write_first  psn=200 len=1024 dma=3000
 +0us invalidate mr=remote
 +0us < rc.write_middle psn=201 len=1024 dropped
 +0us > rc.ack psn=201 nak=remote_access
 +0us event qp_access_err
 +0us state err cause=remote_bad_rkey psn=201
