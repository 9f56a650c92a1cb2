# What the QP does not permit is refused whatever SRQ is named; too many READs too.
xrc_srq red
qp xrc_recv name=a access=rw
qp xrc_recv name=b dest_qpn=0x333 dest_rd_atomic=0
 +0us < xrc.read_request qp=a psn=200 dma=8 srqn=red dropped
 +0us > xrc.ack qp=a psn=200 nak=invalid_request
 +0us event qp_req_err qp=a
 +0us state err qp=a cause=remote_bad_request
 +0us < xrc.fetch_add qp=b psn=200 add=1 srqn=red dropped
 +0us > xrc.ack qp=b psn=200 nak=invalid_request
 +0us event qp_req_err qp=b
 +0us state err qp=b cause=remote_bad_request
