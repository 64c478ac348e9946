/* SPDX-License-Identifier: BSD-2-Clause */

/* What is read from the fabric: the discovery, attributes of ports, counters. */

#include "ibfabric.h"

#include <infiniband/mad_errors.h>

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#define SLICE_MS      100
#define REQUESTS_MOST 4096 /* submitted at once */

struct mad_cancel cancelled;
struct ibmad_port *ibmad_port;
static bool *is_silent; /* by the index of a node: it did not respond to the discovery */

/* --- time and progress --------------------------------------------------------------- */

/* Since the first call. */
static unsigned elapsed_ms(void)
{
	static struct timespec start;
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

bool is_over(void)
{
	return cancelled.is_set ||
	       (settings.time_limit_ms && elapsed_ms() >= settings.time_limit_ms);
}

const char *why_over(void)
{
	return cancelled.is_set ? "a signal" : "the time limit";
}

/* The end of a reading is one failure, not one of each port that was not read. */
static bool is_early_end(int error)
{
	return error == -ETIME || error == -ECANCELED;
}

const char *error_text(int error)
{
	return error == -ETIMEDOUT ? "no response" : strerror(-error);
}

static bool has_progress;

void show_progress(const char *format, ...)
{
	va_list args;

	if (!isatty(STDERR_FILENO))
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

/* --- the fabric ---------------------------------------------------------------------- */

static void show_discovery(const struct mad_fabric_progress *progress, void *arg)
{
	(void)arg;
	show_progress("%zu nodes, %zu links", progress->nodes, progress->links);
}

/* A problem that ended the discovery is recorded once, and the two ends of a link that differ
 * are no failure. check has findings for most others. */
static bool is_failure(const struct mad_fabric_problem *problem, int end)
{
	if (problem->kind == MAD_FABRIC_PROBLEM_ROUTE_TOO_LONG ||
	    problem->kind == MAD_FABRIC_PROBLEM_TOO_MANY)
		return true;
	return !is_command("check") && !(end && problem->error == end) &&
	       problem->kind != MAD_FABRIC_PROBLEM_LINK;
}

static void record_problems(const struct mad_fabric *fabric, int end)
{
	const struct mad_fabric_problem *problem;
	char text[MAD_FABRIC_PROBLEM_TEXT_SIZE];

	if (is_early_end(end))
		record_failure(nowhere, "%s ended the discovery after %zu nodes", why_over(),
			       fabric->node_count);
	else if (end)
		record_failure(nowhere, "the discovery ended after %zu nodes: %s",
			       fabric->node_count, strerror(-end));
	is_silent = allocate(fabric->node_count, sizeof(*is_silent));
	for (size_t i = 0; (problem = mad_fabric_get_problem(fabric, i)); i++) {
		if (problem->kind == MAD_FABRIC_PROBLEM_NODE && problem->node)
			is_silent[problem->node->index] |= problem->error == -ETIMEDOUT;
		if (is_failure(problem, end))
			record_failure(nowhere, "%s",
				       mad_fabric_problem_text(problem, text, sizeof(text)));
	}
}

struct mad_fabric *discover(const struct mad_fabric *previous)
{
	struct mad_fabric_options options = {.read = MAD_FABRIC_READ_DEFAULT |
						     MAD_FABRIC_READ_MLNX_EXT_PORTS,
					     .progress = show_discovery,
					     .previous = previous,
					     .m_key = settings.m_key,
					     .cancel = &cancelled,
					     .time_limit_ms = left_ms(),
					     .partial = true};
	char text[MAD_ERROR_TEXT_SIZE + PLACE_SIZE];
	struct mad_fabric *fabric;
	int error;

	if (mad_port_open(settings.device, (int)settings.device_port, &ibmad_port))
		die("%s", mad_failure_text(NULL, text, sizeof(text)));
	if (settings.max_rate)
		mad_port_set(ibmad_port, MAD_PORT_RATE, settings.max_rate);
	if (settings.m_key)
		smp_mkey_set(ibmad_port, settings.m_key);
	error = mad_fabric_discover(ibmad_port, &options, &fabric);
	end_progress();
	if (!fabric)
		die("%s", is_early_end(error) ? why_over()
					      : mad_failure_text(NULL, text, sizeof(text)));
	if (fabric->origin && fabric->origin->info && fabric->origin->state == MAD_PORT_DOWN)
		die("the local port is down: %s", place_text(at_port(fabric->origin), text));
	record_problems(fabric, error);
	check_selection(fabric, previous);
	return fabric;
}

/* --- attributes ---------------------------------------------------------------------- */

static void attribute_read(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	struct attribute *attribute = arg;

	(void)async;
	attribute->error = reply->error;
	if (!reply->error)
		memcpy(attribute->data, reply->data, sizeof(attribute->data));
}

/* By the route of the discovery, which needs no LID, if it leads to this very port. */
static void request(struct mad_async *async, struct attribute *attribute, unsigned id)
{
	const struct mad_fabric_port *port = attribute->port;
	ib_portid_t to = {0};

	if (port->node->type == IB_NODE_SWITCH || port->number == port->node->entry_port ||
	    !port->gmp_lid)
		to.drpath = port->node->route;
	else
		to.lid = port->gmp_lid;
	attribute->error = mad_async_get(async, &to, id, attribute->modifier, attribute_read,
					 attribute, NULL);
}

void read_attributes(struct attribute *attributes, size_t count, unsigned id)
{
	struct mad_async *async = mad_async_create(ibmad_port);

	if (!async)
		die("%s", strerror(errno));
	for (size_t i = 0; i < count; i++) {
		attributes[i].error = -ECANCELED;
		if (is_over())
			continue;
		request(async, &attributes[i], id);
		if ((i + 1) % REQUESTS_MOST && i + 1 < count)
			continue;
		while (mad_async_wait(async, SLICE_MS) == -ETIMEDOUT && !is_over())
			;
	}
	mad_async_free(async);
}

/* --- counters ------------------------------------------------------------------------ */

bool has_counters(const struct mad_fabric_port *port)
{
	return port->node->type == IB_NODE_SWITCH ? port->number || port->node->enhanced_port0
						  : port->peer != NULL;
}

static bool is_read(const struct mad_fabric_port *port, void *arg)
{
	(void)arg;
	return is_link_selected(port) && !is_silent[port->node->index];
}

static void read_once(struct mad_fabric_counters *counters, uint64_t wanted)
{
	struct mad_fabric_counters_options options = {.counters = wanted,
						      .time_limit_ms = left_ms(),
						      .cancel = &cancelled,
						      .m_key = settings.m_key,
						      .filter = is_read};
	char text[MAD_ERROR_TEXT_SIZE];
	int error;

	show_progress("reading counters");
	error = mad_fabric_counters_read(ibmad_port, counters, &options);
	end_progress();
	if (is_early_end(error))
		record_failure(
			nowhere,
			"%s ended the reading of the counters: %zu of %zu ports were read",
			why_over(), counters->latest->read, counters->latest->wanted);
	else if (error)
		record_failure(nowhere, "counters: %s",
			       mad_failure_text(NULL, text, sizeof(text)));
}

/* Of the latest reading; a node that no longer responds is a finding of check. */
static void record_unread(struct mad_fabric_counters *counters)
{
	const struct mad_fabric_counters_port *each = NULL;
	const struct mad_fabric_node *silent = NULL;
	unsigned without = 0;

	while ((each = mad_fabric_counters_next(counters, each))) {
		const struct mad_fabric_port *port = each->port;

		if (!port || !is_read(port, NULL))
			continue;
		without += !each->is_latest && !port->gmp_lid && has_counters(port);
		if (!each->is_latest || !each->error || is_early_end(each->error))
			continue;
		if (each->error != -ETIMEDOUT)
			record_failure(at_port(port), "the counters could not be read: %s",
				       error_text(each->error));
		else if (port->node != silent && is_command("check"))
			found_of(port->node->guid, KIND_NO_RESPONSE, at_node(port->node),
				 nowhere,
				 "responded to the discovery, but not when its counters were "
				 "read");
		else if (port->node != silent)
			record_failure(at_node(port->node),
				       "the counters could not be read: no response");
		if (each->error == -ETIMEDOUT)
			silent = port->node;
	}
	if (without)
		record_failure(nowhere, "%u ports have no LID: their counters were not read",
			       without);
}

/* False if a signal or the time limit ended it. */
static bool pause_ms(unsigned ms)
{
	unsigned end = elapsed_ms() + ms, now;

	while (!is_over() && (now = elapsed_ms()) < end) {
		show_progress("second reading in %u s", (end - now + 999) / 1000);
		poll(NULL, 0, end - now < SLICE_MS ? (int)(end - now) : SLICE_MS);
	}
	end_progress();
	return !is_over();
}

struct mad_fabric_counters *read_counters(const struct mad_fabric *fabric, uint64_t wanted)
{
	struct mad_fabric_counters *counters = mad_fabric_counters_create(NULL);

	if (!counters || mad_fabric_counters_set_fabric(counters, fabric))
		die("out of memory");
	read_once(counters, wanted);
	if (settings.interval_ms && pause_ms(settings.interval_ms))
		read_once(counters, wanted);
	else if (settings.interval_ms)
		record_failure(nowhere, "%s: there was no second reading", why_over());
	record_unread(counters);
	return counters;
}
