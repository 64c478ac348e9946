# SPDX-License-Identifier: BSD-2-Clause
# ibsim's port counters count the packets that read the counters.
s/^\(Port\(Xmit\|Rcv\)\(Data\|Pkts\|SwitchRelayErrors\):\.*\).*/\1/
s/\(Port\(Xmit\|Rcv\|Unicast\|Multicast\|Uni\|Multi\)[A-Za-z]* == \)[0-9]*\( ([^)]*)\)*/\1/g
# libumad2sim.so does not initialise the end of a response with three PathRecords.
s/^\([[:space:]]*\(tclass\|num_path_revers\|pkey\|pkt_life\|preference\|resv2\)\.*\).*/\1/
