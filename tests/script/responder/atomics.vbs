# Atomics change eight bytes and return what was there.
qp rc
 +0us store at=remote+256 value=40
 +0us < rc.fetch_add psn=200 va=remote+256 add=2
 +0us > rc.atomic_ack psn=200 msn=1
 +0us < rc.cmp_swap psn=201 va=remote+256 compare=42 swap=7
 +0us > rc.atomic_ack psn=201 msn=2
 +0us < rc.cmp_swap psn=202 va=remote+256 compare=42 swap=8
 +0us > rc.atomic_ack psn=202 msn=3
 +0us < rc.fetch_add psn=203 va=remote+256 add=0xffffffffffffffff
 +0us > rc.atomic_ack psn=203 msn=4
 +0us < rc.read_request psn=204 va=remote+256 dma=8
 +0us > rc.read_response_only psn=204 len=8
