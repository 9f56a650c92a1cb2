# Both ends recover selectively: of five packets two are missing, and those two alone are sent again.
lane selective
qp rc
 +0us post write len=5120 wr=7
 +0us > rc.write_first  psn=100 len=1024
 +0us > rc.write_middle psn=101 len=1024
 +0us > rc.write_middle psn=102 len=1024
 +0us > rc.write_middle psn=103 len=1024
 +0us > rc.write_last   psn=104 len=1024 ackreq
+10us < vb.bitmap psn=100 expected=101 bits=0x14
 +2500ns > rc.write_middle psn=101 len=1024 ackreq
 +0us > rc.write_middle psn=103 len=1024 ackreq
+10us < rc.ack psn=104
 +0us complete wr=7 success
 +0us idle
 +0us counter lost=2 retransmitted=2 bitmap_received=1 timeouts=0
