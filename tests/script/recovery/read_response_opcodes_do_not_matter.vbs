# What a responder calls First or Only after a partial repeat follows from the repeat, not from the READ.
qp rc
 +0us post read len=3000 wr=1
 +0us > rc.read_request psn=100 ackreq
+10us < rc.read_response_only  psn=100 len=1024
 +1us < rc.read_response_first psn=101 len=1024
 +1us < rc.read_response_last  psn=102 len=952
 +0us complete wr=1 success
