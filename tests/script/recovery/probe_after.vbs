# The least silence before a probe is the lane's.
lane probe_after=50us
qp rc
 +0us post write len=2500 wr=1
 +0us > rc.write_first  psn=100 len=1024
 +0us > rc.write_middle psn=101 len=1024
 +0us > rc.write_last   psn=102 len=452 ackreq
+50us > rc.write_last   psn=102 len=452 ackreq
 +5us < rc.ack psn=102
 +0us complete wr=1 success
