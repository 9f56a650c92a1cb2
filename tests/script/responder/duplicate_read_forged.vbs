# A duplicate READ outside of what was asked for is dropped silently: other key, other place. Of one that goes beyond the
# end the part is answered that was asked for (its first piece may have been a READ of its own).
mr other access=lw,rw,rr
qp rc
 +0us < rc.read_request psn=200 dma=2048 va=remote
 +0us > rc.read_response_first psn=200 len=1024
 +0us > rc.read_response_last  psn=201 len=1024
 +9us < rc.read_request psn=200 dma=2048 va=other rkey=other dropped
 +0us < rc.read_request psn=200 dma=2048 va=remote+8 dropped
 +0us < rc.read_request psn=201 dma=2048 va=remote+1024
 +0us > rc.read_response_only psn=201 len=1024
 +0us < rc.read_request psn=199 dma=8 va=remote dropped
 +0us idle
 +0us counter drop_duplicate=3 duplicates=4
