# SPDX-License-Identifier: BSD-2-Clause
#
# awk -v name=NAME -f how-to.awk PAGE.md
#
# Writes a page of docs/how-to as a manual page of section 7, in mdoc(7). It knows the Markdown that these pages use:
# headings, paragraphs, fenced and indented blocks, lists with "-" or numbers, tables, `code`, **strong** and [text](link).

function escaped(text) {
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	return text
}

# A line of text, with its code, strong words and links.
function inline(text, before, rest) {
	text = escaped(text)
	while (match(text, /\[[^]]*\]\([^)]*\)/)) {
		before = substr(text, 1, RSTART - 1)
		rest = substr(text, RSTART + RLENGTH)
		text = substr(text, RSTART + 1, index(substr(text, RSTART), "](") - 2)
		text = before text rest
	}
	while (match(text, /`[^`]*`/))
		text = substr(text, 1, RSTART - 1) "\\fB" substr(text, RSTART + 1, RLENGTH - 2) "\\fR" \
			substr(text, RSTART + RLENGTH)
	while (match(text, /\*\*[^*]*\*\*/))
		text = substr(text, 1, RSTART - 1) "\\fB" substr(text, RSTART + 2, RLENGTH - 4) "\\fR" \
			substr(text, RSTART + RLENGTH)
	return text
}

# No line of text is a request. Each sentence has a line.
function put(text) {
	text = inline(text)
	while (match(text, /[A-Za-z0-9)][.:] [A-Z]/)) {
		wrapped(substr(text, 1, RSTART + 1))
		text = substr(text, RSTART + 3)
	}
	wrapped(text)
}

function line(text) {
	print (text ~ /^[.']/ ? "\\&" : "") text
}

# A line of at most 80 bytes, as far as words allow.
function wrapped(text, end) {
	while (length(text) > 78) {
		for (end = 78; end > 1 && substr(text, end, 1) != " "; end--)
			;
		if (end == 1)
			break
		line(substr(text, 1, end - 1))
		text = substr(text, end + 1)
	}
	line(text)
}

function flush() {
	if (paragraph == "")
		return
	if (kind == "title") {
		print ".Nm " name
		print ".Nd " inline(paragraph)
	} else if (kind == "item") {
		print ".It"
		put(paragraph)
	} else {
		if (!quiet)
			print ".Pp"
		put(paragraph)
		quiet = 0
	}
	paragraph = ""
}

function end_list() {
	flush()
	if (list != "")
		print ".El"
	list = ""
	kind = ""
}

function begin_list(type) {
	flush()
	if (list == "")
		print ".Bl " type
	list = type
}

function end_table(i, j, text) {
	if (!rows)
		return
	print ".Bl -tag -width Ds"
	for (i = 2; i <= rows; i++) {
		print ".It " inline(cell[i, 1])
		for (j = 2; j <= columns; j++) {
			text = cell[i, j]
			put(columns > 2 ? cell[1, j] ": " text : text)
		}
	}
	print ".El"
	rows = 0
}

BEGIN {
	print ".\\\" Made from docs/how-to/" name ".md"
	print ".Dd November 22, 2026"
	print ".Dt LIBIBMAD-" toupper(name) " 7"
	print ".Os"
	print ".Sh NAME"
	name = "libibmad-" name
}

# a list's item goes on in lines of two spaces, a block is indented by four
!fenced && /^    / && (indented || paragraph == "") {
	if (!indented) {
		end_list()
		end_table()
		print ".Bd -literal -offset indent"
		indented = 1
		quiet = 0
	}
	line(escaped(substr($0, 5)))
	next
}
indented {
	print ".Ed"
	indented = 0
}
fenced && /^```/ {
	print ".Ed"
	fenced = 0
	next
}
fenced {
	sub(/ +$/, "")
	line(escaped($0))
	next
}
/^<!--.*-->$/ {
	next
}
/^```/ {
	end_list()
	end_table()
	print ".Bd -literal -offset indent"
	fenced = 1
	quiet = 0
	next
}
/^# / {
	paragraph = substr($0, 3)
	kind = "title"
	flush()
	kind = ""
	print ".Sh DESCRIPTION"
	quiet = 1
	next
}
/^## / {
	end_list()
	end_table()
	print ".Sh " toupper(inline(substr($0, 4)))
	quiet = 1
	next
}
/^\|[-| :]*\|$/ {
	next
}
/^\|/ {
	end_list()
	rows++
	columns = split($0, part, / *\| */) - 2
	for (i = 1; i <= columns; i++)
		cell[rows, i] = part[i + 1]
	next
}
/^$/ {
	end_table()
	if (kind == "item")
		end_list()
	else
		flush()
	next
}
/^- / {
	begin_list("-bullet")
	kind = "item"
	paragraph = substr($0, 3)
	next
}
/^[0-9]+\. / {
	begin_list("-enum")
	kind = "item"
	sub(/^[0-9]+\. /, "")
	paragraph = $0
	next
}
{
	sub(/^ +/, "")
	paragraph = paragraph (paragraph == "" ? "" : " ") $0
}
END {
	if (indented)
		print ".Ed"
	end_list()
	end_table()
	print ".Sh SEE ALSO"
	print ".Xr libibmad 7"
}
