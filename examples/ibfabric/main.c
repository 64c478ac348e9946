/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * ibfabric - checks and shows an InfiniBand fabric. ibfabric(8) has the commands, the options,
 * the findings and the schema of JSON.
 */

#include "ibfabric.h"

#include "../program.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>

#define CHECK_INTERVAL_MS 5000

struct settings settings;

static const struct command {
	const char *name, *arguments, *summary;
	int (*run)(void);
} commands[] = {
	{"check", "[SELECTION ...]", "finds what is wrong, worst first", run_check},
	{"links", "[SELECTION ...]", "prints one line per cable", run_links},
	{"nodes", "[SELECTION ...]", "prints one line per node", run_nodes},
	{"counters", "[SELECTION ...]", "prints one line per port: counters or rates",
	 run_counters},
	{"map", "[SELECTION ...]", "prints a graph for Graphviz", run_map},
	{"diff", "BEFORE [AFTER]", "prints what has changed since a stored fabric", run_diff},
	{"store", "[FILE]", "stores the fabric, for --expect and diff", run_store},
	{"reset", "[SELECTION ...]", "clears the counters of the selected ports", run_reset},
};
#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

/* --- errors ------------------------------------------------------------------------- */

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

void *extend(void *array, size_t used, size_t size)
{
	/* doubled when it is full: at 0, 1, 2, 4, ... */
	if (used & (used - 1))
		return array;
	array = reallocarray(array, used ? 2 * used : 1, size);
	if (!array)
		die("out of memory");
	return array;
}

FILE *open_text(char **memory, size_t *size)
{
	FILE *text = open_memstream(memory, size);

	if (!text)
		die("out of memory");
	return text;
}

void close_text(FILE *text)
{
	if (fclose(text))
		die("out of memory");
}

FILE *open_file(const char *path)
{
	FILE *file = fopen(path, "re");

	if (!file)
		die("%s: %s", path, strerror(errno));
	return file;
}

bool is_command(const char *name)
{
	return strcmp(settings.command, name) == 0;
}

/* --- options ------------------------------------------------------------------------ */

static bool wants_help, wants_version;
static const char *names_file, *thresholds_file, *m_key_file;

#define TABLES     "check links nodes counters diff reset"
#define SELECTIONS TABLES " map"

/* An option of one letter begins with one "-". */
static const struct {
	const char *name, *argument, *help;
	const char *commands; /* NULL: all */
	/* one of these is set: by the option, or by its argument */
	bool *flag;
	const char **text;
	unsigned *number, *ms;
} options[] = {
	{"C", "DEVICE", "the local device", NULL, .text = &settings.device},
	{"P", "PORT", "the port of this device", NULL, .number = &settings.device_port},
	{"interval", "SECONDS", "the time between two readings; 0: only one (check: 5)",
	 "check counters", .ms = &settings.interval_ms},
	{"expect", "FILE", "a file written by store; reports differences from it", "check",
	 .text = &settings.expect},
	{"thresholds", "FILE", "COUNTER=NUMBER lines, in the format of ibqueryerrors",
	 "check map", .text = &thresholds_file},
	{"top", "N COUNTER", "only the N ports with the highest values", "counters",
	 .number = &settings.top},
	{"svg", NULL, "prints SVG (needs Graphviz)", "map", .flag = &settings.svg},
	{"yes", NULL, "does not ask for confirmation", "reset", .flag = &settings.yes},
	{"switches", NULL, "only switches", SELECTIONS, .flag = &settings.only_switches},
	{"hosts", NULL, "only nodes that are not switches", SELECTIONS,
	 .flag = &settings.only_hosts},
	{"json", NULL, "prints one JSON document", TABLES, .flag = &settings.json},
	{"csv", NULL, "prints CSV with a header line", TABLES, .flag = &settings.csv},
	{"columns", "LIST", "prints these columns, separated by commas", "links nodes counters",
	 .text = &settings.columns},
	{"node-name-map", "FILE", "node names by GUID, in the format of infiniband-diags", NULL,
	 .text = &names_file},
	{"time-limit", "SECONDS", "stops after this time, with the results so far", NULL,
	 .ms = &settings.time_limit_ms},
	{"m-key-file", "FILE", "a file with the M_Key of the fabric, in hexadecimal", NULL,
	 .text = &m_key_file},
	{"max-rate", "N", "sends at most N requests per second", NULL,
	 .number = &settings.max_rate},
	{"help", NULL, "prints this text", NULL, .flag = &wants_help},
	{"version", NULL, "prints the version", NULL, .flag = &wants_version},
};
#define OPTION_COUNT (sizeof(options) / sizeof(options[0]))

static bool has_option(const char *command, size_t option)
{
	return !options[option].commands || strstr(options[option].commands, command);
}

