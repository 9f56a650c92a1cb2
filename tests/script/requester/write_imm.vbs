# Immediate data travels in the last packet of a WRITE; solicited too.
qp rc
 +0us post write_imm len=1500 imm=0x01020304 solicited wr=1
 +0us > rc.write_first    psn=100 len=1024
 +0us > rc.write_last_imm psn=101 len=476 ackreq solicited
 +0us post write_imm len=8 imm=0xffffffff wr=2
 +0us > rc.write_only_imm psn=102 len=8 ackreq
 +5us < rc.ack psn=102
 +0us complete wr=1 success
 +0us complete wr=2 success
