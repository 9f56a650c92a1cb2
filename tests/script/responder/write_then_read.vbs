# A READ's response acknowledges the WRITE before it, and reads what was written.
qp rc
 +0us < rc.write_only   psn=200 len=8 ackreq more
 +0us < rc.read_request psn=201 dma=8
 +0us > rc.read_response_only psn=201 len=8 msn=2
 +0us idle
