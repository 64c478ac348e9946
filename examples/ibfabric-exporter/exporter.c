/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Shows a program that runs for months: discoveries and readings at two intervals, while
 * another thread serves their results.
 *
 * Serves the topology and the counters of a fabric to Prometheus: ibfabric-exporter --listen
 * 9683. Without --listen, it prints them once. ibfabric-exporter(8) has the options and the
 * metrics.
 *
 * The main thread discovers and reads at two intervals. After each reading it writes a text,
 * compressed and in memory. The thread of libmicrohttpd hands out the latest text.
 */

#include "server.h"
#include "../program.h"

#include <infiniband/mad_fabric_counters.h>
#include <infiniband/mad_fields.h>

#include <err.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <time.h>

/* A text is handed out for so many rounds after its own. */
#define ROUNDS_OF_TEXT 5
/* Contradictions of a discovery that are printed. */
#define MESSAGES_MOST  20
/* The shortest interval and time limit. */
#define LEAST_MS       100

/* Discoveries, or readings of the counters. */
struct round {
	const char *name;
	double interval, due, begin; /* in seconds; due, begin and latest by now() */
	double latest;               /* the beginning of the latest round that succeeded */
	time_t since;                /* of the latest round that succeeded */
	double duration;             /* of the same */
	bool running;
	int error;       /* of the latest round */
	unsigned failed; /* rounds, in all */
};

/* The metrics of ports: counters, and the ones here. */
enum {
	STATE = MAD_COUNTER_COUNT,
	PHYSICAL_STATE,
	RATE,
	RATE_POSSIBLE,
	PEER_UP,
	INFO,
	COUNTERS_UP,
	AT_MAXIMUM,
	METRIC_COUNT
};

static const char *const gauges[][2] = {
	{"state", "1 Down, 2 Init, 3 Armed, 4 Active"},
	{"physical_state", "1 Sleep, 2 Polling, 3 Disabled, 4 Training, 5 LinkUp, 6 Recovery"},
	{"rate_bytes_per_second", "Rate of the link; 0 if it is down or the rate is unknown"},
	{"rate_possible_bytes_per_second", "Highest rate that both ends support; 0 if unknown"},
	{"peer_up", "1 if a node responds at the other end of the link, else 0"},
	{"info", "Name, LID, link and peer of the port"},
	{"counters_up", "1 if the latest reading of the counters succeeded, else 0"},
	{"at_maximum", "1: the counter is at its maximum and may have missed events"}};

/* Contradictions of enum mad_fabric_problem_kind, as labels. */
static const char *const contradictions[] = {
	[MAD_FABRIC_PROBLEM_PEER] = "peer",
	[MAD_FABRIC_PROBLEM_GUID] = "guid",
	[MAD_FABRIC_PROBLEM_PORT_COUNT] = "port_count",
	[MAD_FABRIC_PROBLEM_NODE_TYPE] = "node_type",
	[MAD_FABRIC_PROBLEM_LOOP] = "loop",
	[MAD_FABRIC_PROBLEM_LID] = "lid",
	[MAD_FABRIC_PROBLEM_ROUTE_TOO_LONG] = "route",
	[MAD_FABRIC_PROBLEM_TOO_MANY] = "size",
	[MAD_FABRIC_PROBLEM_LINK] = "link",
};
#define KINDS (sizeof(contradictions) / sizeof(contradictions[0]))

#define TOPOLOGY_METRICS (MAD_COUNTER_BIT(COUNTERS_UP) - MAD_COUNTER_BIT(STATE))

/* --only */
static const char *const group_names[] = {"topology", "traffic", "errors", "rcv-errors",
					  "discards", "fec",     NULL};
static const uint64_t groups[] = {TOPOLOGY_METRICS,
				  MAD_COUNTERS_TRAFFIC,
				  MAD_COUNTERS_ERRORS,
				  MAD_COUNTERS_RCV_ERROR_DETAILS,
				  MAD_COUNTERS_XMIT_DISCARD_DETAILS,
				  MAD_COUNTERS_EXTENDED_SPEEDS};

static struct round topology = {.name = "topology", .interval = 60};
static struct round counters = {.name = "counters", .interval = 30};

