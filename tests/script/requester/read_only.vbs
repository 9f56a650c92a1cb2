# A READ of one packet: the response carries the bytes and is the acknowledgement.
qp rc
 +0us post read len=300 wr=9
 +0us > rc.read_request psn=100 ackreq
+10us < rc.read_response_only psn=100 len=300
 +0us complete wr=9 success
 +0us idle
