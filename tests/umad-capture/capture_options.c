/* SPDX-License-Identifier: BSD-2-Clause */

#include "capture_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slowest.h"

static const char usage[] =
	"usage: umad-capture [OPTIONS] -- PROGRAM [ARGUMENT ...]\n"
	"\n"
	"Runs a program that uses libibumad, and writes the MADs that the program and its\n"
	"children send and receive: to a file for Wireshark, as lines of text, or both.\n"
	"\n"
	"  -w FILE       writes a capture (pcap) of InfiniBand frames; - is standard output\n"
	"  --summary     prints a line for each MAD on standard error\n"
	"  --slowest N   prints the lines of the N slowest requests when the program has\n"
	"                ended\n"
	"  -f FILTER     writes only MADs for which the expression is true, such as\n"
	"                \"class SubnAdm and (error or attribute = NodeInfo)\"; an expression "
	"has\n"
	"                words: sent received request response smp gmp directed timeout error\n"
	"                rmpp grh\n"
	"                fields: class method attribute modifier status lid tid length "
	"process,\n"
	"                with = != < <= > >= and a number or name\n"
	"                time, of a response or timeout since its request, with a unit:\n"
	"                time > 1ms\n"
	"                and, or, not, brackets\n"
	"  -C MEGABYTES  starts a new file before one exceeds this many million bytes\n"
	"  -W COUNT      keeps this many files, then overwrites the oldest\n"
	"  --version     prints the version\n"
	"  --help        prints this text\n"
	"\n"
	"The exit status is that of the program, or 125 if umad-capture failed.\n";

static void __attribute__((noreturn)) show_help(void)
{
	fputs("(umad-capture --help prints the options)\n", stderr);
	exit(2);
}

static void __attribute__((noreturn)) wrong(const char *what)
{
	fprintf(stderr, "umad-capture: %s\n", what);
	show_help();
}

static unsigned int read_count(const char *text, unsigned long most, const char *what)
{
	unsigned long number;
	char *end;

	errno = 0;
	number = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || !number || number > most)
		wrong(what);
	return (unsigned int)number;
}

/* On an error, marks its position in the expression. */
static struct filter *read_filter(const char *text)
{
	struct filter_error error = {0};
	struct filter *filter = filter_read(text, &error);

	if (filter)
		return filter;
	fprintf(stderr, "umad-capture: -f: %s\n  %s\n  %*s\n", error.text, text,
		(int)error.at + 1, "^");
	exit(2);
}

enum {
	SUMMARY = 256,
	SLOWEST,
	VERSION
};

static const struct option long_options[] = {
	{"summary", no_argument, NULL, SUMMARY},
	{"slowest", required_argument, NULL, SLOWEST},
	{"version", no_argument, NULL, VERSION},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* What --help and --version print. */
static void __attribute__((noreturn)) show(const char *text)
{
	if (fputs(text, stdout) >= 0 && !fflush(stdout))
		exit(0);
	fprintf(stderr, "umad-capture: standard output: %s\n", strerror(errno));
	exit(125);
}

static void take_option(struct capture_options *options, int option)
{
	switch (option) {
	case 'w':
		options->file = optarg;
		break;
	case 'f':
		filter_free(options->filter);
		options->filter = read_filter(optarg);
		break;
	case 'C':
		options->most = 1000000ULL *
				read_count(optarg, 1000000, "-C needs a number of megabytes");
		break;
	case 'W':
		options->files = read_count(optarg, 1000000, "-W needs a number of files");
		break;
	case SUMMARY:
		options->summary = true;
		break;
	case SLOWEST:
		options->slowest = read_count(optarg, SLOWEST_MOST,
					      "--slowest needs a number from 1 to 1000");
		break;
	case VERSION:
		show("umad-capture " CAPTURE_VERSION "\n");
	case 'h':
		show(usage);
	default: /* getopt_long() has reported it */
		show_help();
	}
}

void read_capture_options(int argc, char **argv, struct capture_options *options)
{
	int option;

	*options = (struct capture_options){0};
	/* "+": what follows the first argument belongs to the program */
	while ((option = getopt_long(argc, argv, "+w:f:C:W:h", long_options, NULL)) != -1)
		take_option(options, option);
	if (!options->file && !options->summary && !options->slowest)
		wrong("nothing to write: give -w FILE, --summary or --slowest");
	if (options->files && !options->most)
		wrong("-W needs -C");
	if (options->most && (!options->file || !strcmp(options->file, "-")))
		wrong("-C needs -w FILE");
	if (optind >= argc)
		wrong("no program given");
	options->program = argv + optind;
}
