# First, Middle and Last; only the last asks for an ack, which acknowledges all three.
qp rc
 +0us post write len=2500 wr=7
 +0us > rc.write_first  psn=100 len=1024
 +0us > rc.write_middle psn=101 len=1024
 +0us > rc.write_last   psn=102 len=452 ackreq
+10us < rc.ack psn=102
 +0us complete wr=7 success
 +0us idle
