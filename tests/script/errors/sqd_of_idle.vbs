# A queue with nothing under way is drained at once; without asking there is no event.
qp rc name=a
qp rc name=b dest_qpn=0x333
 +0us modify state=sqd notify qp=a
 +0us event sq_drained qp=a
 +0us modify state=sqd qp=b
 +0us idle
