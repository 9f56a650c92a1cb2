# Moved to ERR by the program: everything is flushed, sends and receives each in their order, signalled or not.
qp rc
 +0us post write len=8 wr=1
 +0us > rc.write_only psn=100 len=8 ackreq
 +0us post read len=8 wr=2 unsignalled
 +0us > rc.read_request psn=101 ackreq
 +0us post send len=8 wr=3 fence
 +0us recv len=8 wr=4
 +0us recv len=8 wr=5
 +0us modify state=err
 +0us complete wr=1 wr_flush_err
 +0us complete wr=2 wr_flush_err
 +0us complete wr=3 wr_flush_err
 +0us complete wr=4 wr_flush_err
 +0us complete wr=5 wr_flush_err
 +0us state err
 +5us < rc.ack psn=100
 +0us < rc.write_only psn=200 len=8 ackreq dropped
 +0us idle
