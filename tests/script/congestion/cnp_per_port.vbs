# One CNP every 50 us, to whomever.
lane cnp=port
qp rc name=a
qp rc name=b dest_qpn=0x333
qp rc name=c dest_qpn=0x444 dgid=10.0.0.3
 +0us < rc.write_only psn=200 len=8 ackreq ce qp=a
 +0us > cnp qp=a
 +0us > rc.ack psn=200 qp=a
+1us < rc.write_only psn=200 len=8 ackreq ce qp=b
 +0us > rc.ack psn=200 qp=b
 +0us < rc.write_only psn=200 len=8 ackreq ce qp=c from=10.0.0.3
 +0us > rc.ack psn=200 qp=c
+49us < rc.write_only psn=201 len=8 ackreq ce qp=b
 +0us > cnp qp=b
 +0us > rc.ack psn=201 qp=b
