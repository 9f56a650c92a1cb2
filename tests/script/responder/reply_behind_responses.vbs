# Replies go first, but none overtakes the response to an earlier READ.
lane replies_first
qp rc
 +0us < rc.read_request psn=200 dma=2048 va=remote more
 +0us < rc.write_only psn=202 len=8 ackreq
 +0us > rc.read_response_first psn=200 len=1024
 +0us > rc.read_response_last  psn=201 len=1024
 +0us > rc.ack psn=202