/* the command line */
static char *device;
static int port_number, rate; /* 0: any; no limit */
static double time_limit = 600;
static int only_nonzero, only_switches;
static uint64_t wanted = TOPOLOGY_METRICS | MAD_COUNTERS_DEFAULT; /* metrics */
static struct mad_fabric_options discovery;
/* no reading is urgent: a node that is slow for a moment is not taken for a silent one */
static struct mad_fabric_counters_options reading = {.check_guid = true, .timeout_ms = 3000};
static const char *listen_port, *listen_address; /* NULL: prints once; any address */

static struct ibmad_port *local_port; /* NULL: not open */
static struct mad_async *async;
static struct mad_fabric *fabric;
static struct mad_fabric *found; /* the next fabric, after the reading; or NULL */
static struct mad_fabric_counters *totals;
static bool has_text, has_failed; /* a text was written, or could not be */

/* --- the command line ------------------------------------------------------------ */

static _Noreturn void say_usage(FILE *out, int status)
{
	fputs("usage: ibfabric-exporter [OPTION ...]\n\n"
	      "Prints the topology and counters of a fabric for Prometheus, or serves them.\n\n"
	      "  -C DEVICE             the local device\n"
	      "  -P PORT               the port of this device\n"
	      "  --listen PORT         serves HTTP on this TCP port (0: any; prints it)\n"
	      "  --address ADDRESS     listens only on this address (default: all)\n"
	      "  --topology SECONDS    the interval between discoveries (default: 60)\n"
	      "  --counters SECONDS    the interval between readings of the counters\n"
	      "                        (default: 30)\n"
	      "  --only LIST           only these groups, separated by commas: topology,\n"
	      "                        traffic, errors, rcv-errors, discards, fec\n"
	      "                        (default: topology,traffic,errors)\n"
	      "  --nonzero             omits counters that are 0\n"
	      "  --switches            omits the ports of CAs and routers\n"
	      "  --max-rate N          sends at most N requests per second\n"
	      "  --time-limit SECONDS  gives up on a discovery or reading after this time\n"
	      "                        (default: 600)\n"
	      "  --m-key-file FILE     a file with the M_Key of the fabric, in hexadecimal\n"
	      "  --help                prints this text\n"
	      "  --version             prints the version\n",
	      out);
	exit(status ? status : finish(0));
}

static int get_number(const char *text, int least, int most)
{
	int number = read_number(text, least, most);

	if (number < 0) {
		warnx("%s is not a number from %d to %d", text, least, most);
		say_usage(stderr, 2);
	}
	return number;
}

/* In seconds. */
static double get_time(const char *text)
{
	unsigned ms = read_ms(text);

	if (ms < LEAST_MS) {
		warnx("%s is not a time in seconds (0.1 to 1000000)", text);
		say_usage(stderr, 2);
	}
	return ms / 1e3;
}

/* --- metrics of ports ------------------------------------------------------------ */

/* A label, after another one. The text format escapes three characters. */
static void put_label(gzFile out, const char *label, const char *value)
{
	gzprintf(out, ",%s=\"", label);
	for (size_t size; *value; value += size) {
		size = strcspn(value, "\\\"\n");
		gzwrite(out, value, (unsigned)size);
		if (value[size]) {
			gzputs(out, value[size] == '\n'  ? "\\n"
				    : value[size] == '"' ? "\\\""
							 : "\\\\");
			size++;
		}
	}
	gzputc(out, '"');
}

/* A NodeDescription may have any bytes, or none: then the name is the GUID. */
static void put_name(gzFile out, const char *label, const char *description, uint64_t guid)
{
	char name[IB_SMP_DATA_SIZE + 1];

	mad_printable_text(description, name, sizeof(name));
	if (!*name && guid)
		sprintf(name, "0x%016" PRIx64, guid);
	put_label(out, label, name);
}

static const char *get_type(const struct mad_fabric_node *node)
{
	return node->type == IB_NODE_SWITCH   ? "switch"
	       : node->type == IB_NODE_ROUTER ? "router"
					      : "ca";
}

static void put(gzFile out, const char *name, const struct mad_fabric_counters_port *each,
		uint64_t value, const char *labels)
{
	gzprintf(out, "infiniband_%s{guid=\"0x%016" PRIx64 "\",port=\"%u\"%s} %" PRIu64 "\n",
		 name, each->guid, each->number, labels, value);
}

