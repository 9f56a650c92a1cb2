# By count alone turns ask for nothing: two packets in three do not, and the last of a message does.
lane no_cc no_window budget=1 by_count ack_packets=3
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
+10us < rc.ack psn=102
+10us < rc.ack psn=105
+10us < rc.ack psn=107
 +0us complete wr=1 success
 +0us post write len=1000 wr=2
 +0us > rc.write_only psn=108 len=1000 ackreq
 +1us < rc.ack psn=108
 +0us complete wr=2 success
 +0us idle
