# retry_cnt 7 means seven retries, not for ever; sequence NAKs and timeouts draw on the same count.
qp rc timeout=2 retry=7
 +0us post send len=8 wr=1
 +0us > rc.send_only psn=100 len=8 ackreq
+16.384us > rc.send_only psn=100 len=8 ackreq
+16.384us > rc.send_only psn=100 len=8 ackreq
+16.384us > rc.send_only psn=100 len=8 ackreq
+16.384us > rc.send_only psn=100 len=8 ackreq
+16.384us > rc.send_only psn=100 len=8 ackreq
+16.384us > rc.send_only psn=100 len=8 ackreq
+16.384us > rc.send_only psn=100 len=8 ackreq
+16.384us complete wr=1 retry_exc_err
 +0us state err cause=retry_exceeded tries=8
