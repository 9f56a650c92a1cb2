# An RC QP takes no UC or UD packets.
qp rc
 +0us recv len=64 wr=1
 +0us < uc.send_only psn=200 len=8 dropped
 +0us < ud.send_only psn=200 len=8 dropped
 +0us counter drop_transport=2
