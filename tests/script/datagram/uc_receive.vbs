# UC messages land like RC's, without answers.
qp uc
 +0us recv len=2048 wr=1
 +0us recv len=0 wr=2
 +0us < uc.send_first psn=200 len=1024
 +0us < uc.send_last  psn=201 len=100
 +0us complete recv wr=1 success len=1124 src_qpn=0x222
 +0us < uc.write_first psn=202 len=1024 dma=1034
 +0us < uc.write_last_imm psn=203 len=10 imm=5
 +0us complete recv write_imm wr=2 success len=1034 imm=5
 +0us < uc.write_only psn=204 len=8
 +0us idle
