# A QP that has answered READs is given more of them at a time, and answers as many.
qp rc dest_rd_atomic=1
 +0us < rc.read_request psn=200 va=remote dma=8
 +0us > rc.read_response_only psn=200 len=8
 +0us modify state=sqd notify
 +0us event sq_drained
 +0us modify state=sqd dest_rd_atomic=3
 +0us modify state=rts
 +0us < rc.read_request psn=201 va=remote+8 dma=8 more
 +0us < rc.read_request psn=202 va=remote+16 dma=8 more
 +0us < rc.read_request psn=203 va=remote+24 dma=8
 +0us > rc.read_response_only psn=201 len=8
 +0us > rc.read_response_only psn=202 len=8
 +0us > rc.read_response_only psn=203 len=8
 +9us < rc.read_request psn=201 va=remote+8 dma=8 dup
 +0us > rc.read_response_only psn=201 len=8
