# A READ is refused in its middle, for its memory cannot be read; when that is lost with what went before, whoever asks again
# is told where he asks. A READ that was answered before is not: its answer is not remembered any more.
qp rc
 +0us < rc.read_request psn=200 va=remote dma=1024
 +0us > rc.read_response_only psn=200 len=1024
 +0us send_error errno=14 after=2
 +0us < rc.read_request psn=201 va=remote+1024 dma=4096
 +0us > rc.read_response_first psn=201 len=1024
 +0us > rc.read_response_middle psn=202 len=1024
 +0us > rc.read_response_middle psn=203 len=1024
 +0us > rc.read_response_last psn=204 len=1024
 +0us > rc.ack psn=203 nak=remote_operation
 +0us event qp_access_err
 +0us state err cause=local_fault
 +1ms < rc.read_request psn=200 va=remote dma=1024 dropped
 +0us counter drop_qp_state=1
 +1ms < rc.read_request psn=202 va=remote+2048 dma=3072 dropped
 +0us > rc.ack psn=202 nak=remote_operation
 +1ms < rc.read_request psn=201 va=remote+1024 dma=4096 dropped
 +0us > rc.ack psn=201 nak=remote_operation
 +0us counter drop_qp_state=1
