# One ACK finishes three requests and overruns the completion queue: what is posted afterwards is flushed, and nothing
# else.
mw pane type=2
cq small size=1 unpolled
qp rc cq=small
 +0us post write len=8 wr=1
 +0us > rc.write_only psn=100 len=8 ackreq
 +0us post bind mw=pane at=remote len=64 wr=2
 +0us post write len=8 wr=3
 +0us > rc.write_only psn=101 len=8 ackreq
 +5us < rc.ack psn=101
 +0us event cq_err
 +0us event qp_fatal
 +0us state err cause=cq_overrun
 +0us recv len=8 wr=4
 +0us poll cq=small wr=1 success
 +0us poll cq=small overrun
 +0us idle
