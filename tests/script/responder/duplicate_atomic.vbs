# A duplicate atomic is answered with the remembered result and not executed; when it is no longer remembered, not at all.
qp rc dest_rd_atomic=2
 +0us store at=remote value=10
 +0us < rc.fetch_add psn=200 add=1
 +0us > rc.atomic_ack psn=200 msn=1
 +9us < rc.fetch_add psn=200 add=1 dup
 +0us > rc.atomic_ack psn=200 msn=1
 +0us < rc.fetch_add psn=201 add=1
 +0us > rc.atomic_ack psn=201 msn=2
 +9us < rc.fetch_add psn=200 add=1 dup
 +0us > rc.atomic_ack psn=200
 +0us < rc.fetch_add psn=202 add=1
 +0us > rc.atomic_ack psn=202 msn=3
 +9us < rc.fetch_add psn=200 add=1 dup
 +0us idle
 +0us counter drop_duplicate=1
