# rnr_retry times and no more.
qp rc rnr_retry=1
 +0us post send len=8 wr=1
 +0us > rc.send_only psn=100 len=8 ackreq
 +1us < rc.ack psn=100 rnr=3
+30us > rc.send_only psn=100 len=8 ackreq
 +1us < rc.ack psn=100 rnr=3
 +0us complete wr=1 rnr_retry_exc_err
 +0us state err cause=rnr_retry_exceeded heard
