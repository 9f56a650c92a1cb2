# A fenced request waits until every READ and atomic before it is finished.
qp rc
 +0us post read len=8 wr=1
 +0us > rc.read_request psn=100 ackreq
 +0us post fetch_add add=1 from=local+64 wr=2
 +0us > rc.fetch_add psn=101 ackreq
 +0us post send len=8 from=local+512 fence wr=3
+10us < rc.read_response_only psn=100 len=8
 +0us complete wr=1 success
+10us < rc.atomic_ack psn=101 result=1
 +0us complete wr=2 success
 +0us > rc.send_only psn=102 len=8 ackreq
 +5us < rc.ack psn=102
 +0us complete wr=3 success
