# SPDX-License-Identifier: BSD-2-Clause
# ibsim's ports count the very packets that ask for the counters.
s/^\(Port\(Xmit\|Rcv\)\(Data\|Pkts\|SwitchRelayErrors\):\.*\).*/\1/
s/\(Port\(Xmit\|Rcv\|Unicast\|Multicast\|Uni\|Multi\)[A-Za-z]* == \)[0-9]*\( ([^)]*)\)*/\1/g
# libumad2sim.so leaves the end of a response with three PathRecords as it was in memory.
s/^\([[:space:]]*\(tclass\|num_path_revers\|pkey\|pkt_life\|preference\|resv2\)\.*\).*/\1/
