# A path MTU that is no power of two.
nic mtu=1000
lane no_overhead first_window=3000 max_window=3000 no_window
qp rc mtu=1000
 +0us post write len=2500 wr=1
 +0us > rc.write_first  psn=100 len=1000
 +0us > rc.write_middle psn=101 len=1000
 +0us > rc.write_last   psn=102 len=500 ackreq
+10us < rc.ack psn=102
 +0us complete wr=1 success
 +0us post write len=2000 wr=2
 +0us > rc.write_first  psn=103 len=1000
 +0us > rc.write_last   psn=104 len=1000 ackreq
+10us < rc.ack psn=104
 +0us complete wr=2 success
 +0us post read len=2001 wr=3
 +0us > rc.read_request psn=105 dma=2001 ackreq
+10us < rc.read_response_first psn=105 len=1000
 +0us < rc.read_response_middle psn=106 len=1000
 +0us < rc.read_response_last psn=107 len=1
 +0us complete wr=3 success
 +0us post write len=8 wr=4
 +0us > rc.write_only psn=108 len=8 ackreq
 +1us < rc.ack psn=108
 +0us complete wr=4 success
 +0us idle
