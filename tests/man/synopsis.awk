# SPDX-License-Identifier: BSD-2-Clause

# A page's SYNOPSIS as C: its includes; then, for each declaration, an assertion that a header declares it.

# The argument of a macro: what is in quotes, or the rest of the line.
function argument(text) {
	sub(/^\.[A-Z][a-z] /, "", text)
	gsub(/"/, "", text)
	return text
}

# A name in brackets is the name of a type.
function declare(name, declaration) {
	if (name !~ /^\(/)
		printf "_Static_assert(sizeof(&%s) > 0, \"\");\n", name
	print declaration ";"
}

/^\.Sh / { synopsis = $2 == "SYNOPSIS" }
!synopsis { next }

/^\.In / { print "#include <" $2 ">" }
/^\.Ft / { type = argument($0) }
/^\.Fo / { name = $2; arguments = "" }
/^\.Fa / { arguments = arguments (arguments ? ", " : "") argument($0) }
/^\.Fc/ { declare(name, type " " name "(" arguments ")") }
/^\.Fn / {
	name = $2
	arguments = $0
	sub(/^\.Fn [^ ]* /, "", arguments)
	gsub(/" "/, ", ", arguments)
	gsub(/"/, "", arguments)
	declare(name, type " " name "(" arguments ")")
}
/^\.Vt / {
	declaration = argument($0)
	name = declaration
	sub(/.*[ *]/, "", name)
	declare(name, declaration)
}
