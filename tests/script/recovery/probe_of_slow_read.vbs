# The peer was slow, nothing is lost: its own responses come after the probe, and nothing more is asked for.
qp rc
 +0us post read len=4000 wr=1
 +0us > rc.read_request psn=100 ackreq
+1ms > rc.read_request psn=100 dma=1024 ackreq
+10us < rc.read_response_first  psn=100 len=1024
 +0us < rc.read_response_middle psn=101 len=1024
 +0us < rc.read_response_middle psn=102 len=1024
 +0us < rc.read_response_last   psn=103 len=928
 +0us complete wr=1 success
 +0us < rc.read_response_only   psn=100 len=1024
 +0us idle
