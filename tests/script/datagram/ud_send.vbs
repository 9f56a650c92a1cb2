# UD: each work request names its destination; the packet carries the Q_Key and who sent it.
qp ud
 +0us post send len=100 wr=1
 +0us > ud.send_only psn=100 len=100 ackreq? qkey=0x11111111 dest=0x222
 +0us complete wr=1 success
 +0us post send_imm len=100 imm=7 to=10.0.0.9 remote_qpn=0x777 wr=2
 +0us > ud.send_only_imm psn=101 len=100 ackreq? dest=0x777 to=10.0.0.9
 +0us complete wr=2 success
 +0us idle