static _Noreturn void show_version(void)
{
	puts("ibfabric " IBFABRIC_VERSION);
	exit(end_output(0));
}

static _Noreturn void show_command(const struct command *command)
{
	printf("usage: ibfabric %s [OPTION ...] %s\n\n%s: %s\n\noptions:\n", command->name,
	       command->arguments, command->name, command->summary);
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (has_option(command->name, i))
			printf("  %s%-*s %-9s %s\n", options[i].name[1] ? "--" : "-",
			       options[i].name[1] ? 13 : 14, options[i].name,
			       options[i].argument ? options[i].argument : "", options[i].help);
	if (strstr(command->arguments, "SELECTION"))
		puts("\nA selection is a node name, a shell pattern for names, or a GUID,\n"
		     "optionally followed by /PORT: leaf-1, 'node*', 0x0002c90300000010, "
		     "leaf-1/3");
	exit(end_output(0));
}

static _Noreturn void show_commands(void)
{
	puts("usage: ibfabric COMMAND [OPTION ...] [ARGUMENT ...]\n\ncommands:");
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		printf("  %-9s %s\n", commands[i].name, commands[i].summary);
	puts("\nibfabric COMMAND --help lists the options of a command; see also ibfabric(8).\n"
	     "Exit status: 0 all is well, 1 check or diff found something, 2 something could\n"
	     "not be read or written.");
	exit(end_output(0));
}

/* --- the command line ---------------------------------------------------------------- */

static void read_option(size_t i)
{
	const char *argument = optarg ? optarg : "";
	const char *dashes = options[i].name[1] ? "--" : "-";
	int number = read_number(argument, 1, INT_MAX);

	if (!has_option(settings.command, i))
		die("%s has no option --%s", settings.command, options[i].name);
	if (options[i].number && number < 0)
		die("%s%s: %s is not a positive integer", dashes, options[i].name, argument);
	if (options[i].ms && strcmp(argument, "0") != 0 && !read_ms(argument))
		die("%s%s: %s is not a time in seconds (0.001 to 1000000)", dashes,
		    options[i].name, argument);
	if (options[i].flag)
		*options[i].flag = true;
	if (options[i].text)
		*options[i].text = argument;
	if (options[i].number)
		*options[i].number = (unsigned)number;
	if (options[i].ms)
		*options[i].ms = read_ms(argument);
}

static void read_m_key_file(void)
{
	FILE *file = open_file(m_key_file);

	if (fscanf(file, "%" SCNx64, &settings.m_key) != 1)
		die("%s: the file contains no M_Key in hexadecimal", m_key_file);
	fclose(file);
}

static void read_options(const struct command *command, int count, char **words)
{
	struct option longs[OPTION_COUNT + 1] = {0};
	int value;

	/* the value of an option is its letter, or follows from its row */
	for (size_t i = 0; i < OPTION_COUNT; i++)
		longs[i] = (struct option){.name = options[i].name,
					   .has_arg = options[i].argument != NULL,
					   .val = UCHAR_MAX + 1 + (int)i};
	while ((value = getopt_long(count, words, "C:P:", longs, NULL)) != -1) {
		if (value == '?')
			exit(EXIT_FAILED); /* getopt_long() has printed why */
		read_option(value == 'C'   ? 0
			    : value == 'P' ? 1
					   : (size_t)value - UCHAR_MAX - 1);
		/* --top N COUNTER has two arguments */
		if (settings.top && !settings.top_counter &&
		    !(settings.top_counter = words[optind++]))
			die("--top needs a counter, for example --top 20 xmit_wait");
	}
	if (wants_help)
		show_command(command);
	if (wants_version)
		show_version();
	if (settings.only_switches && settings.only_hosts)
		die("--switches and --hosts exclude each other");
	if (settings.json && settings.csv)
		die("--json and --csv exclude each other");
	load_names(names_file);
	if (thresholds_file)
		load_thresholds(thresholds_file);
	if (m_key_file)
		read_m_key_file();
	settings.arguments = words + optind;
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
	const struct command *command = commands;
	const char *name = argc > 1 ? argv[1] : "";

	if (!*name)
		die("no command given; see ibfabric --help");
	if (strcmp(name, "--help") == 0 || strcmp(name, "help") == 0)
		show_commands();
	if (strcmp(name, "--version") == 0)
		show_version();
	while (strcmp(command->name, name) != 0)
		if (++command == commands + COMMAND_COUNT)
			die("unknown command %s; see ibfabric --help", name);
	settings.command = command->name;
	settings.interval_ms = is_command("check") ? CHECK_INTERVAL_MS : 0;
	argv[1] = argv[0]; /* for the messages of getopt_long() */
	read_options(command, argc - 1, argv + 1);
	left_ms(); /* the time begins */
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	return end_output(command->run());
}
