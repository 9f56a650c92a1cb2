# A READ takes as many PSNs as it has responses; the next request comes after them.
qp rc
 +0us post read len=2500 wr=9
 +0us > rc.read_request psn=100 ackreq
 +0us post write len=5 from=local+4096 wr=10
 +0us > rc.write_only psn=103 len=5 ackreq
+10us < rc.read_response_first  psn=100 len=1024
 +1us < rc.read_response_middle psn=101 len=1024
 +1us < rc.read_response_last   psn=102 len=452
 +0us complete wr=9 success
 +1us < rc.ack psn=103
 +0us complete wr=10 success
