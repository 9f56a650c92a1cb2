# Keys are those of the domain of the SRQ that the request names, also when its READ is asked for again after another.
mr theirs size=8192 access=lw,rw,rr,ra other_pd
xrc_srq red
xrc_srq blue other_pd
qp xrc_recv name=a
qp xrc_recv name=b dest_qpn=0x333
 +0us < xrc.write_only qp=a psn=200 len=8 srqn=red ackreq
 +0us > xrc.ack qp=a psn=200
 +0us < xrc.write_only qp=a psn=201 len=8 va=theirs rkey=theirs srqn=blue ackreq
 +0us > xrc.ack qp=a psn=201
 +0us < xrc.read_request qp=a psn=202 dma=16 va=theirs rkey=theirs srqn=blue
 +0us > xrc.read_response_only qp=a psn=202 len=16
 +0us < xrc.fetch_add qp=a psn=203 add=5 srqn=red
 +0us > xrc.atomic_ack qp=a psn=203
 +9us < xrc.read_request qp=a psn=202 dma=16 va=theirs rkey=theirs srqn=blue dup
 +0us > xrc.read_response_only qp=a psn=202 len=16
 +0us < xrc.write_only qp=a psn=204 len=8 va=theirs rkey=theirs srqn=red ackreq dropped
 +0us > xrc.ack qp=a psn=204 nak=remote_access
 +0us event qp_access_err qp=a
 +0us state err qp=a cause=remote_bad_rkey
 +0us < xrc.read_request qp=b psn=200 dma=8 srqn=blue ackreq dropped
 +0us > xrc.ack qp=b psn=200 nak=remote_access
 +0us event qp_access_err qp=b
 +0us state err qp=b cause=remote_bad_rkey
