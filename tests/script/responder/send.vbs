# SENDs land in the receives in order, over scatter entries.
qp rc
 +0us recv len=2000 sges=4 wr=1
 +0us recv len=3000 sges=3 at=local+8192 wr=2
 +0us recv len=0 wr=3
 +0us < rc.send_only psn=200 len=1000 ackreq
 +0us > rc.ack psn=200 msn=1
 +0us complete recv wr=1 success len=1000
 +0us < rc.send_first  psn=201 len=1024
 +0us < rc.send_middle psn=202 len=1024
 +0us < rc.send_last_imm psn=203 len=952 imm=0x01020304 ackreq
 +0us > rc.ack psn=203 msn=2
 +0us complete recv wr=2 success len=3000 imm=0x01020304
 +0us < rc.send_only_imm psn=204 len=0 imm=9 ackreq
 +0us > rc.ack psn=204 msn=3
 +0us complete recv wr=3 success len=0 imm=9
