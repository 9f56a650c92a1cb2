# The partition key must match; a limited member of the default partition does.
qp rc
 +0us < rc.write_only psn=200 len=8 pkey=0x8001 dropped ackreq
 +0us counter drop_pkey=1
 +0us < rc.write_only psn=200 len=8 pkey=0x7fff ackreq
 +0us > rc.ack psn=200
