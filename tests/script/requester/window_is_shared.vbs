# The window of a peer address is one for all its QPs; the one that waits goes on when the other's packets are acknowledged.
lane window=4096
qp rc name=a
qp rc name=b dest_qpn=0x333
 +0us post write len=3072 wr=1 qp=a
 +0us > rc.write_first  psn=100 len=1024 qp=a
 +0us > rc.write_middle psn=101 len=1024 qp=a
 +0us > rc.write_last   psn=102 len=1024 qp=a ackreq
 +0us post write len=1024 wr=2 qp=b
+10us < rc.ack psn=102 qp=a
 +0us complete wr=1 success qp=a
 +0us > rc.write_only psn=100 len=1024 qp=b ackreq
+10us < rc.ack psn=100 qp=b
 +0us complete wr=2 success qp=b
