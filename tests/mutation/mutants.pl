# SPDX-License-Identifier: BSD-2-Clause

# The mutants of a C source file: each mutant has one change in the body of a function.

package Mutants;

use strict;
use warnings;

my %SWAPPED = (
	'<' => '<=', '<=' => '<', '>' => '>=', '>=' => '>', '==' => '!=', '!=' => '==',
	'&&' => '||', '||' => '&&', '++' => '--', '--' => '++', '<<' => '>>', '>>' => '<<',
	'+=' => '-=', '-=' => '+=', '|=' => '&=', '&=' => '|=', '^=' => '|=', '/' => '*', '%' => '/',
	'<<=' => '>>=', '>>=' => '<<=', '^' => '|',
	'true' => 'false', 'false' => 'true',
);
# These are changed only between two operands.
my %SWAPPED_BINARY = ('+' => '-', '-' => '+', '&' => '|', '|' => '&');
my %KEYWORD = map { $_ => 1 } qw(if else while for do switch case default return goto break continue
	sizeof);
my %TYPE = map { $_ => 1 } qw(const static struct union enum int unsigned char short long void bool
	volatile register extern typedef _Static_assert signed float double __typeof__);

# Tokens of a text, as [kind, text, offset]. Comments and preprocessor lines are left out.
sub tokens {
	my ($text) = @_;
	my @tokens;

	pos($text) = 0;
	while (pos($text) < length $text) {
		my $at = pos($text);

		next if $text =~ /\G\s+/gc;
		next if $text =~ m{\G/\*.*?\*/}gcs || $text =~ m{\G//[^\n]*}gc;
		next if $text =~ /\G#(?:[^\n\\]|\\.)*/gcs;
		if ($text =~ /\G[A-Za-z_]\w*/gc) {
			push @tokens, ['name', $&, $at];
		} elsif ($text =~ /\G(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*(?![\w.])/gc) {
			push @tokens, ['number', $&, $at];
		} elsif ($text =~ /\G"(?:[^"\\]|\\.)*"/gcs || $text =~ /\G'(?:[^'\\]|\\.)*'/gcs) {
			push @tokens, ['string', $&, $at];
		} elsif ($text =~ /\G(?:<<=|>>=|\.\.\.|->|\+\+|--|&&|\|\||[-+*\/%&|^<>=!]=|<<|>>|.)/gcs) {
			push @tokens, ['sign', $&, $at];
		}
	}
	return @tokens;
}

# The index of the bracket that closes the one at an index.
sub closing {
	my ($tokens, $i) = @_;
	my $depth = 0;

	for (; $i < @$tokens; $i++) {
		my $text = $tokens->[$i][1];

		next if $tokens->[$i][0] ne 'sign';
		$depth++ if $text =~ /^[(\[{]$/;
		$depth-- if $text =~ /^[)\]}]$/;
		return $i if !$depth;
	}
	return $#$tokens;
}

sub is_operand_end {
	my ($token) = @_;

	return 0 if !$token || $token->[0] eq 'name' && $KEYWORD{$token->[1]};
	return $token->[0] ne 'sign' || $token->[1] =~ /^[)\]]$/;
}

# Whether the name in brackets before a sign is a type: then the sign is unary.
sub is_after_cast {
	my ($tokens, $i) = @_;
	my $inside;

	return 0 if $tokens->[$i - 1][1] ne ')';
	for (my $j = $i - 2; $j >= 0 && $tokens->[$j][1] ne '('; $j--) {
		return 0 if $tokens->[$j][0] ne 'name' && $tokens->[$j][1] ne '*';
		$inside = $tokens->[$j][1];
	}
	return defined $inside && ($TYPE{$inside} || $inside =~ /_t$/);
}

sub number_after {
	my ($text) = @_;
	my ($digits, $suffix) = $text =~ /^(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)$/;
	no warnings 'portable'; # numbers of 64 bits
	my $next = $digits =~ /^0/ ? oct($digits) + 1 : $digits + 1;

	return ($digits =~ /^0[xX]/ ? sprintf('0x%x', $next) : $next) . $suffix;
}

# Whether another mutant negates the same condition: the mutant of its only == or !=, or of its only operator, a "!".
sub is_negated_alone {
	my @signs = grep { $_->[0] eq 'sign' && $_->[1] !~ /^(?:->|\.|[()\[\]])$/ } @_;

	return @signs == 1 && ($signs[0][1] =~ /^[!=]=$/ || $signs[0][1] eq '!' && $_[0][1] eq '!');
}

