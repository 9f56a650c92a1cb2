# Sending to a group goes to the group's address and to QPN 0xFFFFFF.
qp ud
 +0us post send len=8 to=239.1.2.3 remote_qpn=0xffffff wr=1
 +0us > ud.send_only psn=100 len=8 ackreq? dest=0xffffff to=239.1.2.3
 +0us complete wr=1 success
