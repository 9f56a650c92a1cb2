# A READ repeated after its key died is dropped: the requester may have had its answer, and revoked the key for that reason.
qp rc
 +0us < rc.read_request psn=200 dma=8
 +0us > rc.read_response_only psn=200 len=8
 +0us invalidate mr=remote
 +9us < rc.read_request psn=200 dma=8 dup
 +0us idle
 +0us state rts
 +0us counter drop_duplicate=1
