# No receive: dropped silently, the sender never knows.
qp ud
 +0us < ud.send_only psn=5 len=100 dropped
 +0us counter drop_no_recv=1
 +0us idle
