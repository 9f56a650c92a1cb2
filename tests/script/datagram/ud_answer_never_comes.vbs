# Nobody answers the question what the peer is: after 150 ms it is a stranger, and is asked no more.
peer asked
qp ud
 +0us post send len=100 wr=1
 +0us quiet
 +150ms > ud.send_only psn=100 len=100 ackreq?
 +0us complete wr=1 success
 +0us post send len=100 wr=2
 +0us > ud.send_only psn=101 len=100 ackreq?
 +0us complete wr=2 success
 +0us idle
