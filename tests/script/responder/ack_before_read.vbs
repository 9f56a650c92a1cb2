# The ack of what came before a READ does not wait for the READ's responses, so no answer overtakes it, though a long
# train of responses has left the turn to the requests.
nic mtu=4096
lane ack_delay=20us
qp rc mtu=4096
 +0us < rc.read_request psn=200 dma=65536
 +0us > rc.read_response_first psn=200 len=4096
 +0us > rc.read_response_middle psn=201 len=4096
 +0us > rc.read_response_middle psn=202 len=4096
 +0us > rc.read_response_middle psn=203 len=4096
 +0us > rc.read_response_middle psn=204 len=4096
 +0us > rc.read_response_middle psn=205 len=4096
 +0us > rc.read_response_middle psn=206 len=4096
 +0us > rc.read_response_middle psn=207 len=4096
 +0us > rc.read_response_middle psn=208 len=4096
 +0us > rc.read_response_middle psn=209 len=4096
 +0us > rc.read_response_middle psn=210 len=4096
 +0us > rc.read_response_middle psn=211 len=4096
 +0us > rc.read_response_middle psn=212 len=4096
 +0us > rc.read_response_middle psn=213 len=4096
 +0us > rc.read_response_middle psn=214 len=4096
 +0us > rc.read_response_last psn=215 len=4096
 +0us post read len=8 wr=1
 +0us > rc.read_request psn=100 ackreq
 +0us post send len=8 from=local+512 fence wr=2
 +0us recv len=64 at=local+1024 wr=3
 +0us < rc.send_only psn=216 len=8 ackreq more
 +0us < rc.read_request psn=217 dma=8 more
 +0us < rc.read_response_only psn=100 len=8
 +0us complete recv wr=3 success
 +0us complete wr=1 success
 +0us > rc.ack psn=216 msn=2
 +0us > rc.send_only psn=101 len=8 ackreq
 +0us > rc.read_response_only psn=217 len=8
 +0us < rc.ack psn=101
 +0us complete wr=2 success