/* The end 1 has the lower GUID, or the lower port of a cable from a node to itself. Both ends
 * have the same label "link". */
static void put_link(gzFile out, const struct mad_fabric_port *port)
{
	const struct mad_fabric_port *first = port, *second = port->peer;
	bool is_second =
		first->node->guid > second->node->guid ||
		(first->node->guid == second->node->guid && first->number > second->number);

	if (is_second) {
		first = port->peer;
		second = port;
	}
	gzprintf(out, ",link=\"0x%016" PRIx64 "/%u-0x%016" PRIx64 "/%u\",end=\"%d\"",
		 first->node->guid, first->number, second->node->guid, second->number,
		 1 + is_second);
}

static void put_info(gzFile out, const char *name, const struct mad_fabric_counters_port *each)
{
	const struct mad_fabric_port *port = each->port, *peer = port->peer;

	gzprintf(out, "infiniband_%s{guid=\"0x%016" PRIx64 "\",port=\"%u\"", name, each->guid,
		 each->number);
	put_name(out, "node", port->node->description, each->guid);
	gzprintf(out, ",type=\"%s\",lid=\"%d\",width=\"%ux\",speed=\"%s\"",
		 get_type(port->node),
		 port->node->type == IB_NODE_SWITCH ? port->node->lid : port->lid, port->width,
		 mad_link_speed_name(port->speed));
	if (peer) {
		put_link(out, port);
		put_name(out, "peer", peer->node->description, peer->node->guid);
		gzprintf(out,
			 ",peer_type=\"%s\",peer_guid=\"0x%016" PRIx64 "\",peer_port=\"%u\"",
			 get_type(peer->node), peer->node->guid, peer->number);
	}
	gzputs(out, "} 1\n");
}

static void put_maxima(gzFile out, const char *name,
		       const struct mad_fabric_counters_port *each)
{
	char label[64];

	for (unsigned n = 0; n < MAD_COUNTER_COUNT; n++)
		if (each->reading->at_maximum & MAD_COUNTER_BIT(n)) {
			sprintf(label, ",counter=\"%s\"", mad_counters_info(n)->name);
			put(out, name, each, 1, label);
		}
}

/* Whether the total of a counter is as of the latest reading: that has it, and its value was
 * not ignored as impossible. */
static bool is_current(const struct mad_fabric_counters_port *each, unsigned counter)
{
	const uint64_t bit = MAD_COUNTER_BIT(counter);

	if (!(each->totals->total.present & each->reading->present & bit))
		return false;
	return !(each->events & MAD_COUNTERS_IMPOSSIBLE) ||
	       !(each->totals->total.odd_values & bit) ||
	       !isnan(mad_counters_tracker_rate(each->tracker, counter, MAD_RATE_LATEST));
}

/* The value of a metric, if the port has it. */
static bool get_value(const struct mad_fabric_counters_port *each, unsigned metric,
		      uint64_t *value)
{
	const struct mad_fabric_port *port = each->port;
	/* a response with an error is one, too */
	bool up = port->peer || port->peer_error == -EIO || port->peer_error == -EBADMSG;
	bool is_read = each->is_latest && !each->error && each->totals;
	double possible = mad_link_rate_gbps(port->width_possible, port->speed_possible);
	uint64_t values[] = {port->state,
			     port->physical_state,
			     (uint64_t)(port->rate_gbps * 1e9 / 8),
			     (uint64_t)(possible * 1e9 / 8),
			     up,
			     1,
			     is_read,
			     1};

	if (metric < MAD_COUNTER_COUNT) {
		*value = is_read ? mad_counters_value(&each->totals->total, metric, NULL) : 0;
		return is_read && is_current(each, metric) && (*value || !only_nonzero);
	}
	*value = values[metric - STATE];
	return metric < PEER_UP        ? port->info != NULL
	       : metric == PEER_UP     ? up || port->peer_error == -ETIMEDOUT
	       : metric == AT_MAXIMUM  ? is_read && each->reading
	       : metric == COUNTERS_UP ? (each->is_latest ? each->error != -EOPNOTSUPP
							  : port->peer && !port->gmp_lid)
				       : true;
}

