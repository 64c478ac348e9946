# SPDX-License-Identifier: BSD-2-Clause
#
# Writes the C program that pins the headers named by -v headers=REGEX to the ABI's data:
#   awk -v headers='^umad' -v include=INCLUDE-FOLDER -f generate.awk constants.csv structs.csv functions.csv
# The compiler checks all but texts; the program compares texts when it runs. An error of the compiler has the line
# of the header that is to be edited, or the line of the data if the header has no such name.

BEGIN {
	FS = ","
	print "/* Written by generate.awk. */"
}

# Reads where a header has each word for the first time, comments and #ifndef apart, and each type's definition.
function find_words(header,    line, number, words, count, i) {
	while ((getline line < (include "/infiniband/" header)) > 0) {
		number++
		if (line ~ /^(#ifndef| ?\*|\/\*)/)
			continue
		sub(/\/\*.*/, "", line)
		if (match(line, /(struct|union) [A-Za-z0-9_]+ [{]/))
			place[header, substr(line, RSTART, RLENGTH - 2)] = number
		count = split(line, words, /[^A-Za-z0-9_]+/)
		for (i = 1; i <= count; i++)
			if (!((header, words[i]) in place))
				place[header, words[i]] = number
	}
}

# The directive before a check of a name, and what to say of it.
function at(name) {
	if (($1, name) in place)
		return "#line " place[$1, name] " \"include/infiniband/" $1 "\"\n"
	return "#line " FNR " \"" data() "\"\n"
}
function data() {
	return "tests/contract/" base(FILENAME)
}
function base(path) {
	sub(/.*\//, "", path)
	return path
}
function demanded(text) {
	return "\"edit here: " text " in rdma-core (" data() ":" FNR ")\""
}

# A CSV field in quotes: the rest of the line from column n on.
function quoted(n,    rest, i) {
	rest = $0
	for (i = 1; i < n; i++)
		sub(/^[^,]*,/, "", rest)
	if (rest ~ /^"/) {
		rest = substr(rest, 2, length(rest) - 2)
		gsub(/""/, "\"", rest)
	}
	return rest
}

FNR == 1 {
	file++
	next
}

$1 !~ headers {
	next
}

!($1 in included) {
	included[$1] = 1
	find_words($1)
	body = body "#include <infiniband/" $1 ">\n"
}

# constants.csv: header, kind, enum, name, value
file == 1 {
	constants++
	value = quoted(5)
	if (value == "")
		body = body "#ifndef " $4 "\n" at($4) "#error " $4 " is missing\n#endif\n"
	else if (value ~ /^"/)
		texts = texts "\twrong += differs(\"include/infiniband/" $1 ":" place[$1, $4] ": " \
			$4 "\", " $4 ", " value ");\n"
	else
		body = body at($4) "_Static_assert((unsigned long long)(" $4 ") == " value "ull, " \
			demanded(($2 == "enumerator" ? "nothing is added above it, and " : "") $4 " is " \
			value) ");\n"
}

# structs.csv: header, type, member, offset, size, the member's type or the alignment
file == 2 {
	members++
	type = $2
	if (!(($1, type) in place))
		sub(/.* /, "", type)
	if ($3 == "(whole)") {
		alignment = $6
		sub(/align /, "", alignment)
		layouts = layouts at(type) "_Static_assert(sizeof(" $2 ") == " $5 " && _Alignof(" $2 ") == " \
			alignment ", " demanded($2 " has " $5 " bytes") ");\n"
	} else {
		layouts = layouts at(type) "_Static_assert(offsetof(" $2 ", " $3 ") == " $4 " && sizeof(((" \
			$2 " *)0)->" $3 ") == " $5 ", " demanded($2 "." $3 " has " $5 " bytes at " $4) ");\n"
		if ($6 !~ /{/)
			layouts = layouts "_Static_assert(__builtin_types_compatible_p(__typeof__(((" \
				$2 " *)0)->" $3 "), " $6 "), " demanded($2 "." $3 " is " $6) ");\n"
	}
}

# functions.csv: header, kind, deprecated, prototype. A use of the name proves that the header declares the
# function; a second declaration proves the prototype.
file == 3 {
	functions++
	prototype = quoted(4)
	name = prototype
	if (match(prototype, /[A-Za-z0-9_]+\(/))
		name = substr(prototype, RSTART, RLENGTH - 1)
	else
		sub(/.*[ *]/, "", name)
	addresses = addresses at(name) "\t(const void *)&" name ",\n"
	declarations = declarations "#line " FNR " \"" data() "\"\n" prototype ";\n"
}

END {
	# the ioctls of umad.h use macros of <sys/ioctl.h>
	print "#include <sys/ioctl.h>\n" body
	print "#include <stddef.h>\n#include <stdio.h>\n#include <string.h>\n"
	print "#if __SIZEOF_POINTER__ == 8"
	print layouts "#endif\n"
	print "static const void *const declared[] = {\n" addresses "};\n"
	print declarations
	print "#line 1 \"written by generate.awk\""
	print "int differs(const char *name, const char *text, const char *wanted);\n"
	print "int differs(const char *name, const char *text, const char *wanted)\n{"
	print "\tif (!strcmp(text, wanted))\n\t\treturn 0;"
	print "\tprintf(\"edit %s is \\\"%s\\\", in rdma-core it is \\\"%s\\\"\\n\", name, text, wanted);"
	print "\treturn 1;\n}\n"
	print "int main(void)\n{\n\tint wrong = 0;\n\n" texts
	print "\tprintf(\"" constants " constants, " members " layouts, " functions " functions\\n\");"
	print "\treturn wrong || !declared[0];\n}"
}
