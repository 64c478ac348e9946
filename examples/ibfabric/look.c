/* SPDX-License-Identifier: BSD-2-Clause */

/* What all commands do before their own work: the fabric, selections, readings of counters. */

#include "ibfabric.h"

#include <infiniband/mad_errors.h>

#include <errno.h>
#include <fnmatch.h>
#include <poll.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#define SLICE_MS 100

struct mad_cancel cancelled;
struct ibmad_port *ibmad_port;
static struct timespec start; /* all 0: not yet */

/* --- time -------------------------------------------------------------------------- */

static unsigned elapsed_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!start.tv_sec && !start.tv_nsec)
		start = now;
	return (unsigned)((now.tv_sec - start.tv_sec) * 1000 +
			  (now.tv_nsec - start.tv_nsec) / 1000000);
}

unsigned left_ms(void)
{
	unsigned elapsed = elapsed_ms();

	if (!settings.time_limit_ms)
		return 0;
	return elapsed < settings.time_limit_ms ? settings.time_limit_ms - elapsed : 1;
}

/* False if a signal or the time limit ended it. */
static bool pause_ms(unsigned ms)
{
	unsigned end = elapsed_ms() + ms, now;

	while (!cancelled.is_set && (now = elapsed_ms()) < end) {
		if (settings.time_limit_ms && now >= settings.time_limit_ms)
			return false;
		poll(NULL, 0, end - now < SLICE_MS ? (int)(end - now) : SLICE_MS);
	}
	return !cancelled.is_set;
}

const char *error_text(int error)
{
	return error == -ETIMEDOUT ? "no response" : strerror(-error);
}

/* --- the progress line -------------------------------------------------------------- */

static bool has_progress;

