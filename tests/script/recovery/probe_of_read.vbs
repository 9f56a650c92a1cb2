# Of a READ the probe asks for its missing tail only.
qp rc
 +0us post read len=4000 wr=1
 +0us > rc.read_request psn=100 ackreq
+10us < rc.read_response_first  psn=100 len=1024
 +0us < rc.read_response_middle psn=101 len=1024
+1ms > rc.read_request psn=102 dma=1952 ackreq
 +5us < rc.read_response_first psn=102 len=1024
 +0us < rc.read_response_last  psn=103 len=928
 +0us complete wr=1 success
