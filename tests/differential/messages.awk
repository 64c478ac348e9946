# SPDX-License-Identifier: BSD-2-Clause
#
# Reduces stderr to facts that must not differ between two libraries with different messages. The message of a
# request without a response is reduced to its cause and its destination, the message of another failure to
# the call, the port, the class and the numbers in it. Other lines stay as they are, without process IDs.
#
# -v trace=1: the program ran with debugging; then the libraries' messages about their steps are left out.
# Otherwise a message that does not report a known failure becomes "UNKNOWN", with its text.

BEGIN {
	calls = "^(_do_madrpc|mad_[a-z_0-9]+|madrpc_init|sa_rpc_call|ib_[a-z_]+_via|bm_call_via|str2drpath|" \
		"smp_[a-z_]+_via|pma_query_via|performance_reset_via|cc_[a-z_]+_via|redirect_port|" \
		"get_abi_version|get_port|umad_[a-z_0-9]+|resolve_ca_[a-z]+|dev_to_umad_id|find_cached_ca|" \
		"put_ca|get_ca|release_ca|release_port|check_for_digit_name|smp_[a-z_]+|get_smi_gsi_pair)$"
	split("Connection timed out|Invalid argument|Input/output error|Bad file descriptor|" \
		"No such device|No such file or directory|Permission denied|Operation not permitted|" \
		"Success|Operation not supported|Cannot allocate memory|" \
		"Inappropriate ioctl for device|No such device or address|" \
		"Resource temporarily unavailable|Not a directory|Bad address", errors, "|")
}

# The text of an errno at the end of a line or in parentheses.
function cause_of(text,    i, found) {
	found = ""
	for (i in errors)
		if (index(text, errors[i]) && length(errors[i]) > length(found))
			found = errors[i]
	return found
}

function destination_of(text) {
	if (match(text, /Lid [0-9]+( Gid [0-9a-f:.]+)?/) ||
	    match(text, /DR path slid [0-9]+; dlid [0-9]+; [0-9,]+/))
		return substr(text, RSTART, RLENGTH)
	return ""
}

# "NAME port N" or "(NAME:N)"; any device is "any".
function port_of(text,    part) {
	if (match(text, /\([^() ]*(\((null|nil)\))?:-?[0-9]+\)/)) {
		part = substr(text, RSTART + 1, RLENGTH - 2)
		sub(/:/, " port ", part)
	} else if (match(text, /[^ ]+ port -?[0-9]+/)) {
		part = substr(text, RSTART, RLENGTH)
	}
	sub(/^\((null|nil|any)\)/, "any", part)
	return part
}

function number_of(text) {
	return match(text, /(0x[0-9a-f]+|-?[0-9]+)/) ? substr(text, RSTART, RLENGTH) : ""
}

# The cause of a request's failure; the next line has the destination.
function flush_cause() {
	if (cause != "")
		print "library: cause without a destination: " cause
	cause = ""
}

function library_message(call, text, kind,    to) {
	# ibdebug: a line for each request and its result
	if (text ~ /^class 0x[0-9a-f]+ (method|is agent) /)
		return
	to = destination_of(text)
	# further attempts: their number may differ
	if (text ~ /^(retry [0-9]+ |no response to attribute|timeout after )/)
		return
	if (text ~ /^(recv failed: |send failed; |no response: |the request cannot be made: )/ &&
	    call != "mad_send_via") {
		flush_cause()
		cause = cause_of(text)
		return
	}
	if (to != "" && text ~ /(status 0x)/) {
		match(text, /status 0x[0-9a-f]+/)
		print "library: request to " to ": " substr(text, RSTART, RLENGTH)
	} else if (to != "" && text ~ /failed/) {
		# a simulator may report a timeout before the library's own clock
		print "library: request to " to ": " (cause == "" ? "Connection timed out" : cause)
		cause = ""
	} else if (text ~ /too many|are too many/)
		print "library: " kind call ": too many classes: " number_of(text)
	else if (text ~ /client_register|cannot register class/) {
		sub(/ on .*/, "", text)
		print "library: " kind call ": class " number_of(text)
	} else if (call != "get_smi_gsi_pair" && text ~ /can't open UMAD port|cannot open /)
		print "library: " kind call ": cannot open " port_of(text)
	else if (call ~ /^(sa_rpc_call|bm_call_via)$/ && text ~ /only lid|needs a LID/)
		print "library: " call ": no LID"
	else if (call ~ /^ib_(path|node)_query_via$/ && text ~ /failed/)
		print "library: " call ": failed"
	else if (call == "mad_send_via" && text ~ /failed|cannot be sent/)
		print "library: " call ": " cause_of(text)
	else if (call == "mad_encode" && text ~ /without drpath|needs a path/)
		print "library: " call ": no path"
	else if (call == "mad_encode" && text ~ /hop count|cannot have/)
		print "library: " call ": " number_of(text) " hops"
	else if (call == "ib_resolve_portid_str_via" && text ~ /bad dest_type|no kind of/)
		print "library: " call ": " number_of(text)
	else if (call ~ /^mad_dump_/ && text ~ /bad int sz|cannot have/)
		print "library: " call ": " number_of(text)
	else if (text ~ /abi_version/ && text ~ /read/)
		print "library: no ABI version: " cause_of(text)
	else if (text ~ /no pkeys found|has no P_Keys/)
		print "library: no P_Keys"
	else if (text ~ /max_retries .* <= 0/)
		return
	else if (call == "get_smi_gsi_pair") # mad_rpc_open_port2, which says the same in the next line
		return
	else if (!trace)
		print "UNKNOWN: " call ": " text
}

{ gsub(/\r/, "") }

/^(ibwarn|ibpanic): \[[0-9]+\] [a-zA-Z0-9_]+: / {
	kind = $1
	call = $3
	text = $0
	sub(/:$/, "", call)
	sub(/^[a-z]+: \[[0-9]+\] [a-zA-Z0-9_]+: /, "", text)
	if (call ~ calls && (kind == "ibwarn:" || call == "madrpc_init")) {
		library_message(call, text, kind == "ibpanic:" ? "panic " : "")
		next
	}
}

/^libibumad: / {
	library_message("libibumad", substr($0, 12), "")
	next
}

# packets that the libraries print
trace && (/^([0-9a-f][0-9a-f]([0-9a-f][0-9a-f])? ?)+$/ ||
	/^(send|receive|respond|send buf|rcv buf|rmpp mad data|mad send data|rcv data)$/ ||
	/^(grh_present|Gid 0x|agent |lid |grh )/) { next }

{
	flush_cause()
	gsub(/\[[0-9]+\]/, "[pid]")
	# a tool's message before it exits has an errno that may differ
	if (/^ibpanic: /)
		sub(/: [^:]*$/, "")
	print
}

END { flush_cause() }
