# Eight bytes land at once and are answered like a READ of nothing; a duplicate is answered and not written again.
qp rc dest_rd_atomic=2
 +0us < rc.atomic_write psn=200 len=8 va=remote+256
 +0us > rc.read_response_only psn=200 len=0 msn=1
 +0us < rc.write_only psn=201 len=8 va=remote+256 ackreq fill=9
 +0us > rc.ack psn=201 msn=2
 +9us < rc.atomic_write psn=200 len=8 va=remote+256 dup
 +0us > rc.read_response_only psn=200 len=0
 +0us < rc.read_request psn=202 va=remote+256 dma=8
 +0us > rc.read_response_only psn=202 len=8
