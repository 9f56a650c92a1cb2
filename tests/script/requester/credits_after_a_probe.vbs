# The peer took the probe of a lost READ for a message of its own, so its MSN is one ahead of our SSN for good. Its credits
# are counted from what it acknowledges: one more SEND may leave, not two.
qp rc
 +0us post read len=4000 wr=1
 +0us > rc.read_request psn=100 ackreq
+1ms > rc.read_request psn=100 dma=1024 ackreq
 +5us < rc.read_response_only  psn=100 len=1024
 +0us > rc.read_request psn=101 dma=2976 ackreq
 +5us < rc.read_response_first  psn=101 len=1024
 +0us < rc.read_response_middle psn=102 len=1024
 +0us < rc.read_response_last   psn=103 len=928
 +0us complete wr=1 success
 +0us post send len=8 wr=2
 +0us > rc.send_only psn=104 len=8 ackreq
+10us < rc.ack psn=104 credits=1 msn=3
 +0us complete wr=2 success
 +0us post send len=8 wr=3
 +0us > rc.send_only psn=105 len=8 ackreq
 +0us post send len=8 wr=4
+10us < rc.ack psn=105 credits=1 msn=4
 +0us complete wr=3 success
 +0us > rc.send_only psn=106 len=8 ackreq
+10us < rc.ack psn=106 credits=1 msn=5
 +0us complete wr=4 success
