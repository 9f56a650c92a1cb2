# Else an ack or CNP leaves in its QP's turn.
lane window=2816 cnp_interval=1us budget=1
qp rc name=a
qp rc name=b dest_qpn=0x333
qp rc name=c dest_qpn=0x444
 +0us post write len=4096 wr=1 qp=a
 +0us > rc.write_first  psn=100 len=1024 qp=a ackreq
 +0us > rc.write_middle psn=101 len=1024 qp=a ackreq
+10us < rc.ack psn=101 qp=a ce more
 +0us < rc.write_only psn=200 len=8 ackreq qp=b ce more
 +0us < rc.write_only psn=200 len=8 ackreq qp=c ce
 +0us > cnp qp=a
 +0us > cnp qp=b
 +0us > cnp qp=c
 +0us > rc.write_middle psn=102 len=1024 qp=a ackreq
 +0us > rc.ack psn=200 qp=b
 +0us > rc.ack psn=200 qp=c
 +0us > rc.write_last   psn=103 len=1024 qp=a ackreq
+10us < rc.ack psn=103 qp=a
 +0us complete wr=1 success qp=a
