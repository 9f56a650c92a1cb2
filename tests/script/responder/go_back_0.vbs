# Where messages begin again, a gap has all forgotten that came of one: a WRITE, and a SEND, which keeps its receive.
lane go_back_0
qp rc mtu=1024
 +0us < rc.write_first  psn=200 len=1024 dma=3500
 +1us < rc.write_middle psn=201 len=1024
 +1us < rc.write_last   psn=203 len=428 ackreq dropped
 +0us > rc.ack psn=202 nak=psn_sequence msn=0
 +1us < rc.write_first  psn=200 len=1024 dma=3500
 +1us < rc.write_middle psn=201 len=1024
 +1us < rc.write_middle psn=202 len=1024
 +1us < rc.write_last   psn=203 len=428 ackreq
 +0us > rc.ack psn=203 msn=1
 +0us recv len=3000 wr=4
 +1us < rc.send_first psn=204 len=1024
 +1us < rc.send_last  psn=206 len=100 ackreq dropped
 +0us > rc.ack psn=205 nak=psn_sequence msn=1
 +1us < rc.send_first psn=204 len=1024
 +1us < rc.send_middle psn=205 len=1024
 +1us < rc.send_last  psn=206 len=100 ackreq
 +0us > rc.ack psn=206 msn=2
 +0us complete recv wr=4 success len=2148
