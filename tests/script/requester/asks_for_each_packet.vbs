# An ack for each packet.
lane no_cc no_window by_count ack_packets=1
qp rc
 +0us post send len=3000 wr=1
 +0us > rc.send_first  psn=100 len=1024 ackreq
 +0us > rc.send_middle psn=101 len=1024 ackreq
 +0us > rc.send_last   psn=102 len=952 ackreq
+10us < rc.ack psn=102
 +0us complete wr=1 success
