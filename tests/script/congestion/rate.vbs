# Packets leave at the rate, here 104 bytes a microsecond, from BTH to ICRC. Who posts too soon waits for what is left of the
# last one's time; who comes later than that sends at once. Acks do not wait.
lane rate=104000000
qp rc mtu=1024
recv len=100 wr=9
 +0us post send len=2552 wr=1
 +0us > rc.send_first  psn=100 len=1024
 +5us < rc.send_only psn=200 len=8 ackreq
 +0us complete recv wr=9 success len=8
 +0us > rc.ack psn=200
 +5us > rc.send_middle psn=101 len=1024
+10us > rc.send_last   psn=102 len=504 ackreq
 +2us post send len=504 wr=2
 +3us > rc.send_only psn=103 len=504 ackreq
+10us < rc.ack psn=103
 +0us complete wr=1 success
 +0us complete wr=2 success
 +0us post send len=8 wr=3
 +0us > rc.send_only psn=104 len=8 ackreq
+10us < rc.ack psn=104
 +0us complete wr=3 success
 +0us idle
