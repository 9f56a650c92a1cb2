# The expected PSN wraps, within a message and between.
qp rc rq_psn=16777214
 +0us < rc.write_first  psn=16777214 len=1024 dma=2500
 +0us < rc.write_middle psn=16777215 len=1024
 +0us < rc.write_last   psn=0 len=452 ackreq
 +0us > rc.ack psn=0 msn=1
 +0us < rc.read_request psn=1 dma=8
 +0us > rc.read_response_only psn=1 len=8
