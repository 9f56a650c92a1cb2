# UD receives in RTR from anybody.
qp ud state=rtr
 +0us recv len=200 wr=1
 +0us < ud.send_only psn=5 len=100 from=10.0.0.77
 +0us complete recv wr=1 success
