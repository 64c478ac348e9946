# SPDX-License-Identifier: BSD-2-Clause
#
# Writes the C program that pins the headers named by -v headers=REGEX to the ABI's data:
#   awk -v headers='^umad' -f generate.awk constants.csv structs.csv functions.csv
# The compiler checks all but texts; the program compares texts when it runs.

BEGIN {
	FS = ","
	print "/* Written by generate.awk. */"
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
	body = body "#include <infiniband/" $1 ">\n"
}

# constants.csv: header, kind, enum, name, value
file == 1 {
	constants++
	value = quoted(5)
	if (value == "")
		body = body "#ifndef " $4 "\n#error " $4 " is missing\n#endif\n"
	else if (value ~ /^"/)
		texts = texts "\twrong += differs(\"" $4 "\", " $4 ", " value ");\n"
	else
		body = body "_Static_assert((unsigned long long)(" $4 ") == " value "ull, \"" $4 "\");\n"
}

# structs.csv: header, type, member, offset, size, the member's type or the alignment
file == 2 {
	members++
	if ($3 == "(whole)") {
		alignment = $6
		sub(/align /, "", alignment)
		layouts = layouts "_Static_assert(sizeof(" $2 ") == " $5 " && _Alignof(" $2 ") == " \
			alignment ", \"" $2 "\");\n"
	} else {
		layouts = layouts "_Static_assert(offsetof(" $2 ", " $3 ") == " $4 " && sizeof(((" \
			$2 " *)0)->" $3 ") == " $5 ", \"" $2 "." $3 "\");\n"
		if ($6 !~ /{/)
			layouts = layouts "_Static_assert(__builtin_types_compatible_p(__typeof__(((" \
				$2 " *)0)->" $3 "), " $6 "), \"type of " $2 "." $3 "\");\n"
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
	addresses = addresses "\t(const void *)&" name ",\n"
	declarations = declarations prototype ";\n"
}

END {
	# the ioctls of umad.h use macros of <sys/ioctl.h>
	print "#include <sys/ioctl.h>\n" body
	print "#include <stddef.h>\n#include <stdio.h>\n#include <string.h>\n"
	print "#if __SIZEOF_POINTER__ == 8"
	print layouts "#endif\n"
	print "static const void *const declared[] = {\n" addresses "};\n"
	print declarations
	print "int differs(const char *name, const char *text, const char *wanted);\n"
	print "int differs(const char *name, const char *text, const char *wanted)\n{"
	print "\tif (!strcmp(text, wanted))\n\t\treturn 0;"
	print "\tprintf(\"%s is \\\"%s\\\"\\n\", name, text);\n\treturn 1;\n}\n"
	print "int main(void)\n{\n\tint wrong = 0;\n\n" texts
	print "\tprintf(\"" constants " constants, " members " layouts, " functions " functions\\n\");"
	print "\treturn wrong || !declared[0];\n}"
}
