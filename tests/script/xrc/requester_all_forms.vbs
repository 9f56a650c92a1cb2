# Every request names its SRQ in each of its packets; whatever SRQ that is, PSNs and window are one connection's.
qp xrc_send rd_atomic=8
 +0us post send len=3000 srqn=0x123456 wr=1
 +0us > xrc.send_first  psn=100 len=1024
 +0us > xrc.send_middle psn=101 len=1024
 +0us > xrc.send_last   psn=102 len=952 ackreq
 +0us post send_imm len=10 imm=0xdeadbeef solicited srqn=0x000001 wr=2
 +0us > xrc.send_only_imm psn=103 len=10 ackreq solicited
 +0us post send_inv len=10 inv=0x77 srqn=0xffffff wr=3
 +0us > xrc.send_only_inv psn=104 len=10 ackreq
 +0us post write len=2048 srqn=7 wr=4
 +0us > xrc.write_first psn=105 len=1024
 +0us > xrc.write_last  psn=106 len=1024 ackreq
 +0us post write_imm len=8 imm=5 srqn=8 wr=5
 +0us > xrc.write_only_imm psn=107 len=8 ackreq
 +0us post read len=2500 from=local+8192 srqn=9 wr=6
 +0us > xrc.read_request psn=108 ackreq
 +0us post cmp_swap compare=1 swap=2 from=local+16384 srqn=10 wr=7
 +0us > xrc.cmp_swap psn=111 ackreq
 +0us post fetch_add add=3 from=local+16392 srqn=11 wr=8
 +0us > xrc.fetch_add psn=112 ackreq
+10us < xrc.ack psn=107
 +0us complete wr=1 success
 +0us complete wr=2 success
 +0us complete wr=3 success
 +0us complete wr=4 success
 +0us complete wr=5 success
 +1us < xrc.read_response_first  psn=108 len=1024
 +1us < xrc.read_response_middle psn=109 len=1024
 +1us < xrc.read_response_last   psn=110 len=452
 +0us complete wr=6 success
 +1us < xrc.atomic_ack psn=111 result=1
 +0us complete wr=7 success
 +1us < xrc.atomic_ack psn=112 result=40
 +0us complete wr=8 success
 +0us idle
