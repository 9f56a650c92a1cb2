# One ACK acknowledges all PSNs up to its own.
qp rc
 +0us post write len=8 wr=1
 +0us > rc.write_only psn=100 len=8 ackreq
 +0us post send len=8 wr=2
 +0us > rc.send_only psn=101 len=8 ackreq
 +0us post write len=2000 wr=3
 +0us > rc.write_first psn=102 len=1024
 +0us > rc.write_last  psn=103 len=976 ackreq
 +5us < rc.ack psn=102
 +0us complete wr=1 success
 +0us complete wr=2 success
 +5us < rc.ack psn=103
 +0us complete wr=3 success
