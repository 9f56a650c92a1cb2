# RNR hits the packet of a WRITE that needs the receive, its last; those before it have landed.
qp rc min_rnr=5
 +0us < rc.write_first    psn=200 len=1024 dma=1100
 +0us < rc.write_last_imm psn=201 len=76 imm=1 ackreq dropped
 +0us > rc.ack psn=201 rnr=5
 +0us recv len=0 wr=4
+60us < rc.write_last_imm psn=201 len=76 imm=1 ackreq
 +0us > rc.ack psn=201 msn=1
 +0us complete recv write_imm wr=4 success len=1100 imm=1
