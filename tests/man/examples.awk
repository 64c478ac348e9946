# SPDX-License-Identifier: BSD-2-Clause

# Writes each literal block of a page's EXAMPLES to a file <prefix><number>.c.

/^\.Sh / { examples = $2 == "EXAMPLES" }
examples && /^\.Bd -literal/ { file = prefix (++count) ".c"; next }
/^\.Ed/ { if (file) close(file); file = ""; next }
file {
	sub(/^\\&/, "")
	gsub(/\\e/, "\\")
	print >file
}
