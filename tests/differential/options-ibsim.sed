# SPDX-License-Identifier: BSD-2-Clause
# ibsim's ports count the very packets that ask for the counters.
s/^\(Port\(Xmit\|Rcv\)\(Data\|Pkts\|SwitchRelayErrors\):\.*\).*/\1/
s/\(Port\(Xmit\|Rcv\|Unicast\|Multicast\|Uni\|Multi\)[A-Za-z]* == \)[0-9]*\( ([^)]*)\)*/\1/g
# opensm does not set these parts of a PathRecord.
s/^\([[:space:]]*\(preference\|resv2\)\.*\).*/\1/
