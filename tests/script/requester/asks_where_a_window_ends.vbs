# By count alone, and the count is never reached: what fills the window asks all the same, or nothing would open it. Once
# something under way has asked, what fills the window behind it has not to.
lane by_count ack_bytes=0xffffffff first_window=4096 max_window=4096 no_overhead no_window
qp rc
 +0us post write len=8192 wr=1
 +0us > rc.write_first  psn=100 len=1024
 +0us > rc.write_middle psn=101 len=1024
 +0us > rc.write_middle psn=102 len=1024
 +0us > rc.write_middle psn=103 len=1024 ackreq
+10us < rc.ack psn=101
 +0us > rc.write_middle psn=104 len=1024
 +0us > rc.write_middle psn=105 len=1024
+10us < rc.ack psn=103
 +0us > rc.write_middle psn=106 len=1024
 +0us > rc.write_last   psn=107 len=1024 ackreq
+10us < rc.ack psn=107
 +0us complete wr=1 success
 +0us idle
