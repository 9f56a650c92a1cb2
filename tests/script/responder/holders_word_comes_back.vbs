# What the holder says of a packet comes back with the ack or NAK that answers it: the newest packet's, where an ack is for
# several. Requests and READ responses say nothing.
qp rc
recv len=100 wr=9
 +0us < rc.write_only psn=200 len=8 ackreq holder=0x1122334455667788
 +0us > rc.ack psn=200 holder=0x1122334455667788
 +0us < rc.write_first psn=201 len=1024 dma=2048 holder=5
 +0us < rc.write_last psn=202 len=1024 ackreq holder=6
 +0us > rc.ack psn=202 holder=6
 +0us < rc.write_only psn=204 len=8 ackreq dropped holder=7
 +0us > rc.ack psn=203 nak=psn_sequence holder=7
 +0us < rc.send_only psn=203 len=8 ackreq holder=8
 +0us complete recv wr=9 success len=8
 +0us > rc.ack psn=203 holder=8
 +0us < rc.send_only psn=204 len=8 ackreq dropped holder=9
 +0us > rc.ack psn=204 rnr=12 holder=9
 +0us < rc.write_only psn=200 len=8 ackreq dup holder=10
 +0us > rc.ack psn=203 holder=10
 +0us < rc.read_request psn=204 dma=8 va=remote holder=11
 +0us > rc.read_response_only psn=204 len=8
