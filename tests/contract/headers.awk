# SPDX-License-Identifier: BSD-2-Clause
#
# Lists the items that a header declares: reads the output of "cc -E -dD" and prints a line for each item of the
# files in infiniband/:
#   macro NAME = REPLACEMENT, or macro NAME(COUNT OF ARGUMENTS) = REPLACEMENT
#   typedef NAME
#   struct TAG       also union and enum, where it has its members
#   enumerator NAME
#   name NAME        a function or a variable
#   inline NAME      a function that has its body in the header, beside its "name" line
# and a line for each header that it includes, except internal headers of the C library and of the kernel:
#   include PATH

# "# LINE "FILE" ...": the place of the next lines
/^# [0-9]+ "/ {
	split($0, quoted, "\"")
	file = quoted[2]
	inside = file ~ /\/infiniband\/[^\/]*$/
	if (inside) {
		sub(/^.*\/infiniband\//, "infiniband/", file)
		print "include", file
	} else if (sub(/^.*\/include\//, "", file)) {
		sub(/^[a-z0-9_]*-linux-[a-z0-9_]*\//, "", file)
		if (file !~ /^(bits|gnu|asm|asm-generic)\// && file !~ /^(features|stdc-predef)/)
			print "include", file
	}
	next
}

!inside {
	next
}

/^#define / {
	print_macro(substr($0, 9))
	next
}

/^#undef / {
	next
}

{
	add_tokens($0)
}

# The arguments' names and the layout make no difference: names become numbers, blanks and parentheses are removed.
function print_macro(text,    name, arguments, list, count, i, body) {
	match(text, /^[A-Za-z0-9_]+/)
	name = substr(text, 1, RLENGTH)
	body = substr(text, RLENGTH + 1)
	if (body ~ /^\(/) {
		i = index(body, ")")
		list = substr(body, 2, i - 2)
		body = substr(body, i + 1)
		gsub(/ /, "", list)
		count = split(list, arguments, ",")
		name = name "(" count ")"
		for (i = 1; i <= count; i++)
			body = with_number(body, arguments[i], i)
	}
	gsub(/\t/, " ", body)
	gsub(/"[ ]*"/, "", body)
	gsub(/[ ()]/, "", body)
	print "macro", name (body == "" ? "" : " = " body)
}

function with_number(body, argument, number,    done) {
	if (argument ~ /\.\.\.$/)
		argument = argument == "..." ? "__VA_ARGS__" : substr(argument, 1, length(argument) - 3)
	done = ""
	while (match(body, /[A-Za-z0-9_]+/)) {
		done = done substr(body, 1, RSTART - 1)
		if (substr(body, RSTART, RLENGTH) == argument)
			done = done "$" number
		else
			done = done substr(body, RSTART, RLENGTH)
		body = substr(body, RSTART + RLENGTH)
	}
	return done body
}

function add_tokens(line) {
	while (line != "") {
		if (match(line, /^[ \t]+/)) {
			line = substr(line, RLENGTH + 1)
			continue
		}
		if (!match(line, /^"([^"\\]|\\.)*"/) && !match(line, /^'([^'\\]|\\.)*'/) &&
		    !match(line, /^[A-Za-z0-9_]+/))
			RLENGTH = 1
		add_token(substr(line, 1, RLENGTH))
		line = substr(line, RLENGTH + 1)
	}
}

# A declaration ends with a semicolon outside of braces, or with the body of a function.
function add_token(token) {
	if (token == "{") {
		if (depth++ == 0 && previous == ")" && tokens[1] != "typedef")
			body_begins = count + 1
	} else if (token == "}") {
		depth--
	}
	previous = token
	tokens[++count] = token
	if (depth > 0)
		return
	if (token == "}" && body_begins) {
		declaration(body_begins - 1)
		print "inline", declared
	} else if (token == ";") {
		declaration(count - 1)
	} else {
		return
	}
	count = 0
	body_begins = 0
	previous = ""
}

function identifier(token) {
	return token ~ /^[A-Za-z_]/
}

# Prints the items that tokens[1] to tokens[n] declare.
function declaration(n,    i, m, kind, plain) {
	m = 0
	for (i = 1; i <= n; i++) {
		if (tokens[i] ~ /^(__attribute__|__asm__)$/) {
			i = last_of_attribute(i)
		} else if (tokens[i] ~ /^(struct|union|enum)$/) {
			kind = tokens[i]
			while (tokens[i + 1] == "__attribute__")
				i = last_of_attribute(i + 1)
			plain[++m] = kind
			if (identifier(tokens[i + 1]) && tokens[i + 2] == "{") {
				print kind, tokens[i + 1]
				plain[++m] = tokens[++i]
			}
			if (tokens[i + 1] == "{" && kind == "enum")
				enumerators(i + 1)
		} else if (tokens[i] !~ /^(__extension__|extern|static|inline|__inline|__inline__|const)$/) {
			plain[++m] = tokens[i]
		}
	}
	declarators(plain, m)
}

# the parenthesis that closes the attribute at tokens[i]
function last_of_attribute(i,    nested) {
	nested = 0
	do {
		i++
		nested += tokens[i] == "("
		nested -= tokens[i] == ")"
	} while (nested > 0)
	return i
}

# the enumerators of the enum whose brace is tokens[i]
function enumerators(i,    nested) {
	nested = 0
	for (i++; tokens[i] != "}"; i++) {
		nested += tokens[i] == "("
		nested -= tokens[i] == ")"
		if (nested == 0 && identifier(tokens[i]) && tokens[i - 1] ~ /^[{,]$/)
			print "enumerator", tokens[i]
	}
}

# A declarator's name is before the first parenthesis or bracket, or after "(*", or last.
function declarators(plain, m,    i, braces, nested, kind, name, fixed) {
	kind = plain[1] == "typedef" ? "typedef" : "name"
	braces = nested = 0
	name = ""
	fixed = 0
	for (i = 1; i <= m; i++) {
		if (plain[i] == "{")
			braces++
		else if (plain[i] == "}")
			braces--
		else if (braces == 0) {
			if (plain[i] == "(" && plain[i + 1] == "*" && nested == 0 && !fixed) {
				name = plain[i + 2]
				fixed = 1
			}
			if (plain[i] ~ /^[(\[]$/) {
				if (nested++ == 0 && identifier(name))
					fixed = 1
			} else if (plain[i] ~ /^[)\]]$/) {
				nested--
			} else if (nested == 0 && plain[i] == ",") {
				print kind, name
				name = ""
				fixed = 0
			} else if (nested == 0 && !fixed && identifier(plain[i])) {
				name = plain[i]
			}
		}
	}
	# "struct tag;" and "enum { ... };" declare no name
	if (name != "" && !(plain[1] ~ /^(struct|union|enum)$/ && name == plain[m] && m == 2) &&
	    !(plain[1] ~ /^(struct|union|enum)$/ && plain[m] == "}")) {
		print kind, name
		declared = name
	}
}
