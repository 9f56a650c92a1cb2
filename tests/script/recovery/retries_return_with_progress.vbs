# Progress gives all retries back.
qp rc timeout=2 retry=1
 +0us post write len=2048 wr=1
 +0us > rc.write_first psn=100 len=1024
 +0us > rc.write_last  psn=101 len=1024 ackreq
+16.384us > rc.write_first psn=100 len=1024
 +0us > rc.write_last  psn=101 len=1024 ackreq
 +5us < rc.ack psn=100
+16.384us > rc.write_last  psn=101 len=1024 ackreq
 +5us < rc.ack psn=101
 +0us complete wr=1 success
