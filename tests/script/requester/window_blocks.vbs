# Towards a stranger 64 KiB may be under way; the packet at the window's end asks for an ack, and the ack opens it again.
lane window=4096
qp rc
 +0us post write len=8192 wr=1
 +0us > rc.write_first  psn=100 len=1024
 +0us > rc.write_middle psn=101 len=1024
 +0us > rc.write_middle psn=102 len=1024 ackreq
+10us < rc.ack psn=102
 +0us > rc.write_middle psn=103 len=1024
 +0us > rc.write_middle psn=104 len=1024
 +0us > rc.write_middle psn=105 len=1024 ackreq
+10us < rc.ack psn=105
 +0us > rc.write_middle psn=106 len=1024
 +0us > rc.write_last   psn=107 len=1024 ackreq
+10us < rc.ack psn=107
 +0us complete wr=1 success
 +0us idle
