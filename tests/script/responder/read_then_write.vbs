# The ack of a WRITE that follows a READ leaves after the READ's responses.
qp rc
 +0us < rc.read_request psn=200 dma=2048 va=remote+1000 more
 +0us < rc.write_only   psn=202 len=8 ackreq
 +0us > rc.read_response_first psn=200 len=1024
 +0us > rc.read_response_last  psn=201 len=1024
 +0us > rc.ack psn=202 msn=2
