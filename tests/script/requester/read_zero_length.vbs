# A READ of nothing takes one PSN and is answered by an empty response.
qp rc
 +0us post read len=0 wr=1
 +0us > rc.read_request psn=100 ackreq
 +5us < rc.read_response_only psn=100 len=0
 +0us complete wr=1 success
