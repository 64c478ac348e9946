# SPDX-License-Identifier: BSD-2-Clause
#
# Draws the state of a port and an alert over time, from the output of two promtool query range. The variables begin
# and end are Unix times.

function x(time) { return 150 + (time - begin) * 560 / (end + 1 - begin) }

/=>$/ {
	sub(/ *=>$/, "")
	titles[++rows] = $0
	next
}
/ @\[/ {
	value[rows, ++count[rows]] = $1
	split($2, parts, /[][@.]/)
	time[rows, count[rows]] = parts[3]
}

END {
	print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"740\" height=\"170\" font-family=\"sans-serif\" font-size=\"12\">"
	print "<rect width=\"740\" height=\"170\" fill=\"white\"/>"
	for (row = 1; row <= rows; row++) {
		y = row == 1 ? 20 : 90
		text = row == 1 ? "infiniband_port_state" : "InfinibandLinkDown"
		print "<text x=\"10\" y=\"" y + 20 "\">" text "</text>"
		for (i = 1; i <= count[row]; i++) {
			bad = row > 1 || value[row, i] < 4
			printf "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"30\" fill=\"%s\"/>\n", x(time[row, i]), y,
				560 / (end + 1 - begin) + 0.5, bad ? "#c03030" : "#60a060"
		}
	}
	print "<text x=\"10\" y=\"56\" fill=\"#606060\">green: 4, red: 1</text>"
	print "<text x=\"10\" y=\"126\" fill=\"#606060\">red: firing</text>"
	for (second = 0; second <= end - begin; second += 5) {
		printf "<line x1=\"%.1f\" y1=\"135\" x2=\"%.1f\" y2=\"140\" stroke=\"black\"/>\n", x(begin + second), x(begin + second)
		printf "<text x=\"%.1f\" y=\"155\" text-anchor=\"middle\">%d s</text>\n", x(begin + second), second
	}
	print "</svg>"
}