# All mutants of a source: hashes with file, line, function, offset, length, text and key. The key names a
# mutant without its line number.
sub of_text {
	my ($file, $source) = @_;
	my @tokens = tokens($source);
	my (@mutants, %seen, $function, $body_end);
	my $statement = 0; # whether a statement begins at this token

	my $add = sub {
		my ($offset, $length, $text) = @_;
		my $begin = rindex($source, "\n", $offset - 1) + 1;
		my $end = index($source, "\n", $offset);
		my $shown = $offset + $length < $end ? $length : $end - $offset;
		my $line = substr($source, $begin, $end - $begin);
		my $new = $line;

		substr($new, $offset - $begin, $shown) = $text;
		for ($line, $new) {
			s/\s+/ /g;
			s/^ | $//g;
		}
		my $key = "$file, $function: $line => $new" =~ s/ $//r;
		my $count = ++$seen{$key};

		$key .= " ($count)" if $count > 1;
		push @mutants, {
			file => $file,
			line => 1 + (substr($source, 0, $offset) =~ tr/\n//),
			offset => $offset,
			length => $length,
			text => $text,
			key => $key,
		};
	};

	for (my $i = 0; $i < @tokens; $i++) {
		my ($kind, $text, $at) = @{$tokens[$i]};

		if (!defined $body_end || $i > $body_end) {
			# outside of functions: a body follows ")"; other braces are skipped
			if ($text eq '(' && $kind eq 'sign') {
				my $close = closing(\@tokens, $i);
				my $next = $tokens[$close + 1];

				if ($next && $next->[1] eq '{' && $i) {
					$function = $tokens[$i - 1][1];
					$body_end = closing(\@tokens, $close + 1);
					$i = $close + 1;
					$statement = 1;
					next;
				}
				$i = $close;
			} elsif ($text eq '{' && $kind eq 'sign') {
				$i = closing(\@tokens, $i);
			}
			next;
		}
		my $begins = $statement;

		$statement = !$tokens[$i][4] && $kind eq 'sign' && $text =~ /^[;{}]$/ || $text eq 'else' ||
			$text eq 'do';
		# tables are data
		if ($kind eq 'name' && $text eq 'static' && $begins) {
			$i++ while $tokens[$i][1] !~ /^[;{]$/;
			$i = closing(\@tokens, $i) if $tokens[$i][1] eq '{';
			next;
		}
		if ($kind eq 'name' && $text =~ /^(?:if|while|for|switch)$/) {
			my $close = closing(\@tokens, $i + 1);

			$tokens[$close][3] = 1; # a statement begins behind it
			# a ";" in a for end no statement
			$tokens[$_][4] = 1 for $i .. $close;
			if ($text =~ /^(?:if|while)$/) {
				my $from = $tokens[$i + 1][2] + 1;
				my $length = $tokens[$close][2] - $from;

				next if is_negated_alone(@tokens[$i + 2 .. $close - 1]);
				$add->($from, $length, '!(' . substr($source, $from, $length) . ')');
			}
			next;
		}
		$statement = 1 if $tokens[$i][3];
		if ($begins && $kind eq 'name' && $text eq 'return') {
			my $end = $i + 1;

			$end++ while $tokens[$end][1] ne ';';
			my $from = $tokens[$i + 1][2];
			my $length = $tokens[$end][2] - $from;
			my $value = substr($source, $from, $length);

			if ($end == $i + 1) {
				$add->($at, $length + 6, '');
			} elsif ($value =~ /^(?:0|NULL|false)$/) {
				$add->($from, $length, '1') if $value eq '0';
			} else {
				$add->($from, $length, '0');
			}
			next;
		}
		if ($begins && $kind eq 'name' && $text =~ /^(?:break|continue)$/) {
			$add->($at, length $text, '');
			next;
		}
		if ($begins && ($kind eq 'name' && !$KEYWORD{$text} && !$TYPE{$text} && $text !~ /_t$/ ||
				$kind eq 'sign' && $text =~ /^(?:\*|\+\+|--)$/)) {
			my $end = $i + 1;
			my $next = $tokens[$end];

			# no declaration, no label, no macro that is a loop
			if (!($kind eq 'name' && ($next->[0] eq 'name' || $next->[1] =~ /^[*:]$/))) {
				$end = $tokens[$end][1] =~ /^[(\[{]$/ ? closing(\@tokens, $end) + 1 : $end + 1
					while $tokens[$end][1] !~ /^[;{]$/;
				$add->($at, $tokens[$end][2] - $at, '') if $tokens[$end][1] eq ';';
			}
		}
		if ($kind eq 'number') {
			$add->($at, length $text, number_after($text));
		} elsif ($kind eq 'sign' && $text eq '!') {
			$add->($at, 1, '');
		} elsif ($SWAPPED{$text} && $kind ne 'string') {
			$add->($at, length $text, $SWAPPED{$text});
		} elsif ($kind eq 'sign' && $SWAPPED_BINARY{$text} && is_operand_end($tokens[$i - 1]) &&
			 !is_after_cast(\@tokens, $i)) {
			$add->($at, 1, $SWAPPED_BINARY{$text});
		}
	}
	return @mutants;
}

1;
