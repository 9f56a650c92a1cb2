# A response brings an ACK in its syndrome; another one is dropped, and lands nowhere.
qp rc
 +0us post read len=8 wr=1
 +0us > rc.read_request psn=100 dma=8 ackreq
 +1us < rc.read_response_only psn=100 len=8 nak=0x80 dropped
 +0us < rc.read_response_only psn=100 len=8 nak=remote_access dropped
 +0us counter drop_syndrome=2
 +1us < rc.read_response_only psn=100 len=8
 +0us complete wr=1 success