static void put_family(gzFile out, const char *name, const char *type, const char *help)
{
	gzprintf(out, "# HELP infiniband_%s %s\n# TYPE infiniband_%s %s\n", name, help, name,
		 type);
}

static void put_metric(gzFile out, unsigned metric)
{
	const char *const *gauge = metric < MAD_COUNTER_COUNT ? NULL : gauges[metric - STATE];
	const struct mad_counter_info *info = mad_counters_info(metric);
	const struct mad_fabric_counters_port *each = NULL;
	char name[64], help[256];
	uint64_t value;

	if (gauge) {
		sprintf(name, "port_%s", gauge[0]);
		put_family(out, name, "gauge", gauge[1]);
	} else {
		sprintf(name, "port_%s_total", info->name);
		sprintf(help, "%s (%s)", info->description, info->field);
		put_family(out, name, "counter", help);
	}
	while ((each = mad_fabric_counters_next(totals, each))) {
		if (!each->port || (!each->number && !each->port->node->enhanced_port0) ||
		    (only_switches && each->port->node->type != IB_NODE_SWITCH) ||
		    !get_value(each, metric, &value))
			continue;
		if (metric == INFO)
			put_info(out, name, each);
		else if (metric == AT_MAXIMUM)
			put_maxima(out, name, each);
		else
			put(out, name, each, value, "");
		if (each->error == -ESTALE)
			topology.due = 0; /* another node has the LID */
	}
}

/* --- the text -------------------------------------------------------------------- */

static void put_number(gzFile out, const char *subject, const char *name, double value,
		       const char *help)
{
	char text[64];

	sprintf(text, "%s_%s", subject, name);
	put_family(out, text, strstr(name, "_total") ? "counter" : "gauge", help);
	gzprintf(out, "infiniband_%s %.14g\n", text, value);
}

static void put_round(gzFile out, const struct round *round)
{
	if (round->duration > 0) {
		put_number(out, round->name, "timestamp_seconds", (double)round->since,
			   "Unix time at which the latest successful round began");
		put_number(out, round->name, "duration_seconds", round->duration,
			   "How long this round took");
	}
	put_number(out, round->name, "failures_total", round->failed, "Failed rounds");
}

/* Where a node or port is: what is not known (0, NULL) is empty. The cable of "port" leads to
 * "peer". */
static void put_place(gzFile out, const char *name, uint64_t guid, const char *description,
		      const struct mad_fabric_port *port, const struct mad_fabric_port *peer)
{
	char text[32] = "", number[8] = "";

	if (guid)
		sprintf(text, "0x%016" PRIx64, guid);
	if (port)
		sprintf(number, "%u", port->number);
	gzprintf(out, "infiniband_%s{guid=\"%s\",port=\"%s\"", name, text, number);
	put_name(out, "node", description ? description : "", description ? guid : 0);
	*text = *number = 0;
	if (peer) {
		sprintf(text, "0x%016" PRIx64, peer->node->guid);
		sprintf(number, "%u", peer->number);
	}
	put_name(out, "peer", peer ? peer->node->description : "", peer ? peer->node->guid : 0);
	gzprintf(out, ",peer_guid=\"%s\",peer_port=\"%s\"", text, number);
}

/* A row for each failure that put_fabric() counts. */
static void put_unreachable(gzFile out)
{
	const struct mad_fabric_problem *problem;

	put_family(
		out, "unreachable_node", "gauge",
		"A node that did not respond in the latest discovery, or not to all requests");
	for (size_t i = 0; (problem = mad_fabric_get_problem(fabric, i)); i++) {
		const struct mad_fabric_port *behind = problem->port, *port;
		const struct mad_fabric_node *node = problem->node;
		const char *response = "some";

		if (problem->kind == MAD_FABRIC_PROBLEM_NODE) {
			port = mad_fabric_get_port(node, node->entry_port);
			behind = port ? port->peer : NULL;
		} else if (problem->kind == MAD_FABRIC_PROBLEM_BEHIND) {
			port = behind->peer;
			node = port ? port->node : NULL;
			if (!port)
				response = problem->error == -ETIMEDOUT ? "none" : "error";
		} else
			continue;
		put_place(out, "unreachable_node", node ? node->guid : problem->guid,
			  node ? node->description : problem->description, port, behind);
		gzprintf(out, ",response=\"%s\"} 1\n", response);
	}
}

