/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * ibfabric - checks and shows an InfiniBand fabric. ibfabric(8) has the commands, the options,
 * the findings and the schema of JSON.
 *
 * Each command is in the file of its name or in tables.c.
 */

#include "../program.h"
#include "ibfabric.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

#define INTERVAL_MS 5000 /* of check */

struct settings settings;

/* --- the commands and their options ----------------------------------------------- */

enum {
	CHECK = 1,
	LINKS = 2,
	NODES = 4,
	COUNTERS = 8,
	MAP = 16,
	DIFF = 32,
	STORE = 64,
	RESET = 128,
	ALL = 255,
	TABLES = CHECK | LINKS | NODES | COUNTERS | DIFF | RESET
};

static const struct command {
	const char *name, *arguments, *summary;
	unsigned bit;
	int (*run)(void);
} commands[] = {
	{"check", "[SELECTION ...]", "finds what is wrong, the worst first", CHECK, run_check},
	{"links", "[SELECTION ...]", "a line for each cable", LINKS, run_links},
	{"nodes", "[SELECTION ...]", "a line for each node", NODES, run_nodes},
	{"counters", "[SELECTION ...]", "counters of ports, or their rates", COUNTERS,
	 run_counters},
	{"map", "[SELECTION ...]", "a drawing for Graphviz", MAP, run_map},
	{"diff", "BEFORE [AFTER]", "what has changed since a stored fabric", DIFF, run_diff},
	{"store", "[FILE]", "stores the fabric for --expect and diff", STORE, run_store},
	{"reset", "SELECTION ...", "clears counters of ports", RESET, run_reset},
};
#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

enum {
	OPTION_JSON = 256,
	OPTION_CSV,
	OPTION_COLUMNS,
	OPTION_NAMES,
	OPTION_SWITCHES,
	OPTION_HOSTS,
	OPTION_THRESHOLDS,
	OPTION_INTERVAL,
	OPTION_EXPECT,
	OPTION_FEC,
	OPTION_TOP,
	OPTION_ALL,
	OPTION_SVG,
	OPTION_YES,
	OPTION_TIME_LIMIT,
	OPTION_M_KEY_FILE,
	OPTION_MAX_RATE,
	OPTION_HELP,
	OPTION_VERSION
};

static const struct {
	const char *name, *argument, *help;
	int value;
	unsigned commands;
} option_table[] = {
	{"interval", "SECONDS", "two readings, this time apart; check: 5, 0 is one reading",
	 OPTION_INTERVAL, CHECK | COUNTERS},
	{"expect", "FILE", "the fabric that store has stored; differences are findings",
	 OPTION_EXPECT, CHECK},
	{"thresholds", "FILE", "COUNTER=NUMBER lines, as for ibqueryerrors", OPTION_THRESHOLDS,
	 CHECK | MAP},
	{"fec", NULL, "also looks at blocks that error correction could not correct",
	 OPTION_FEC, CHECK},
	{"top", "N COUNTER", "the N ports with the highest values", OPTION_TOP, COUNTERS},
	{"all", NULL, "links: also ports without a link; counters, reset: all of them",
	 OPTION_ALL, LINKS | COUNTERS | RESET},
	{"svg", NULL, "prints SVG, by Graphviz", OPTION_SVG, MAP},
	{"yes", NULL, "does not ask", OPTION_YES, RESET},
	{"switches", NULL, "only switches", OPTION_SWITCHES, ALL & ~STORE},
	{"hosts", NULL, "only nodes that are no switches", OPTION_HOSTS, ALL & ~STORE},
	{"json", NULL, "prints one JSON document", OPTION_JSON, TABLES},
	{"csv", NULL, "prints CSV with a line of names", OPTION_CSV, TABLES},
	{"columns", "LIST", "these columns, separated by commas", OPTION_COLUMNS,
	 LINKS | NODES | COUNTERS},
	{"node-name-map", "FILE", "names by GUID, as for infiniband-diags", OPTION_NAMES, ALL},
	{"time-limit", "SECONDS", "ends after this time, with what is known", OPTION_TIME_LIMIT,
	 ALL},
	{"m-key-file", "FILE", "the M_Key of the fabric, in hexadecimal", OPTION_M_KEY_FILE,
	 ALL},
	{"max-rate", "N", "sends N requests a second at most", OPTION_MAX_RATE, ALL},
	{"help", NULL, "prints this text", OPTION_HELP, ALL},
	{"version", NULL, "prints the version", OPTION_VERSION, ALL},
};
#define OPTION_COUNT (sizeof(option_table) / sizeof(option_table[0]))

void die(const char *format, ...)
{
	va_list args;

	end_progress();
	fputs("ibfabric: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(EXIT_FAILED);
}

void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count ? count : 1, size);

	if (!memory)
		die("out of memory");
	return memory;
}

/* --- help --------------------------------------------------------------------------- */

static _Noreturn void show_commands(void)
{
	puts("usage: ibfabric COMMAND [OPTION ...] [SELECTION ...]\n\ncommands:");
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		printf("  %-9s %s\n", commands[i].name, commands[i].summary);
	puts("\nibfabric COMMAND --help has the options of a command; ibfabric(8) tells more.\n"
	     "Exit status: 0 all is well, 1 something was found, 2 not all could be read.");
	exit(end_output(0));
}

