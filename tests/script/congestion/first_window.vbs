# A lane may begin with another window than 64 KiB, here of two packets; it grows no further than it may.
lane first_window=2560 max_window=3840
qp rc mtu=1024
 +0us post write len=7168 wr=1
 +0us > rc.write_first  psn=100 len=1024
 +0us > rc.write_middle psn=101 len=1024 ackreq
+10us < rc.ack psn=101
 +0us > rc.write_middle psn=102 len=1024
 +0us > rc.write_middle psn=103 len=1024
 +0us > rc.write_middle psn=104 len=1024 ackreq
+10us < rc.ack psn=104
 +0us > rc.write_middle psn=105 len=1024
 +0us > rc.write_last   psn=106 len=1024 ackreq
+10us < rc.ack psn=106
 +0us complete wr=1 success
 +0us idle
