# Two duplicates that between them ask for the rest of one remembered READ: the second continues the first, and cuts nothing off.
qp rc
 +0us < rc.read_request psn=200 dma=4000 va=remote
 +0us > rc.read_response_first  psn=200 len=1024
 +0us > rc.read_response_middle psn=201 len=1024
 +0us > rc.read_response_middle psn=202 len=1024
 +0us > rc.read_response_last   psn=203 len=928
 +9us < rc.read_request psn=201 dma=1024 va=remote+1024 dup more
 +0us < rc.read_request psn=202 dma=1952 va=remote+2048 dup
 +0us > rc.read_response_first psn=201 len=1024
 +0us > rc.read_response_middle psn=202 len=1024
 +0us > rc.read_response_last  psn=203 len=928
 +0us idle