static _Noreturn void show_command(const struct command *command)
{
	printf("usage: ibfabric %s [OPTION ...] %s\n\n%s: %s\n\noptions:\n", command->name,
	       command->arguments, command->name, command->summary);
	puts("  -C DEVICE                the local device\n"
	     "  -P PORT                  the port of the local device");
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (option_table[i].commands & command->bit)
			printf("  --%-14s %-7s %s\n", option_table[i].name,
			       option_table[i].argument ? option_table[i].argument : "",
			       option_table[i].help);
	if (command->bit & ~(unsigned)STORE)
		puts("\nA selection is a name, a pattern of names, a GUID, or one of these "
		     "with\n"
		     "/PORT: leaf-1, 'node*', 0x0002c90300000010, leaf-1/3");
	exit(end_output(0));
}

/* --- the command line ------------------------------------------------------------------ */

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	die("no command %s; ibfabric --help has the commands", name);
}

static int get_number(const char *option, const char *text, int most)
{
	int number = read_number(text, 1, most);

	if (number < 0)
		die("%s: %s is not a number from 1 to %d", option, text, most);
	return number;
}

static unsigned get_time(const char *option, const char *text)
{
	unsigned ms = read_ms(text);

	if (!ms)
		die("%s: %s is not a time in seconds", option, text);
	return ms;
}

static void read_m_key_file(const char *path)
{
	FILE *file = fopen(path, "re");

	if (!file)
		die("%s: %s", path, strerror(errno));
	if (fscanf(file, "%" SCNx64, &settings.m_key) != 1)
		die("%s: no M_Key in hexadecimal", path);
	fclose(file);
}

/* --top N COUNTER has two arguments. */
static void read_top(int argc, char **argv)
{
	settings.top = (unsigned)get_number("--top", optarg, INT_MAX);
	if (optind == argc)
		die("--top: give a counter, for example --top 20 xmit_wait");
	settings.top_counter = argv[optind++];
}

static void read_option(const struct command *command, int option, int argc, char **argv)
{
	switch (option) {
	case 'C':
		settings.device = optarg;
		break;
	case 'P':
		settings.device_port = get_number("-P", optarg, UINT8_MAX);
		break;
	case OPTION_JSON:
		settings.form = FORM_JSON;
		break;
	case OPTION_CSV:
		settings.form = FORM_CSV;
		break;
	case OPTION_COLUMNS:
		settings.columns = optarg;
		break;
	case OPTION_NAMES:
		load_names(optarg);
		break;
	case OPTION_SWITCHES:
		settings.only_switches = true;
		break;
	case OPTION_HOSTS:
		settings.only_hosts = true;
		break;
	case OPTION_THRESHOLDS:
		load_thresholds(optarg);
		break;
	case OPTION_INTERVAL:
		settings.interval_ms = command->bit == CHECK && strcmp(optarg, "0") == 0
					       ? 0
					       : get_time("--interval", optarg);
		break;
	case OPTION_EXPECT:
		settings.expect = optarg;
		break;
	case OPTION_FEC:
		settings.fec = true;
		break;
	case OPTION_TOP:
		read_top(argc, argv);
		break;
	case OPTION_ALL:
		settings.all = true;
		break;
	case OPTION_SVG:
		settings.svg = true;
		break;
	case OPTION_YES:
		settings.yes = true;
		break;
	case OPTION_TIME_LIMIT:
		settings.time_limit_ms = get_time("--time-limit", optarg);
		break;
	case OPTION_M_KEY_FILE:
		read_m_key_file(optarg);
		break;
	case OPTION_MAX_RATE:
		settings.max_rate = (unsigned)get_number("--max-rate", optarg, INT_MAX);
		break;
	case OPTION_HELP:
		show_command(command);
	case OPTION_VERSION:
		puts("ibfabric " IBFABRIC_VERSION);
		exit(end_output(0));
	default:
		exit(EXIT_FAILED); /* getopt_long() has printed why */
	}
}

static void read_options(const struct command *command, int argc, char **argv)
{
	struct option options[OPTION_COUNT + 1] = {0};
	bool has_names = false;
	int option;

	for (size_t i = 0; i < OPTION_COUNT; i++)
		options[i] = (struct option){option_table[i].name,
					     option_table[i].argument ? required_argument
								      : no_argument,
					     NULL, option_table[i].value};
	while ((option = getopt_long(argc, argv, "C:P:", options, NULL)) != -1) {
		for (size_t i = 0; i < OPTION_COUNT; i++)
			if (option_table[i].value == option &&
			    !(option_table[i].commands & command->bit))
				die("%s has no option --%s", command->name,
				    option_table[i].name);
		has_names |= option == OPTION_NAMES;
		read_option(command, option, argc, argv);
	}
	if (settings.only_switches && settings.only_hosts)
		die("--switches and --hosts exclude each other");
	if (!has_names)
		load_names(NULL);
	settings.arguments = argv + optind;
}

static void stop(int number)
{
	(void)number;
	mad_cancel_set(&cancelled);
}

int main(int argc, char **argv)
{
	/* a second signal ends the program at once */
	struct sigaction action = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND};
	const struct command *command;

	if (argc < 2) {
		fputs("usage: ibfabric COMMAND [OPTION ...]; ibfabric --help has the "
		      "commands\n",
		      stderr);
		return EXIT_FAILED;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)
		show_commands();
	if (strcmp(argv[1], "--version") == 0) {
		puts("ibfabric " IBFABRIC_VERSION);
		return end_output(0);
	}
	command = find_command(argv[1]);
	settings.command = command->name;
	settings.interval_ms = command->bit == CHECK ? INTERVAL_MS : 0;
	argv[1] = argv[0];
	read_options(command, argc - 1, argv + 1);
	left_ms(); /* the time begins */
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	return end_output(command->run());
}
