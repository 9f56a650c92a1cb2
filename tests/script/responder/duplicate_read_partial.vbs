# A READ asked for again from the first missing response: only that part is answered, with the PSNs it had.
qp rc
 +0us < rc.read_request psn=200 dma=4000 va=remote
 +0us > rc.read_response_first  psn=200 len=1024
 +0us > rc.read_response_middle psn=201 len=1024
 +0us > rc.read_response_middle psn=202 len=1024
 +0us > rc.read_response_last   psn=203 len=928
 +9us < rc.read_request psn=202 dma=1952 va=remote+2048 dup
 +0us > rc.read_response_first psn=202 len=1024
 +0us > rc.read_response_last  psn=203 len=928
 +9us < rc.read_request psn=201 dma=1024 va=remote+1024 dup
 +0us > rc.read_response_only psn=201 len=1024
 +9us < rc.read_request psn=200 dma=4000 va=remote dup
 +0us > rc.read_response_first  psn=200 len=1024
 +0us > rc.read_response_middle psn=201 len=1024
 +0us > rc.read_response_middle psn=202 len=1024
 +0us > rc.read_response_last   psn=203 len=928
 +0us idle
