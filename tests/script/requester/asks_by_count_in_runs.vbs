# The same where many leave at once.
lane no_cc no_window by_count ack_packets=3
qp rc
 +0us post write len=8000 wr=1
 +0us > rc.write_first  psn=100 len=1024
 +0us > rc.write_middle psn=101 len=1024
 +0us > rc.write_middle psn=102 len=1024 ackreq
 +0us > rc.write_middle psn=103 len=1024
 +0us > rc.write_middle psn=104 len=1024
 +0us > rc.write_middle psn=105 len=1024 ackreq
 +0us > rc.write_middle psn=106 len=1024
 +0us > rc.write_last   psn=107 len=832 ackreq
+10us < rc.ack psn=107
 +0us complete wr=1 success
 +0us idle
