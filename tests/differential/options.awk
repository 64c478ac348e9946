# SPDX-License-Identifier: BSD-2-Clause
#
# Makes invocations from options.table and from the documented options (FOUND: "TOOL SHORT LONG" a line, "-" where
# there is none): "TOOL <tab> OPTION <tab> FLAGS <tab> ARGUMENTS" a line. Options without a row of the table go to
# the file named by -v unknown=FILE, "TOOL OPTION" a line.
#
# Options that cannot run go to the file named by -v leftout=FILE, with the reason.
#
#	awk -v unknown=FILE -v leftout=FILE -f options.awk options.table FOUND

BEGIN { FS = "\t"; nothing = "-" }

function invocation(tool, option, flags, arguments) {
	gsub(/  +/, " ", arguments)
	sub(/^ /, "", arguments)
	sub(/ $/, "", arguments)
	print tool "\t" option "\t" flags "\t" arguments
}

# A line of the table.
FNR == NR {
	if (/^#/ || NF < 3)
		next
	flags = NF < 4 ? nothing : $4
	for (i = split($1, tool_of, ","); i; i--) {
		tool = tool_of[i]
		if ($2 == "form") {
			count_of = split($5, form_of, " [|] ")
			for (j = 1; j <= count_of; j++) {
				form_tool[++forms] = tool
				form_flags[forms] = flags
				form_arguments[forms] = form_of[j] == nothing ? " " : form_of[j]
			}
			continue
		}
		for (j = split($2, option_of, ","); j; j--) {
			key = tool "\t" option_of[j]
			rows[key] = 1
			value[key] = $3 == nothing ? "" : $3
			flags_of[key] = flags
			arguments_of[key] = NF < 5 ? "" : $5 == nothing ? " " : $5
		}
	}
	next
}

# A documented option.
{
	tool = $1
	if (!(tool in tools)) {
		order[++count] = tool
		tools[tool] = 1
	}
	base = tool "\tbase"
	key = ""
	if ($3 != nothing && ((tool "\t" $3) in rows))
		key = tool "\t" $3
	else if ($2 != nothing && ((tool "\t-" $2) in rows))
		key = tool "\t-" $2
	else if ($3 != nothing && (("*\t" $3) in rows))
		key = "*\t" $3
	else if ($2 != nothing && short[$2] != "")
		key = "*\t" short[$2]
	name = $3 == nothing ? "-" $2 : "--" $3
	if ($2 != nothing && $3 != nothing)
		name = "-" $2 ", " name
	if (!(base in rows) || key == "") {
		print tool " " name >unknown
		next
	}
	if (flags_of[key] == "left-out") {
		print "left out: " tool " " name ": " arguments_of[key] >leftout
		next
	}
	# an option of all tools needs the same as the tool
	flags = flags_of[key]
	if (flags == nothing || flags_of[base] == nothing)
		flags = flags == nothing ? flags_of[base] : flags
	else if (key ~ /^\*/)
		flags = flags_of[base] "," flags
	arguments = arguments_of[key] == "" ? arguments_of[base] : arguments_of[key]
	if ($2 != nothing)
		invocation(tool, name, flags, "-" $2 " " value[key] " " arguments)
	if ($3 != nothing)
		invocation(tool, name, flags, "--" $3 " " value[key] " " arguments)
	if ($3 == "Ca" || $2 == "C")
		invocation(tool, name, flags, "-C nosuch " arguments)
	if ($3 == "Port" || $2 == "P")
		invocation(tool, name, flags, "-P 9 " arguments)
}

END {
	for (i = 1; i <= count; i++) {
		base = order[i] "\tbase"
		if (!(base in rows))
			continue
		invocation(order[i], "(none)", flags_of[base], arguments_of[base])
		invocation(order[i], "(unknown)", flags_of[base], "--nosuchoption")
		# (without a device, the cache of another fabric would work)
		if (flags_of[base] !~ /cache/)
			invocation(order[i], "(no device)", "no-device", arguments_of[base])
		for (form = 1; form <= forms; form++)
			if (form_tool[form] == order[i])
				invocation(order[i], "(form)", form_flags[form], form_arguments[form])
	}
}
