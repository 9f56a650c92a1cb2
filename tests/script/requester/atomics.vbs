# Both atomics: operands out, the old value in, eight bytes in host order.
qp rc
 +0us post fetch_add add=5 from=local+64 wr=1
 +0us > rc.fetch_add psn=100 ackreq
 +5us < rc.atomic_ack psn=100 result=0x1122334455667788
 +0us complete wr=1 success
 +0us post cmp_swap compare=7 swap=9 from=local+128 wr=2
 +0us > rc.cmp_swap psn=101 ackreq
 +5us < rc.atomic_ack psn=101 result=7
 +0us complete wr=2 success
 +0us idle
