# SEND in one packet and in several, with immediate data, with invalidation, solicited or not.
qp rc
 +0us post send len=10 wr=1
 +0us > rc.send_only psn=100 len=10 ackreq
 +0us post send_imm len=10 imm=0xdeadbeef solicited wr=2
 +0us > rc.send_only_imm psn=101 len=10 ackreq solicited
 +0us post send_inv len=10 inv=0x1234 wr=3
 +0us > rc.send_only_inv psn=102 len=10 ackreq
 +0us post send len=3000 solicited wr=4
 +0us > rc.send_first  psn=103 len=1024
 +0us > rc.send_middle psn=104 len=1024
 +0us > rc.send_last   psn=105 len=952 ackreq solicited
 +0us post send_imm len=1025 imm=5 wr=5
 +0us > rc.send_first    psn=106 len=1024
 +0us > rc.send_last_imm psn=107 len=1 ackreq
 +0us post send_inv len=2048 inv=0x77 wr=6
 +0us > rc.send_first    psn=108 len=1024
 +0us > rc.send_last_inv psn=109 len=1024 ackreq
+10us < rc.ack psn=109
 +0us complete wr=1 success
 +0us complete wr=2 success
 +0us complete wr=3 success
 +0us complete wr=4 success
 +0us complete wr=5 success
 +0us complete wr=6 success
