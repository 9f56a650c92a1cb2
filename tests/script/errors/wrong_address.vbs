# A connected QP listens to its peer's address alone, and only at its own.
qp rc
 +0us < rc.write_only psn=200 len=8 from=10.0.0.3 dropped ackreq
 +0us < rc.write_only psn=200 len=8 to=10.0.0.9 dropped ackreq
 +0us < rc.ack psn=200 nak=remote_access from=10.0.0.3
 +0us counter drop_address=3
