# A READ begins again as well when one of its responses is missing.
lane go_back_0
qp rc
 +0us post read len=4000 wr=1
 +0us > rc.read_request psn=100 ackreq
+10us < rc.read_response_first  psn=100 len=1024
 +1us < rc.read_response_middle psn=102 len=1024 dropped
 +0us > rc.read_request psn=100 dma=4000 ackreq
 +1us < rc.read_response_last   psn=103 len=928 dropped
+10us < rc.read_response_first  psn=100 len=1024 dup
 +1us < rc.read_response_middle psn=101 len=1024
 +1us < rc.read_response_middle psn=102 len=1024
 +1us < rc.read_response_last   psn=103 len=928
 +0us complete wr=1 success
 +0us idle