/* One of the ports or nodes that have a GUID. */
struct place {
	uint64_t guid;
	const struct mad_fabric_node *node; /* NULL: not known, it is behind the port */
	const struct mad_fabric_port *port; /* NULL: the node itself */
};

static int compare_places(const void *a, const void *b)
{
	const struct place *one = a, *other = b;
	unsigned first = one->port ? one->port->index + 1 : 0;
	unsigned second = other->port ? other->port->index + 1 : 0;

	if (one->guid != other->guid)
		return one->guid < other->guid ? -1 : 1;
	return (first > second) - (first < second);
}

/* Each place once: a problem has two of them, and a GUID that is there three times has two
 * problems. */
static void put_duplicates(gzFile out)
{
	const struct mad_fabric_problem *problem;
	struct place *places = calloc(2 * fabric->problem_count + 1, sizeof(*places));
	size_t count = 0;

	or_exit(places);
	for (size_t i = 0; (problem = mad_fabric_get_problem(fabric, i)); i++)
		if (problem->kind == MAD_FABRIC_PROBLEM_GUID) {
			places[count++] =
				(struct place){problem->guid, problem->node, problem->port};
			places[count++] = (struct place){problem->guid, problem->other_node,
							 problem->other_port};
		}
	qsort(places, count, sizeof(*places), compare_places);
	put_family(out, "duplicate_guid", "gauge",
		   "A node or port that shares its GUID with another");
	for (size_t i = 0; i < count; i++) {
		const struct place *place = &places[i];
		const struct mad_fabric_port *port = place->port,
					     *peer = port ? port->peer : NULL;
		const struct mad_fabric_node *node = place->node;

		if ((!node && !port) || (i && !compare_places(place, place - 1)))
			continue;
		if (port && port->guid != place->guid && port->node->guid != place->guid) {
			port = peer; /* the GUID is behind the port */
			peer = place->port;
			node = port ? port->node : NULL;
		}
		put_place(out, "duplicate_guid", place->guid, node ? node->description : NULL,
			  port, peer);
		/* two switches with one PortGUID may have the same name */
		if (node)
			gzprintf(out, ",node_guid=\"0x%016" PRIx64 "\"} 1\n", node->guid);
		else
			gzputs(out, ",node_guid=\"\"} 1\n");
	}
	free(places);
}

static void put_fabric(gzFile out)
{
	size_t counts[KINDS] = {0};
	const struct mad_fabric_problem *problem;

	put_number(out, "fabric", "nodes", (double)fabric->node_count, "Nodes that responded");
	for (size_t i = 0; (problem = mad_fabric_get_problem(fabric, i)); i++)
		if (problem->kind < KINDS) /* a later library may have more */
			counts[problem->kind]++;
	put_number(
		out, "fabric", "failures",
		(double)(counts[MAD_FABRIC_PROBLEM_BEHIND] + counts[MAD_FABRIC_PROBLEM_NODE]),
		"Nodes that did not respond, or not to all requests");
	put_family(out, "fabric_contradictions", "gauge",
		   "Contradictions in the latest discovery");
	for (unsigned kind = MAD_FABRIC_PROBLEM_PEER; kind < KINDS; kind++)
		gzprintf(out, "infiniband_fabric_contradictions{kind=\"%s\"} %zu\n",
			 contradictions[kind], counts[kind]);
	put_unreachable(out);
	put_duplicates(out);
}

static const struct mad_fabric_problem *next_contradiction(const struct mad_fabric *of,
							   size_t *at)
{
	const struct mad_fabric_problem *problem;

	do
		problem = mad_fabric_get_problem(of, (*at)++);
	while (problem && problem->error);
	return problem;
}

