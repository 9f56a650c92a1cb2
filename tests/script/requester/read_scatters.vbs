# Responses are cut over 32 scatter entries, whose borders have nothing to do with packets.
qp rc mtu=256 max_sge=32
 +0us post read len=1000 sges=32 wr=1
 +0us > rc.read_request psn=100 ackreq
 +5us < rc.read_response_first  psn=100 len=256
 +0us < rc.read_response_middle psn=101 len=256
 +0us < rc.read_response_middle psn=102 len=256
 +0us < rc.read_response_last   psn=103 len=232
 +0us complete wr=1 success
