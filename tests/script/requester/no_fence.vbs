# Without a fence a SEND overtakes the completion of an earlier READ on the wire, but not in the completion queue.
qp rc
 +0us post read len=8 wr=1
 +0us > rc.read_request psn=100 ackreq
 +0us post send len=8 from=local+512 wr=2
 +0us > rc.send_only psn=101 len=8 ackreq
 +5us < rc.read_response_only psn=100 len=8
 +0us complete wr=1 success
 +1us < rc.ack psn=101
 +0us complete wr=2 success
