# Forty bytes in front: twenty zeros and an IPv4 header with a right checksum.
qp ud
 +0us recv len=200 wr=1
 +0us recv len=200 at=local+512 sges=2 wr=2
 +0us < ud.send_only psn=5 len=100 src_qpn=0x555
 +0us complete recv wr=1 success len=140 src_qpn=0x555 sl=10
 +0us < ud.send_only_imm psn=77 len=0 imm=9 src_qpn=0x556
 +0us complete recv wr=2 success len=40 imm=9 src_qpn=0x556
