# A range or a whole region is flushed for everybody to see; the answer is a READ's of nothing, also to a duplicate.
mr seen access=lw,rw,flush
qp rc dest_rd_atomic=2 access=all,flush
 +0us < rc.write_only psn=200 len=8 va=seen rkey=seen
 +0us < rc.flush psn=201 va=seen rkey=seen dma=4096 feth=0x01
 +0us > rc.read_response_only psn=201 len=0 msn=2
 +0us < rc.flush psn=202 va=seen rkey=seen dma=0 feth=0x11
 +0us > rc.read_response_only psn=202 len=0 msn=3
 +9us < rc.flush psn=201 va=seen rkey=seen dma=4096 feth=0x01 dup
 +0us > rc.read_response_only psn=201 len=0
