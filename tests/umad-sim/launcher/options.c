/* SPDX-License-Identifier: BSD-2-Clause */

/* Reads the command line. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "fault_forms.h"
#include "options.h"

static const char usage[] =
	"usage: umad-sim [OPTIONS] TOPOLOGY -- PROGRAM [ARGUMENT ...]\n"
	"       umad-sim --serve NAME [OPTIONS] TOPOLOGY\n"
	"       umad-sim --join NAME [--at NODE] -- PROGRAM [ARGUMENT ...]\n"
	"       umad-sim --tell NAME RULE\n"
	"       umad-sim --print TOPOLOGY\n"
	"       umad-sim --check [--at NODE] [--fault RULE] [--faults FILE] TOPOLOGY\n"
	"\n"
	"Runs a program on a simulated InfiniBand fabric.\n"
	"\n"
	"TOPOLOGY is a file with the output of ibnetdiscover, a net file of ibsim, or one of\n"
	"  pair                        two hosts and a cable\n"
	"  fat-tree:RADIX,LEVELS[,HOSTS]\n"
	"  dragonfly:GROUPS,ROUTERS,HOSTS\n"
	"  torus:X,Y,Z[,HOSTS]\n"
	"@WIDTHxSPEED at the end of one of these sets the links: pair@4xNDR. The default is "
	"4xHDR.\n"
	"\n"
	"  --at NODE[,NODE]   the node on which the program runs, by name or GUID; several "
	"nodes\n"
	"                     are the devices of one host (default: the first CA)\n"
	"  --bare             no subnet manager: ports are in state Init, without LIDs\n"
	"  --sm NODE          the node of the built-in subnet manager (default: the last CA)\n"
	"  --fault RULE       a rule (below); can be repeated\n"
	"  --faults FILE      a file of rules, one per line\n"
	"  --seed N           the seed of the random faults (default: 1; with rules, random "
	"and printed)\n"
	"  --load PERCENT     traffic on the links, for the counters (default: 0)\n"
	"  --errors N         symbol errors a second on each link (default: 0)\n"
	"  --trace FILE       writes a line for each event of a packet\n"
	"  --capture FILE     writes the packets on the links, for Wireshark (pcapng)\n"
	"  --capture-at NODE/PORT   captures only at this port (default: at all ports)\n"
	"  --stats FILE       writes the packets that each node received, processed and "
	"dropped\n"
	"  --without-namespace  runs the program without hiding this machine's InfiniBand "
	"devices\n"
	"  --kernel           with --serve: the nodes of --at become devices of this kernel "
	"(module sim_hca)\n"
	"  --version          prints the version\n"
	"  --help             prints this text\n"
	"\n"
	"RULE is one of these; append \"on NODE\" or \"on NODE/PORT\" to limit it to a "
	"place:\n";

static const char usage_end[] =
	"\n"
	"A rule for --tell can also be \"status\", \"statistics\" or \"stop\". "
	"See docs/simulator.md.\n";

static void __attribute__((noreturn)) wrong(const char *what)
{
	fprintf(stderr, "umad-sim: %s\n(umad-sim --help prints the options)\n", what);
	exit(2);
}

int finish_output(void)
{
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	fprintf(stderr, "umad-sim: standard output: %s\n", strerror(errno ? errno : EIO));
	return STATUS_FAILED;
}

static double read_number(const char *text, double most, const char *what)
{
	char *end;
	double number = strtod(text, &end);

	if (end == text || *end || !isfinite(number) || number < 0 || number > most)
		wrong(what);
	return number;
}

static uint64_t read_seed(const char *text)
{
	char *end;
	unsigned long long seed;

	errno = 0;
	seed = strtoull(text, &end, 0);
	if (errno || end == text || *end || *text == '-')
		wrong("--seed needs a number");
	return seed;
}

enum {
	SERVE = 256,
	JOIN,
	TELL,
	PRINT,
	CHECK,
	AT,
	BARE,
	SM,
	FAULT,
	FAULTS,
	SEED,
	LOAD,
	ERRORS,
	TRACE,
	CAPTURE,
	CAPTURE_AT,
	STATS,
	WITHOUT_NAMESPACE,
	KERNEL,
	VERSION
};

static const struct option long_options[] = {
	{"serve", required_argument, NULL, SERVE},
	{"join", required_argument, NULL, JOIN},
	{"tell", required_argument, NULL, TELL},
	{"print", no_argument, NULL, PRINT},
	{"check", no_argument, NULL, CHECK},
	{"at", required_argument, NULL, AT},
	{"bare", no_argument, NULL, BARE},
	{"sm", required_argument, NULL, SM},
	{"fault", required_argument, NULL, FAULT},
	{"faults", required_argument, NULL, FAULTS},
	{"seed", required_argument, NULL, SEED},
	{"load", required_argument, NULL, LOAD},
	{"errors", required_argument, NULL, ERRORS},
	{"trace", required_argument, NULL, TRACE},
	{"capture", required_argument, NULL, CAPTURE},
	{"capture-at", required_argument, NULL, CAPTURE_AT},
	{"stats", required_argument, NULL, STATS},
	{"without-namespace", no_argument, NULL, WITHOUT_NAMESPACE},
	{"kernel", no_argument, NULL, KERNEL},
	{"version", no_argument, NULL, VERSION},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static void set_mode(struct options *options, enum mode mode)
{
	if (options->mode != MODE_RUN)
		wrong("--serve, --join, --tell, --print and --check exclude each other");
	options->mode = mode;
	options->name = optarg;
}

static void take_option(struct options *options, int option, unsigned int *faults)
{
	switch (option) {
	case SERVE:
		set_mode(options, MODE_SERVE);
		break;
	case JOIN:
		set_mode(options, MODE_JOIN);
		break;
	case TELL:
		set_mode(options, MODE_TELL);
		break;
	case PRINT:
		set_mode(options, MODE_PRINT);
		break;
	case CHECK:
		set_mode(options, MODE_CHECK);
		break;
	case AT:
		options->at = optarg;
		break;
	case BARE:
		options->server.bare = true;
		break;
	case SM:
		options->server.sm = optarg;
		break;
	case FAULT:
		options->faults[(*faults)++] = optarg;
		break;
	case FAULTS:
		options->faults_file = optarg;
		break;
	case SEED:
		options->server.seed = read_seed(optarg);
		options->random_seed = false;
		break;
	case LOAD:
		options->server.load =
			read_number(optarg, 100, "--load needs a percentage from 0 to 100") /
			100;
		break;
	case ERRORS:
		options->server.errors = read_number(
			optarg, 1e9, "--errors needs a number of errors per second");
		break;
	case TRACE:
		options->server.trace = optarg;
		break;
	case CAPTURE:
		options->server.capture = optarg;
		break;
	case CAPTURE_AT:
		options->server.capture_at = optarg;
		break;
	case STATS:
		options->server.stats = optarg;
		break;
	case WITHOUT_NAMESPACE:
		options->without_namespace = true;
		break;
	case KERNEL:
		options->kernel = true;
		break;
	case VERSION:
		puts("umad-sim " SIM_VERSION);
		exit(finish_output());
	case 'h':
		fputs(usage, stdout);
		fault_print_rules(stdout);
		fputs(usage_end, stdout);
		exit(finish_output());
	default:
		wrong("unknown option");
	}
}

/* The arguments after the options: a topology, a rule, a program. */
static void take_rest(struct options *options, int count, char **rest)
{
	bool runs = options->mode == MODE_RUN || options->mode == MODE_JOIN;

	if (options->mode != MODE_JOIN) {
		if (count < 1)
			wrong(options->mode == MODE_TELL ? "--tell needs a rule"
							 : "no topology given");
		if (options->mode == MODE_TELL)
			options->rule = rest[0];
		else
			options->topology = options->server.topology = rest[0];
		count--;
		rest++;
	}
	if (runs && count > 0 && strcmp(rest[0], "--") == 0) {
		count--;
		rest++;
	}
	if (runs ? count < 1 : count > 0)
		wrong(runs ? "no program given" : "too many arguments");
	options->program = rest;
}

void read_options(int argc, char **argv, struct options *options)
{
	unsigned int faults = 0;
	int option;

	*options = (struct options){.random_seed = true};
	options->faults = calloc((size_t)argc + 1, sizeof(*options->faults));
	if (!options->faults)
		wrong("out of memory");
	/* "+": what follows the first argument belongs to the program */
	while ((option = getopt_long(argc, argv, "+h", long_options, NULL)) != -1)
		take_option(options, option, &faults);
	take_rest(options, argc - optind, argv + optind);
	if (options->without_namespace && options->mode != MODE_RUN &&
	    options->mode != MODE_JOIN)
		wrong("--without-namespace needs a program to run");
	if (options->kernel && options->mode != MODE_SERVE)
		wrong("--kernel needs --serve");
	if (options->at && !options->at[0])
		wrong("--at needs a node");
	if (options->server.bare && options->server.sm)
		wrong("--bare and --sm exclude each other");
	if (options->server.capture_at && !options->server.capture)
		wrong("--capture-at needs --capture");
}
