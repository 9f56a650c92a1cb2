# The newest packet draws no answer (the peer had sent its one NAK, and that was lost): next the oldest, which always does.
qp rc timeout=20
 +0us post write len=2500 wr=1
 +0us > rc.write_first  psn=100 len=1024
 +0us > rc.write_middle psn=101 len=1024
 +0us > rc.write_last   psn=102 len=452 ackreq
+1ms > rc.write_last   psn=102 len=452 ackreq
+1ms..4ms > rc.write_first psn=100 len=1024 ackreq
 +5us < rc.ack psn=100
 +0us > rc.write_middle psn=101 len=1024
 +0us > rc.write_last   psn=102 len=452 ackreq
 +5us < rc.ack psn=102
 +0us complete wr=1 success
 +0us counter timeouts=0 probes=2
