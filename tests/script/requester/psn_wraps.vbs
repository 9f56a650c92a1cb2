# PSNs count modulo 2^24, across messages and within one.
qp rc sq_psn=16777214
 +0us post write len=3000 wr=1
 +0us > rc.write_first  psn=16777214 len=1024
 +0us > rc.write_middle psn=16777215 len=1024
 +0us > rc.write_last   psn=0 len=952 ackreq
+10us < rc.ack psn=16777215
+10us < rc.ack psn=0
 +0us complete wr=1 success
 +0us post read len=8 wr=2
 +0us > rc.read_request psn=1 ackreq
 +5us < rc.read_response_only psn=1 len=8
 +0us complete wr=2 success
