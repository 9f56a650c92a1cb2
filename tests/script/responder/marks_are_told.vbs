# An ack says by BECN that one of the packets that it is for was marked, and the next one no more.
lane tells_marks cnp=never ack_delay=5us
qp rc
 +0us < rc.write_first psn=200 len=1024 dma=2048 ce
 +0us < rc.write_last psn=201 len=1024 ackreq
 +5us > rc.ack psn=201 becn
 +0us < rc.write_only psn=202 len=8 ackreq
 +5us > rc.ack psn=202
