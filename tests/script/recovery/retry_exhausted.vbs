# retry_cnt timeouts and no more: then the request fails, and what is behind it is flushed.
qp rc timeout=4 retry=2
 +0us post send len=8 wr=1
 +0us > rc.send_only psn=100 len=8 ackreq
 +0us post send len=8 wr=2
 +0us > rc.send_only psn=101 len=8 ackreq
 +0us recv len=8 wr=3
+65.536us > rc.send_only psn=100 len=8 ackreq
 +0us > rc.send_only psn=101 len=8 ackreq
+65.536us > rc.send_only psn=100 len=8 ackreq
 +0us > rc.send_only psn=101 len=8 ackreq
+65.536us complete wr=1 retry_exc_err
 +0us complete wr=2 wr_flush_err
 +0us complete wr=3 wr_flush_err
 +0us state err cause=retry_exceeded psn=100 tries=3 never_heard
 +0us idle
