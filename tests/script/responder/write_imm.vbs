# WRITE with immediate consumes a receive, whose memory stays untouched; the length reported is the WRITE's.
qp rc
 +0us recv len=64 wr=1
 +0us recv len=0 wr=2
 +0us < rc.write_first    psn=200 len=1024 dma=1100
 +0us < rc.write_last_imm psn=201 len=76 imm=0xcafe0001 ackreq
 +0us > rc.ack psn=201 msn=1
 +0us complete recv write_imm wr=1 success len=1100 imm=0xcafe0001 src_qpn=0x222
 +0us < rc.write_only_imm psn=202 len=0 imm=7 ackreq
 +0us > rc.ack psn=202 msn=2
 +0us complete recv write_imm wr=2 success len=0 imm=7
