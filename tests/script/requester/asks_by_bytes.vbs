# Within a message every so many bytes, as windows count them: here a packet is 1280.
lane no_cc no_window by_count ack_bytes=2560
qp rc
 +0us post write len=5000 wr=1
 +0us > rc.write_first  psn=100 len=1024
 +0us > rc.write_middle psn=101 len=1024 ackreq
 +0us > rc.write_middle psn=102 len=1024
 +0us > rc.write_middle psn=103 len=1024 ackreq
 +0us > rc.write_last   psn=104 len=904 ackreq
+10us < rc.ack psn=104
 +0us complete wr=1 success
