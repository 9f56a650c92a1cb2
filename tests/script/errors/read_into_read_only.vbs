# A READ's answer needs local write permission where it is to lie.
mr readonly access=none
qp rc
 +0us post read len=8 from=readonly wr=1
 +0us > rc.read_request psn=100 ackreq
 +5us < rc.read_response_only psn=100 len=8 dropped
 +0us complete wr=1 loc_prot_err
 +0us state err cause=local_sge
