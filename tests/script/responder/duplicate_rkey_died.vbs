# A READ executed again checks its key again: if that died meanwhile, it is refused.
qp rc
 +0us < rc.read_request psn=200 dma=8
 +0us > rc.read_response_only psn=200 len=8
 +0us invalidate mr=remote
 +9us < rc.read_request psn=200 dma=8 dup
 +0us > rc.ack psn=200 nak=remote_access
 +0us event qp_access_err
 +0us state err cause=remote_bad_rkey
