# One packet, one ack, one completion; nothing is left to do afterwards.
qp rc
 +0us post write len=700 wr=7
 +0us > rc.write_only psn=100 len=700 ackreq
+10us < rc.ack psn=100
 +0us complete wr=7 success
 +0us idle
 +0us deadline none
