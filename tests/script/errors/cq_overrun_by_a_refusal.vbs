# The completion that a refused request leaves is the one that overruns its queue: the program hears of that, too.
cq small size=1 unpolled
qp rc cq=small
 +0us post write len=8 wr=1
 +0us > rc.write_only psn=100 len=8 ackreq
 +5us < rc.ack psn=100
 +0us recv len=100 wr=2
 +1us < rc.send_only psn=200 len=101 ackreq dropped takes_recv
 +0us > rc.ack psn=200 nak=invalid_request
 +0us event cq_err
 +0us event qp_fatal
 +0us state err cause=recv_too_short
 +0us poll cq=small wr=1 success
 +0us poll cq=small overrun
