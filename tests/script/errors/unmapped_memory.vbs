# The interface cannot read the program's memory: the work request fails, like one with a bad key.
qp rc
 +0us send_error errno=14
 +0us post write len=8 wr=1
 +0us > rc.write_only psn=100 len=8 ackreq
 +0us complete wr=1 loc_prot_err
 +0us state err cause=local_fault
