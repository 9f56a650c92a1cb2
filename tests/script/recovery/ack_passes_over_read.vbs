# An ACK beyond an unanswered READ means that the responses were lost: an implied NAK.
qp rc
 +0us post read len=8 wr=1
 +0us > rc.read_request psn=100 ackreq
 +0us post write len=8 from=local+64 wr=2
 +0us > rc.write_only psn=101 len=8 ackreq
+10us < rc.ack psn=101
 +0us > rc.read_request psn=100 ackreq
 +0us > rc.write_only psn=101 len=8 ackreq
+10us < rc.read_response_only psn=100 len=8
 +0us complete wr=1 success
 +0us < rc.ack psn=101
 +0us complete wr=2 success
 +0us counter implied_nak=1
