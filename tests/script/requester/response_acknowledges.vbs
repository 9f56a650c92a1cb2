# READ responses and atomic ACKs acknowledge everything before them.
qp rc
 +0us post write len=8 wr=1
 +0us > rc.write_only psn=100 len=8 ackreq
 +0us post read len=8 wr=2
 +0us > rc.read_request psn=101 ackreq
 +0us post send len=8 wr=3
 +0us > rc.send_only psn=102 len=8 ackreq
 +0us post fetch_add add=2 from=local+64 wr=4
 +0us > rc.fetch_add psn=103 ackreq
 +5us < rc.read_response_only psn=101 len=8
 +0us complete wr=1 success
 +0us complete wr=2 success
 +5us < rc.atomic_ack psn=103 result=0
 +0us complete wr=3 success
 +0us complete wr=4 success
 +0us idle
