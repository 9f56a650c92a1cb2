# UC: no acks; a message is complete when its last packet has left.
qp uc
 +0us post send len=2500 wr=1
 +0us > uc.send_first  psn=100 len=1024 ackreq?
 +0us > uc.send_middle psn=101 len=1024 ackreq?
 +0us > uc.send_last   psn=102 len=452 ackreq?
 +0us complete wr=1 success
 +0us post write_imm len=8 imm=3 wr=2
 +0us > uc.write_only_imm psn=103 len=8 ackreq?
 +0us complete wr=2 success
 +0us idle
