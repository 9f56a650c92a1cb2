# Over IPv6 nothing is different.
nic ipv6
xrc_srq red
qp xrc_recv name=recv
qp xrc_send name=send dest_qpn=0x333
 +0us recv len=64 wr=1 srqn=red
 +0us < xrc.send_only qp=recv psn=200 len=8 srqn=red ackreq
 +0us > xrc.ack qp=recv psn=200
 +0us complete recv qp=recv wr=1 success
 +0us post read qp=send len=8 srqn=5 wr=2
 +0us > xrc.read_request qp=send psn=100 ackreq
+10us < xrc.read_response_only qp=send psn=100 len=8
 +0us complete wr=2 success qp=send
