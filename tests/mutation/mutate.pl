# SPDX-License-Identifier: BSD-2-Clause

# mutate.pl SOURCE-FOLDER BUILD-FOLDER WORK-FOLDER [OPTION ...]; tests/mutation/run has the options.

use strict;
use warnings;
use File::Basename qw(dirname);
use File::Path qw(make_path);
use POSIX ();
use Time::HiRes qw(time);

require(dirname(__FILE__) . '/mutants.pl');

my ($source, $build, $work, @options) = @ARGV;
my %option = (seed => 1, count => 0, jobs => 2, file => '.', log => '', again => '');
# The part of survivors allowed, of all mutants that compile to other code: some behave like the source.
my $MOST_SURVIVORS = 0.2;

while (@options) {
	my $name = shift @options;

	$name =~ s/^--// && exists $option{$name} or die "unknown option $name\n";
	$option{$name} = shift @options;
}

sub read_file {
	my ($name) = @_;

	open my $file, '<', $name or die "$name: $!\n";
	local $/;
	return scalar <$file>;
}

sub write_file {
	my ($name, $text) = @_;

	open my $file, '>', $name or die "$name: $!\n";
	print $file $text;
	close $file or die "$name: $!\n";
}

# --- sources and programs --------------------------------------------------------------------------------------

