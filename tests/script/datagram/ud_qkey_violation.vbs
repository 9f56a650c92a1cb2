# A wrong Q_Key is counted and dropped.
qp ud
 +0us recv len=200 wr=1
 +0us < ud.send_only psn=5 len=100 qkey=0x22222222 dropped
 +0us counter drop_qkey=1
 +0us < ud.send_only psn=5 len=100
 +0us complete recv wr=1 success