void show_progress(const char *format, ...)
{
	va_list args;

	if (!isatty(2))
		return;
	has_progress = true;
	fputc('\r', stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("\033[K", stderr);
}

void end_progress(void)
{
	if (has_progress)
		fputs("\r\033[K", stderr);
	has_progress = false;
}

static void show_discovery(const struct mad_fabric_progress *progress, void *arg)
{
	(void)arg;
	show_progress("%zu nodes, %zu links", progress->nodes, progress->links);
}

/* --- the fabric ---------------------------------------------------------------------- */

struct mad_fabric *load(const char *path)
{
	FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	struct mad_fabric *fabric;
	unsigned line = 0;
	int error;

	if (!file)
		die("%s: %s", path, strerror(errno));
	error = mad_fabric_load(file, &fabric, &line);
	if (file != stdin)
		fclose(file);
	if (error == -EBADMSG && line)
		die("%s: line %u is not of a stored fabric", path, line);
	if (error)
		die("%s: %s", path, error == -EBADMSG ? "no node" : strerror(-error));
	return fabric;
}

/* An end of the discovery is one failure, not one of each port that is not known. */
static bool is_early_end(int error)
{
	return error == -ETIME || error == -ECANCELED;
}

static const char *early_end_text(int error)
{
	return error == -ECANCELED ? "a signal" : "the time limit";
}

struct mad_fabric *discover(const struct mad_fabric *previous)
{
	struct mad_fabric_options options = {.read = MAD_FABRIC_READ_DEFAULT |
						     MAD_FABRIC_READ_MLNX_EXT_PORTS,
					     .progress = isatty(2) ? show_discovery : NULL,
					     .previous = previous,
					     .m_key = settings.m_key,
					     .cancel = &cancelled,
					     .time_limit_ms = left_ms(),
					     .partial = true};
	const struct mad_fabric_problem *problem;
	char text[MAD_FABRIC_PROBLEM_TEXT_SIZE];
	struct mad_fabric *fabric;
	int error;

	if (mad_port_open(settings.device, settings.device_port, &ibmad_port))
		die("%s", mad_failure_text(NULL, text, sizeof(text)));
	if (settings.max_rate)
		mad_port_set(ibmad_port, MAD_PORT_RATE, settings.max_rate);
	if (settings.m_key)
		smp_mkey_set(ibmad_port, settings.m_key);
	error = mad_fabric_discover(ibmad_port, &options, &fabric);
	end_progress();
	if (!fabric)
		die("%s", is_early_end(error) ? early_end_text(error)
					      : mad_failure_text(NULL, text, sizeof(text)));
	if (fabric->origin && fabric->origin->info && fabric->origin->state == MAD_PORT_DOWN)
		die("the local port is down: %s", place_of_port(fabric->origin, text));
	if (is_early_end(error))
		record_failure(NULL, NULL, "%s ended the discovery after %zu nodes",
			       early_end_text(error), fabric->node_count);
	else if (error)
		record_failure(NULL, NULL, "the discovery ended after %zu nodes: %s",
			       fabric->node_count, strerror(-error));
	/* check has findings for these, and the differences do not have them */
	for (size_t i = 0; (problem = mad_fabric_get_problem(fabric, i)); i++)
		if ((problem->kind == MAD_FABRIC_PROBLEM_ROUTE_TOO_LONG ||
		     problem->kind == MAD_FABRIC_PROBLEM_TOO_MANY ||
		     strcmp(settings.command, "check") != 0) &&
		    !(error && problem->error == error) &&
		    problem->kind != MAD_FABRIC_PROBLEM_LINK)
			record_failure(NULL, NULL, "%s",
				       mad_fabric_problem_text(problem, text, sizeof(text)));
	return fabric;
}

/* --- selections ---------------------------------------------------------------------- */

/* Whether an argument is the node: its GUID, its name, or a pattern. */
static bool is_name_of(const char *pattern, const struct mad_fabric_node *node)
{
	char name[NAME_SIZE], *end;
	uint64_t guid;

	if (strncmp(pattern, "0x", 2) == 0) {
		guid = strtoull(pattern, &end, 16);
		if (!*end)
			return guid == node->guid;
	}
	return fnmatch(pattern, node_name(node, name), 0) == 0;
}

/* port NULL: the node, or any of its ports. */
static bool matches(const char *argument, const struct mad_fabric_node *node,
		    const struct mad_fabric_port *port)
{
	const char *slash = strrchr(argument, '/');
	char pattern[NAME_SIZE], *end;
	unsigned long number;

	if (is_name_of(argument, node))
		return true;
	if (port && port->guid && strncmp(argument, "0x", 2) == 0 &&
	    node->type != IB_NODE_SWITCH && strtoull(argument, &end, 16) == port->guid && !*end)
		return true;
	if (!slash || !slash[1] || slash[1 + strspn(slash + 1, "0123456789")] ||
	    (size_t)(slash - argument) >= sizeof(pattern))
		return false;
	memcpy(pattern, argument, (size_t)(slash - argument));
	pattern[slash - argument] = 0;
	number = strtoul(slash + 1, NULL, 10);
	return (!port || port->number == number) && number <= node->port_count &&
	       is_name_of(pattern, node);
}

static bool is_selected_kind(const struct mad_fabric_node *node)
{
	return node->type == IB_NODE_SWITCH ? !settings.only_hosts : !settings.only_switches;
}

/* port NULL: the node, or any of its ports. */
static bool is_chosen(const struct mad_fabric_node *node, const struct mad_fabric_port *port)
{
	char *const *argument = settings.arguments;

	if (!is_selected_kind(node))
		return false;
	if (!*argument)
		return true;
	while (*argument && !matches(*argument, node, port))
		argument++;
	return *argument != NULL;
}

bool is_selected(const struct mad_fabric_port *port)
{
	return is_chosen(port->node, port);
}

bool is_node_selected(const struct mad_fabric_node *node)
{
	return is_chosen(node, NULL);
}

bool is_link_selected(const struct mad_fabric_port *port)
{
	return is_selected(port) || (port->peer && is_selected(port->peer));
}

static bool is_in(const struct mad_fabric *fabric, const char *argument)
{
	const struct mad_fabric_port *port = NULL;

	while (fabric && (port = mad_fabric_next_port(fabric, port)))
		if (matches(argument, port->node, port))
			return true;
	return false;
}

void check_selection(const struct mad_fabric *fabric, const struct mad_fabric *before)
{
	for (char *const *argument = settings.arguments; *argument; argument++)
		if (!is_in(fabric, *argument) && !is_in(before, *argument))
			die("no node or port is %s", *argument);
}

bool is_first_end(const struct mad_fabric_port *port)
{
	return !port->peer || port->peer->peer != port || compare_ports(port, port->peer) <= 0;
}

/* --- counters ------------------------------------------------------------------------ */

static bool is_counted(const struct mad_fabric_port *port, void *arg)
{
	(void)arg;
	return is_link_selected(port);
}

static void read_once(struct mad_fabric_counters *counters, uint64_t wanted, bool basic)
{
	struct mad_fabric_counters_options options = {.counters = wanted,
						      .basic = basic,
						      .time_limit_ms = left_ms(),
						      .cancel = &cancelled,
						      .m_key = settings.m_key,
						      .filter = is_counted};
	char text[MAD_ERROR_TEXT_SIZE];
	int error;

	show_progress("reading counters");
	error = mad_fabric_counters_read(ibmad_port, counters, &options);
	end_progress();
	if (is_early_end(error))
		record_failure(NULL, NULL,
			       "%s ended a reading of counters: %zu of %zu ports were read",
			       early_end_text(error), counters->latest->read,
			       counters->latest->wanted);
	else if (error)
		record_failure(NULL, NULL, "counters: %s",
			       mad_failure_text(NULL, text, sizeof(text)));
}

/* Whether a reading left out a port with counters, because no LID leads to it. */
static bool lacks_lid(const struct mad_fabric_port *port)
{
	if (port->gmp_lid || !is_link_selected(port))
		return false;
	return port->node->type == IB_NODE_SWITCH ? port->number || port->node->enhanced_port0
						  : port->state != MAD_PORT_DOWN;
}

static void record_unread(struct mad_fabric_counters *counters)
{
	const struct mad_fabric_counters_port *each = NULL;
	const struct mad_fabric_node *last = NULL;
	unsigned without = 0, of_node = 0;

	while ((each = mad_fabric_counters_next(counters, each))) {
		const struct mad_fabric_port *port = each->port;

		if (!port)
			continue;
		without += !each->is_latest && lacks_lid(port);
		if (!each->is_latest || !each->error || is_early_end(each->error))
			continue;
		of_node = port->node == last ? of_node + 1 : 1;
		last = port->node;
		if (each->error != -ETIMEDOUT || of_node == 1)
			record_failure(port->node, each->error == -ETIMEDOUT ? NULL : port,
				       "the counters could not be read: %s",
				       error_text(each->error));
	}
	if (without)
		record_failure(NULL, NULL, "%u ports have no LID: their counters were not read",
			       without);
}

struct mad_fabric_counters *read_counters(const struct mad_fabric *fabric, uint64_t wanted,
					  bool basic)
{
	struct mad_fabric_counters *counters = mad_fabric_counters_create(NULL);

	if (!counters || mad_fabric_counters_set_fabric(counters, fabric))
		die("out of memory");
	read_once(counters, wanted, basic);
	if (settings.interval_ms && !cancelled.is_set) {
		show_progress("waiting %g s for the second reading",
			      settings.interval_ms / 1e3);
		if (pause_ms(settings.interval_ms))
			read_once(counters, wanted, basic);
		else
			record_failure(NULL, NULL, "%s: there was no second reading",
				       cancelled.is_set ? "a signal" : "the time limit");
		end_progress();
	}
	record_unread(counters);
	return counters;
}