/* Says which contradictions the discovery before did not find. */
static void say_contradictions(const struct mad_fabric *before, const struct mad_fabric *after)
{
	char text[MAD_FABRIC_PROBLEM_TEXT_SIZE], was[MAD_FABRIC_PROBLEM_TEXT_SIZE] = "";
	const struct mad_fabric_problem *problem;
	size_t i = 0, j = 0;

	for (unsigned n = 0; n < MESSAGES_MOST && (problem = next_contradiction(after, &i));
	     n++) {
		mad_fabric_problem_text(problem, text, sizeof(text));
		mad_fabric_problem_text(next_contradiction(before, &j), was, sizeof(was));
		if (strcmp(text, was) != 0)
			warnx("topology: %s", text);
	}
}

/* Whether the latest discovery that succeeded is recent enough to be served. */
static bool has_topology(void)
{
	return now() <
	       topology.latest + ROUNDS_OF_TEXT * (topology.interval + topology.duration);
}

static void write_text(const struct round *round)
{
	uint64_t metrics = has_topology() ? wanted : wanted & ~TOPOLOGY_METRICS;
	gzFile out = begin_text(listen_port);
	struct mad_async_stats stats = {0};

	if (!out) {
		has_failed = true;
		return;
	}
	for (unsigned metric = 0; metric < METRIC_COUNT; metric++)
		if (metrics & MAD_COUNTER_BIT(metric))
			put_metric(out, metric);
	put_round(out, &topology);
	put_round(out, &counters);
	if (has_topology())
		put_fabric(out);
	mad_async_get_stats(async, &stats, sizeof(stats));
	put_number(out, "mads", "sent_total", (double)stats.sent, "MADs sent");
	put_number(out, "requests", "timed_out_total", (double)stats.timed_out,
		   "Requests that timed out");
	if (end_text(out, round->begin,
		     now() + ROUNDS_OF_TEXT * (round->interval + round->duration)))
		has_text = true;
	else
		has_failed = true;
}

/* --- rounds ---------------------------------------------------------------------- */

static void end_round(struct round *round, int error)
{
	if (error && error != round->error)
		warnx("%s: %s", round->name, strerror(-error));
	round->running = false;
	round->error = error;
	round->failed += error != 0;
	if (!error) {
		round->since = time(NULL) - (time_t)(now() - round->begin);
		round->duration = now() - round->begin;
		round->latest = round->begin;
	}
}

static void discovered(struct mad_async *engine, int error, struct mad_fabric *result,
		       void *arg)
{
	(void)engine, (void)arg;
	found = result;
	end_round(&topology, error);
}

static void counters_came(struct mad_async *engine, int error,
			  struct mad_fabric_counters *object, void *arg)
{
	(void)engine, (void)object, (void)arg;
	end_round(&counters, error);
	if (!error)
		write_text(&counters);
}

static void take_over(void)
{
	if (mad_fabric_counters_set_fabric(totals, found) < 0)
		or_exit(NULL);
	say_contradictions(fabric, found);
	mad_fabric_free(fabric);
	fabric = found;
	found = NULL;
	if (!reading.counters)
		write_text(&topology);
}

/* Begins a round if it is due. Returns the seconds until then. */
static double begin(struct round *round)
{
	int error;

	if (round->running || found || (round == &counters && (!fabric || !reading.counters)))
		return round->interval;
	if (now() < round->due)
		return round->due - now();
	round->begin = now();
	round->due = round->begin + round->interval;
	round->running = true;
	discovery.previous = fabric; /* names the nodes that do not respond any more */
	error = round == &topology
			? mad_fabric_submit(async, &discovery, discovered, NULL, NULL)
			: mad_fabric_counters_submit(async, totals, &reading, counters_came,
						     NULL, NULL);
	if (error)
		end_round(round, error);
	return round->interval;
}

static bool open_port(void)
{
	int mad_classes[] = {IB_SMI_DIRECT_CLASS, IB_SMI_CLASS, IB_PERFORMANCE_CLASS};

	local_port = mad_rpc_open_port(device, port_number, mad_classes, 3);
	async = local_port ? mad_async_create(local_port) : NULL;
	if (!async) {
		mad_rpc_close_port(local_port);
		local_port = NULL;
	} else {
		topology.error = counters.error = 0;
		topology.due = counters.due = 0;
		mad_port_set(local_port, MAD_PORT_RATE, (unsigned)rate);
	}
	return local_port;
}

