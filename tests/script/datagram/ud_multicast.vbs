# A datagram to a group reaches every QP that joined it, and no other.
qp ud name=a
qp ud name=b
qp ud name=c
 +0us mcast join group=239.1.2.3 qp=a
 +0us mcast join group=239.1.2.3 qp=a
 +0us mcast join group=239.9.9.9 qp=c
 +0us recv len=200 wr=1 qp=a
 +0us recv len=200 wr=2 at=local+512 qp=b
 +0us recv len=200 wr=3 at=local+1024 qp=c
 +0us < ud.send_only psn=5 len=64 dest=0xffffff to=239.1.2.3 qp=a
 +0us complete recv wr=1 success qp=a
 +0us mcast leave group=239.1.2.3 qp=a
 +0us < ud.send_only psn=6 len=64 dest=0xffffff to=239.1.2.3 qp=a dropped
 +0us mcast leave group=239.1.2.3 qp=a fails=EINVAL
 +0us idle
