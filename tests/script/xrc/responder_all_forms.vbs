# Every request: receives are those of the SRQ that it names, memory that of the SRQ's domain, completions in its CQ.
cq other size=8 unpolled
xrc_srq red cq=other
qp xrc_recv dest_rd_atomic=8
 +0us recv len=4096 at=local wr=1 srqn=red
 +0us recv len=64 at=local+8192 wr=2 srqn=red
 +0us recv len=0 wr=3 srqn=red
 +0us < xrc.send_first  psn=200 len=1024 srqn=red
 +0us < xrc.send_middle psn=201 len=1024 srqn=red
 +0us < xrc.send_last   psn=202 len=100 srqn=red ackreq
 +0us > xrc.ack psn=202 msn=1
 +0us poll cq=other recv wr=1 success len=2148 src_qpn=0x222
 +0us < xrc.send_only_imm psn=203 len=9 srqn=red imm=0xcafe ackreq solicited
 +0us > xrc.ack psn=203 msn=2
 +0us poll cq=other recv wr=2 success len=9 imm=0xcafe
 +0us < xrc.write_first psn=204 len=1024 dma=2000 srqn=red
 +0us < xrc.write_last  psn=205 len=976 srqn=red ackreq
 +0us > xrc.ack psn=205 msn=3
 +0us < xrc.write_only_imm psn=206 len=8 imm=5 srqn=red ackreq
 +0us > xrc.ack psn=206 msn=4
 +0us poll cq=other recv write_imm wr=3 success len=8 imm=5
 +0us < xrc.read_request psn=207 dma=2500 srqn=red
 +0us > xrc.read_response_first  psn=207 len=1024 msn=5
 +0us > xrc.read_response_middle psn=208 len=1024
 +0us > xrc.read_response_last   psn=209 len=452 msn=5
 +0us store at=remote value=10
 +0us < xrc.fetch_add psn=210 add=5 srqn=red
 +0us > xrc.atomic_ack psn=210 msn=6
 +0us < xrc.cmp_swap psn=211 compare=15 swap=99 srqn=red
 +0us > xrc.atomic_ack psn=211 msn=7
 +9us < xrc.fetch_add psn=210 add=5 srqn=red dup
 +0us > xrc.atomic_ack psn=210 msn=6
 +0us poll cq=other empty
 +0us idle
