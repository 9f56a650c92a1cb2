# Towards a Verbena peer half of what its receive buffer holds may be under way.
peer verbena receive_buffer=8192
qp rc
 +0us post write len=4096 wr=1
 +0us > rc.write_first  psn=100 len=1024
 +0us > rc.write_middle psn=101 len=1024
 +0us > rc.write_middle psn=102 len=1024 ackreq
+10us < rc.ack psn=102
 +0us > rc.write_last   psn=103 len=1024 ackreq
+10us < rc.ack psn=103
 +0us complete wr=1 success
