# QP 1 is the broker's: a lane drops what is meant for it.
qp ud
 +0us recv len=400 wr=1
 +0us < ud.send_only psn=5 len=256 dest=1 qkey=0x80010000 dropped
 +0us idle
