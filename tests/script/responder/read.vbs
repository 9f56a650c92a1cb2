# READs are answered with as many responses as the path MTU asks; each carries the MSN of the READ.
qp rc
 +0us < rc.read_request psn=200 dma=300 va=remote+100
 +0us > rc.read_response_only psn=200 len=300 msn=1
 +0us < rc.read_request psn=201 dma=2500 va=remote+1000
 +0us > rc.read_response_first  psn=201 len=1024 msn=2
 +0us > rc.read_response_middle psn=202 len=1024
 +0us > rc.read_response_last   psn=203 len=452 msn=2
 +0us < rc.read_request psn=204 dma=0 rkey=bad va=0
 +0us > rc.read_response_only psn=204 len=0 msn=3
 +0us idle
