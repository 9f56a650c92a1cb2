# A path MTU that is no power of two: what is placed, what a READ is answered, again from its second packet.
nic mtu=1000
qp rc mtu=1000
 +0us < rc.write_first psn=200 len=1000 dma=2200
 +0us < rc.write_middle psn=201 len=1000
 +0us < rc.write_last psn=202 len=200 ackreq
 +0us > rc.ack psn=202
 +0us < rc.read_request psn=203 dma=2500 va=remote
 +0us > rc.read_response_first  psn=203 len=1000
 +0us > rc.read_response_middle psn=204 len=1000
 +0us > rc.read_response_last   psn=205 len=500
 +9us < rc.read_request psn=204 dma=1500 va=remote+1000 dup
 +0us > rc.read_response_first psn=204 len=1000
 +0us > rc.read_response_last  psn=205 len=500
 +0us < rc.write_first psn=206 len=1024 dma=2048 dropped
 +0us > rc.ack psn=206 nak=invalid_request
 +0us event qp_req_err
 +0us state err cause=remote_bad_request
