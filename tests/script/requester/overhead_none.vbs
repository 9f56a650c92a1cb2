# Where a packet costs a window its bytes alone, a window of two packets is two packets; else there would be one.
lane no_overhead first_window=2048 max_window=2048 no_window
qp rc
 +0us post write len=4096 wr=1
 +0us > rc.write_first  psn=100 len=1024
 +0us > rc.write_middle psn=101 len=1024 ackreq
+10us < rc.ack psn=101
 +0us > rc.write_middle psn=102 len=1024
 +0us > rc.write_last   psn=103 len=1024 ackreq
+10us < rc.ack psn=103
 +0us complete wr=1 success
