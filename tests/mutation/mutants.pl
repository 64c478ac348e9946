# SPDX-License-Identifier: BSD-2-Clause

# The mutants of a C source that clang-format has laid out: each has one change in the body of a function. Some do not
# compile.

package Mutants;

use strict;
use warnings;

my %SWAPPED = (
	'<' => '<=', '<=' => '<', '>' => '>=', '>=' => '>', '==' => '!=', '!=' => '==', '&&' => '||', '||' => '&&',
	'<<' => '>>', '>>' => '<<', '+=' => '-=', '-=' => '+=', '|=' => '&=', '&=' => '|=', '^=' => '|=', '^' => '|',
	'+' => '-', '-' => '+', '*' => '/', '/' => '*', '%' => '/', '&' => '|', '|' => '&', '<<=' => '>>=', '>>=' => '<<=',
	'++' => '--', '--' => '++', 'true' => 'false', 'false' => 'true', '!' => '',
);

sub number_after {
	my ($digits, $suffix) = $_[0] =~ /^(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)$/;
	no warnings 'portable'; # numbers of 64 bits
	my $next = $digits =~ /^0/ ? oct($digits) + 1 : $digits + 1;

	return ($digits =~ /^0[xX]/ ? sprintf('0x%x', $next) : $next) . $suffix;
}

# Hashes with file, line, offset, length, text and key. The key names a mutant without its line number.
sub of_text {
	my ($file, $source) = @_;
	my (@mutants, %seen);
	my $code = $source; # with the same length, but without comments, strings, directives and tables

	$code =~ s{(/\*.*?\*/|//[^\n]*|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|^#(?:[^\n\\]|\\.)*|^\t+static [^;]*)}
		{$1 =~ s/[^\n]/ /gr}gesm;
	while ($code =~ /^(?!#)\w[^\n;]*?(\w+)\((?:[^;{}](?!^\w))*^\{\n(.*?)^\}/gsm) {
		my ($function, $body, $begin) = ($1, $2, $-[2]);
		my $add = sub {
			my ($at, $length, $text) = @_;
			my $offset = $begin + $at;
			my $from = rindex($source, "\n", $offset - 1) + 1;
			my $to = index($source, "\n", $offset + $length);
			my $old = substr($source, $from, $to - $from);
			my $new = $old;

			substr($new, $offset - $from, $length) = $text;
			s/^\s+|\s+$//g, s/\s+/ /g for $old, $new;
			my $key = "$file, $function: $old => $new";
			my $count = ++$seen{$key};

			$key .= " ($count)" if $count > 1;
			push @mutants, {file => $file, line => 1 + (substr($source, 0, $offset) =~ tr/\n//),
				offset => $offset, length => $length, text => $text, key => $key};
		};

		# a binary operator has spaces around it
		while ($body =~ m{(?<=\s)([-+*/%&|^<>=!]+)(?=\s)}g) {
			$add->($-[1], length $1, $SWAPPED{$1}) if exists $SWAPPED{$1};
		}
		$add->($-[1], length $1, $SWAPPED{$1}) while $body =~ /(\+\+|--|!(?!=)|\btrue\b|\bfalse\b)/g;
		$add->($-[1], length $1, number_after($1)) while
			$body =~ /(?<!calloc\()\b(0[xX][0-9a-fA-F]+[uUlL]*|\d+[uUlL]*)\b/g;
		# the mutant of a lone comparison negates, too
		while ($body =~ /\b(?:if|while) (\((?:[^()]++|(?1))*\))/g) {
			my ($at, $condition) = ($-[1], $1);

			$add->($at + 1, length($condition) - 2, "!$condition") if $condition =~ /&&|\|\||[<>]/ || $condition !~ /!|==/;
		}
		$add->($-[1], length $1, $1 eq '0' ? '1' : '0') while $body =~ /\breturn ((?!NULL;|false;)[^;]+);/g;
		# a statement is missing
		$add->($-[1], length $1, '') while $body =~ /\b(return|break|continue);/g;
		$add->($-[1], length $1, '') while $body =~
			/^\t+((?:\*|\+\+|--)?(?!return\b|if\b|for\b|while\b|switch\b|case\b|else\b|do\b|goto\b)\w+(?!\w|:|\s+\*?\w)[^;{}]*);$/gm;
	}
	return @mutants;
}

1;
