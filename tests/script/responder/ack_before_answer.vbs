# Of a longer answer too, and of any kind, the ack leaves before the first packet, however many came before it.
lane ack_delay=20us
qp rc
 +0us recv len=64 wr=1
 +0us < rc.send_only psn=200 len=8 ackreq
 +0us complete recv wr=1 success
 +5us post send len=1500 wr=2
 +0us > rc.ack psn=200 msn=1
 +0us > rc.send_first psn=100 len=1024
 +0us > rc.send_last  psn=101 len=476 ackreq
 +0us < rc.write_first psn=201 len=1024 dma=1028 more
 +0us < rc.write_last  psn=202 len=4 ackreq more
 +0us < rc.ack psn=101
 +0us complete wr=2 success
 +0us < rc.write_only psn=203 len=8 ackreq
 +5us post read len=8 wr=3
 +0us > rc.ack psn=203 msn=3
 +0us > rc.read_request psn=102 ackreq
 +5us < rc.read_response_only psn=102 len=8
 +0us complete wr=3 success
 +0us idle
