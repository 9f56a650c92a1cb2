# Packets for QPs that do not exist are counted and dropped.
qp rc
 +0us < rc.write_only psn=200 len=8 dest=0x01ffff dropped
 +0us < rc.write_only psn=200 len=8 dest=0 dropped
 +0us < rc.write_only psn=200 len=8 dest=0xff0001 dropped
 +0us counter drop_bad_qpn=3
