# Over IPv6 the forty bytes are its header.
nic ipv6
qp ud
 +0us recv len=200 wr=1
 +0us < ud.send_only psn=5 len=100
 +0us complete recv wr=1 success len=140 src_qpn=0x222 sl=9