# Each file with the programs that test it.
sub read_subjects {
	my %subjects;

	for (split /\n/, read_file("$source/tests/mutation/subjects")) {
		next if /^\s*(?:#|$)/;
		my ($file, @programs) = split;

		push @{$subjects{$file}}, @programs;
	}
	return \%subjects;
}

my $subjects = read_subjects();
my %source_text = map { $_ => read_file("$source/$_") } keys %$subjects;
my @mutants = map { Mutants::of_text($_, $source_text{$_}) } grep { /$option{file}/ } sort keys %$subjects;
if ($option{again}) {
	my %survived = map { (split /\t/)[1] eq 'survived' ? ((split /\t/)[2] => 1) : () }
		split /\n/, read_file($option{again});

	@mutants = grep { $survived{$_->{key}} } @mutants;
}

# The same choice for the same seed. Perl uses its own drand48() on every system.
srand($option{seed});
for (my $i = @mutants; --$i > 0;) {
	my $j = int(rand($i + 1));

	@mutants[$i, $j] = @mutants[$j, $i];
}

# --- build and run ---------------------------------------------------------------------------------------------

my %commands;

# The commands of ninja that make a program.
sub commands_of {
	my ($program) = @_;

	my $target = $program =~ s/=.*//r;

	$commands{$program} //= [split /\n/, `cd '$build' && ninja -t commands tests/$target`];
	die "ninja knows no program $program\n" if !@{$commands{$program}};
	return $commands{$program};
}

my %compile;

# All plain programs share an object of a file; all programs with sanitizers share another.
sub variant_of {
	return $_[0] =~ /asan/ ? 'asan' : 'unit';
}

# The command that compiles a file for a program, without the names of source and object.
sub compile_command {
	my ($file, $program) = @_;
	my $variant = variant_of($program);

	return $compile{"$variant $file"} if $compile{"$variant $file"};
	my ($command) = grep { m{ -c \Q$source\E/\Q$file\E$} } @{commands_of($program)};

	die "$program does not compile $file\n" if !$command;
	$command =~ s/ -(?:MT|MF|o|c) \S+//g;
	$command =~ s/ -(?:MD|g|Werror|O\d)\b//g;
	return $compile{"$variant $file"} = "$command -O1 -w -I" . dirname("$source/$file");
}

# The object has the name of the source, so the name is always the same: the same code gives the same object.
sub compile {
	my ($file, $program, $folder) = @_;

	unlink "$folder/mutant.o";
	return !system("cd $folder && " . compile_command($file, $program) .
		' -o mutant.o -c source.c >compiler.log 2>&1');
}

# Links a program with an object in place of a file's own.
sub link_program {
	my ($file, $program, $folder) = @_;
	my $command = commands_of($program)->[-1];

	if ($command !~ s{ \S*/\Q$file\E\.o(?= )}{ $folder/mutant.o}) {
		$command =~ s{ -o }{ $folder/mutant.o -o } or die;
	}
	$command =~ s{ -o \S+}{ -o $folder/program};
	$command =~ s{ -g }{ };
	# a program with the whole library has the file twice: the linker takes the first one
	$command =~ s{ -o }{ -Wl,--allow-multiple-definition -o };
	return !system("cd '$build' && { $command; } >$folder/linker.log 2>&1");
}

# Runs a program. Returns "passed", "failed" or "timeout".
sub run_program {
	my ($folder, $program, $seconds) = @_;
	my $argument = $program =~ /=(.*)/ ? "$source/$1" : '';
	# a mutant may allocate and write without end; the sanitizer reserves much memory
	my $limit = variant_of($program) eq 'unit' ? 'ulimit -v 4000000; ' : '';
	my $status = system("cd $folder && ${limit}ulimit -c 0 && ulimit -f 200000 && ASAN_OPTIONS=hard_rss_limit_mb=4000 " .
		"timeout -s KILL $seconds ./program $argument >output 2>&1 </dev/null") >> 8;

	return $status == 0 ? 'passed' : $status == 137 ? 'timeout' : 'failed';
}

my %seconds;   # how long each program takes
my %object_of; # the object of each unchanged file

# Links and runs a program with the object that was compiled.
sub run_with {
	my ($file, $program, $folder, $seconds) = @_;

	link_program($file, $program, $folder) or
		die "$program cannot be linked: " . read_file("$folder/linker.log");
	return run_program($folder, $program, $seconds);
}

# The first programs with sanitizers, which detect use after free, invalid frees and leaks.
sub with_sanitizers {
	return map { s/^unit/asan/r } grep { /^unit/ } @_[0 .. ($#_ < 1 ? $#_ : 1)];
}

# Every plain program must pass with the unchanged file.
sub measure {
	my ($folder) = @_;
	my %files = map { $_->{file} => 1 } @mutants;

	for my $file (sort keys %files) {
		my @programs = @{$subjects->{$file}};

		write_file("$folder/source.c", $source_text{$file});
		compile($file, $programs[0], $folder) or die "$file does not compile\n";
		$object_of{$file} = read_file("$folder/mutant.o");
		for my $program (@programs) {
			next if $seconds{$program};
			compile($file, $program, $folder) if variant_of($program) ne variant_of($programs[0]);
			my $begin = time;
			my $verdict = run_with($file, $program, $folder, 300);

			$seconds{$program} = time - $begin;
			die "$program without a mutant: $verdict\n" . read_file("$folder/output") if $verdict ne 'passed';
		}
	}
}

sub try_mutant {
	my ($mutant, $folder) = @_;
	my $file = $mutant->{file};
	my @programs = @{$subjects->{$file}};
	my $text = $source_text{$file};

	substr($text, $mutant->{offset}, $mutant->{length}) = $mutant->{text};
	write_file("$folder/source.c", $text);
	return 'invalid' if !compile($file, $programs[0], $folder);
	return 'same' if read_file("$folder/mutant.o") eq $object_of{$file};
	my $compiled = $programs[0];

	for my $program (@programs, with_sanitizers(@programs)) {
		compile($file, $compiled = $program, $folder)
			if variant_of($program) ne variant_of($compiled);
		my $usual = $seconds{$program} // 5 * $seconds{$program =~ s/^asan/unit/r};
		my $verdict = run_with($file, $program, $folder, 5 + 5 * $usual);

		return "killed $verdict $program" if $verdict ne 'passed';
	}
	return 'survived';
}

# --- workers ---------------------------------------------------------------------------------------------------

my $begin = time;
my %results;

make_path("$work/$_") for 1 .. $option{jobs};
measure("$work/1");
printf "%d mutants in %d files; the programs take %.0f s\n", scalar @mutants, scalar(keys %object_of), time - $begin;
$| = 1;

# Each worker takes every JOBS-th mutant, and writes its verdicts to the pipe.
pipe(my $in, my $out) or die;
for my $n (0 .. $option{jobs} - 1) {
	next if fork // die;
	my $left = $option{count} ? int(($option{count} + $option{jobs} - 1 - $n) / $option{jobs}) : @mutants;

	for (my $i = $n; $i < @mutants && $left > 0; $i += $option{jobs}) {
		my $verdict = try_mutant($mutants[$i], "$work/" . ($n + 1));

		$left-- if $verdict =~ /^(?:killed|survived)/;
		syswrite $out, "$i $verdict\n";
	}
	POSIX::_exit(0);
}
close $out;
open my $log, '>>', $option{log} || '/dev/null' or die "$option{log}: $!\n";
while (<$in>) {
	my ($i, $verdict, $word) = /^(\d+) ((\w+).*)/;
	my $mutant = $mutants[$i];

	$results{$_}{$word}++ for $mutant->{file}, 'total';
	print "$mutant->{file}:$mutant->{line}: survived\n$mutant->{key}\n" if $word eq 'survived';
	print $log "$mutant->{file}:$mutant->{line}\t$verdict\t$mutant->{key}\n";
}
while (wait > 0) {
	die "a worker has failed\n" if $?;
}

printf "%-38s %6s %6s %8s %7s\n", 'file', 'made', 'killed', 'survived', 'no code';
for my $file ((sort grep { $_ ne 'total' } keys %results), 'total') {
	my ($killed, $survived, $same) = map { $results{$file}{$_} // 0 } qw(killed survived same);

	printf "%-38s %6d %6d %8d %7d\n", $file, $killed + $survived, $killed, $survived, $same;
}
printf "seed %d, %.0f s\n", $option{seed}, time - $begin;
my ($killed, $survived) = map { $results{total}{$_} // 0 } qw(killed survived);

exit($survived > $MOST_SURVIVORS * ($killed + $survived) ? 1 : 0);
