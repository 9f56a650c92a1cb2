# A duplicate is not executed, whatever it carries; the newest completed PSN is acknowledged again.
qp rc
 +0us < rc.write_only psn=200 len=8 ackreq
 +0us > rc.ack psn=200 msn=1
 +0us < rc.write_only psn=201 len=8 va=remote+64 ackreq
 +0us > rc.ack psn=201 msn=2
 +5us < rc.write_only psn=200 len=8 fill=1 ackreq dropped
 +0us > rc.ack psn=201 msn=2
 +5us < rc.write_only psn=200 len=8 fill=1 dropped
 +0us > rc.ack psn=201 msn=2
