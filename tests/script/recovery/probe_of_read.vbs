# Of a READ the probe asks for the first missing packet alone: a peer that is merely slow is not made to send everything
# twice. Its answer, a response of one packet, says that the rest was lost, and the rest is asked for.
qp rc
 +0us post read len=4000 wr=1
 +0us > rc.read_request psn=100 ackreq
+10us < rc.read_response_first  psn=100 len=1024
 +0us < rc.read_response_middle psn=101 len=1024
+1ms > rc.read_request psn=102 dma=1024 ackreq
 +5us < rc.read_response_only  psn=102 len=1024
 +0us > rc.read_request psn=103 dma=928 ackreq
 +5us < rc.read_response_only  psn=103 len=928
 +0us complete wr=1 success
