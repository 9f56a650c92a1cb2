# SQD: what is started finishes, then SQ_DRAINED; what is posted meanwhile waits for RTS. The responder goes on.
qp rc
 +0us post write len=8 wr=1
 +0us > rc.write_only psn=100 len=8 ackreq
 +0us modify state=sqd notify
 +0us post write len=8 wr=2
 +5us < rc.write_only psn=200 len=8 ackreq
 +0us > rc.ack psn=200
 +5us < rc.ack psn=100
 +0us complete wr=1 success
 +0us event sq_drained
+10ms quiet
 +0us modify state=rts
 +0us > rc.write_only psn=101 len=8 ackreq
 +5us < rc.ack psn=101
 +0us complete wr=2 success