/* Without a server, it returns after the first text, or an error. */
static void run(void)
{
	double wait;

	do {
		if (found && !counters.running)
			take_over(); /* a reading needs its fabric to the end */
		wait = 1;
		if (local_port || open_port())
			wait = fmin(wait, fmin(begin(&topology), begin(&counters)));
		if (topology.running || counters.running)
			mad_async_wait(async, (int)ceil(wait * 1000));
		else if (listen_port)
			usleep((useconds_t)(wait * 1e6));
		if (local_port && (topology.error == -ENODEV || counters.error == -ENODEV)) {
			mad_async_free(async);
			mad_rpc_close_port(local_port);
			local_port = NULL;
			async = NULL;
		}
	} while (listen_port ||
		 (!topology.error && !counters.error && !has_text && !has_failed));
}

/* All users can see the command line, but not the file. */
static void read_key(const char *name)
{
	FILE *file = or_exit(fopen(name, "re"));

	if (fscanf(file, "%" SCNx64, &discovery.m_key) != 1) {
		warnx("%s: the file contains no M_Key in hexadecimal", name);
		say_usage(stderr, 2);
	}
	reading.m_key = discovery.m_key;
	fclose(file);
}

int main(int argc, char **argv)
{
	static double *const times[] = {&topology.interval, &counters.interval, &time_limit};
	static const struct option options[] = {{"topology", required_argument, NULL, 0},
						{"counters", required_argument, NULL, 1},
						{"max-rate", required_argument, NULL, 'r'},
						{"time-limit", required_argument, NULL, 2},
						{"nonzero", no_argument, &only_nonzero, 4},
						{"switches", no_argument, &only_switches, 4},
						{"listen", required_argument, NULL, 'l'},
						{"address", required_argument, NULL, 'a'},
						{"only", required_argument, NULL, 'o'},
						{"m-key-file", required_argument, NULL, 'm'},
						{"help", no_argument, NULL, 'h'},
						{"version", no_argument, NULL, 'v'},
						{0}};
	struct mad_fabric_counters_settings settings = {.flags = MAD_COUNTERS_FROM_DEVICE};
	int option, index = -1, group;
	char *value;

	while ((option = getopt_long(argc, argv, "C:P:", options, &index)) != -1) {
		if (option == 'C')
			device = optarg;
		else if (option == 'P')
			port_number = get_number(optarg, 1, UINT8_MAX);
		else if (option == 'l' && get_number(optarg, 0, UINT16_MAX) >= 0)
			listen_port = optarg;
		else if (option == 'a')
			listen_address = optarg;
		else if (option == 'm')
			read_key(optarg);
		else if (option == 'o') {
			for (wanted = 0; *optarg; wanted |= groups[group])
				if ((group = getsubopt(&optarg, (char **)(uintptr_t)group_names,
						       &value)) < 0)
					say_usage(stderr, 2);
		} else if (option == 'v') {
			puts("ibfabric-exporter " IBFABRIC_VERSION);
			return finish(0);
		} else if (option == 'h' || option == '?')
			say_usage(option == 'h' ? stdout : stderr, option == 'h' ? 0 : 2);
		else if (option == 'r')
			rate = get_number(optarg, 1, INT_MAX);
		else if (!options[index].flag)
			*times[option] = get_time(optarg);
	}
	reading.counters = wanted & MAD_COUNTERS_ALL;
	reading.leave_out = only_switches ? MAD_FABRIC_COUNTERS_NO_OTHERS : 0;
	reading.time_limit_ms = discovery.time_limit_ms = (unsigned)(time_limit * 1000);
	if (reading.counters)
		wanted |= MAD_COUNTER_BIT(COUNTERS_UP) | MAD_COUNTER_BIT(AT_MAXIMUM);
	if (optind < argc || !wanted)
		say_usage(stderr, 2);
	totals = or_exit(mad_fabric_counters_create(&settings));
	if (!open_port())
		or_exit(NULL);
	if (listen_port && !start_server(listen_address, listen_port)) {
		warnx("--address: %s is not an IPv4 or IPv6 address",
		      listen_address ? listen_address : "0.0.0.0");
		say_usage(stderr, 2);
	}
	run();
	return finish(!has_text);
}
