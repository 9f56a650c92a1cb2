# No more READs and atomics under way than max_rd_atomic; what is behind them waits too, in order.
qp rc rd_atomic=2
 +0us post read len=8 wr=1
 +0us > rc.read_request psn=100 ackreq
 +0us post fetch_add add=1 from=local+64 wr=2
 +0us > rc.fetch_add psn=101 ackreq
 +0us post read len=8 from=local+128 wr=3
 +0us post write len=4 from=local+512 wr=4
+10us < rc.read_response_only psn=100 len=8
 +0us complete wr=1 success
 +0us > rc.read_request psn=102 ackreq
 +0us > rc.write_only psn=103 len=4 ackreq
+10us < rc.atomic_ack psn=101 result=1
 +0us complete wr=2 success
 +1us < rc.read_response_only psn=102 len=8
 +0us complete wr=3 success
 +1us < rc.ack psn=103
 +0us complete wr=4 success
