# One, two, four and eight bytes, aligned and not.
qp rc
 +0us < rc.write_only psn=200 len=1 va=remote+3 ackreq
 +0us > rc.ack psn=200
 +0us < rc.write_only psn=201 len=2 va=remote+5 ackreq
 +0us > rc.ack psn=201
 +0us < rc.write_only psn=202 len=4 va=remote+12 ackreq
 +0us > rc.ack psn=202
 +0us < rc.write_only psn=203 len=8 va=remote+24 ackreq
 +0us > rc.ack psn=203
 +0us < rc.write_only psn=204 len=8 va=remote+33 ackreq
 +0us > rc.ack psn=204
 +0us < rc.write_only psn=205 len=1 va=remote+65535 ackreq
 +0us > rc.ack psn=205
