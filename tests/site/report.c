/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * report [--fabric] [--rate N] [--store FILE] [--names FILE] [--counters LID,PORT] [CA [PORT]]
 *
 * Prints what a port, its switch and the SA respond to Gets, and with --fabric the whole
 * fabric. --store writes the fabric as ibnetdiscover prints it, --names the descriptions of
 * its nodes. --counters prints the counters of a port alone, as the fields of
 * PortCounters. Nothing is set.
 *
 * Does nothing without the guard (guard.c) in its process.
 *
 * Names are in quotation marks and GUIDs are 0x and 16 digits, so that "anonymous" finds both.
 *
 * Exits with 0 and a report, in which lines that begin with "WRONG" describe failures; with 77
 * if there is no device, or no right to open it; with 2 if the arguments make no sense.
 */
#include <infiniband/mad_async.h>
#include <infiniband/mad_counters.h>
#include <infiniband/mad_errors.h>
#include <infiniband/mad_fabric_text.h>
#include <infiniband/mad_fields.h>
#include <infiniband/umad.h>

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CANNOT             77
#define RATE_DEFAULT       200
#define SEQUENTIAL         200 /* requests of a sequential series */
#define AT_ONCE            1000
#define PEER_ONCE          256
#define KINDS              64 /* node types and link types that are counted separately */
#define FAILURES           20 /* failures that are printed separately */
#define SA_CLASS_PORT_INFO 0x0001

/* The measured port. */
static struct ibmad_port *port;
static struct mad_async *async;
static umad_port_t local;
static unsigned rate = RATE_DEFAULT; /* MADs a second that leave the port; 0: no limit */
/* the port at the other end of the cable */
static unsigned peer_lid, peer_port;

/* --- lines ---------------------------------------------------------------------- */

static void part(const char *title)
{
	printf("\n== %s ==\n", title);
}

/* A failure. The report continues. */
#define wrong(format, ...) printf("WRONG: " format "\n", ##__VA_ARGS__)

/* "name: " in a column, then the rest of the line. */
#define fact(name, format, ...)                                                          \
	printf("%s%-*s" format "\n", name, (int)(27 - strlen(name)), *(name) ? ":" : "", \
	       ##__VA_ARGS__)

/* The statistics since the engine was created. */
static void print_flow(void)
{
	static const char *const names[] = {"SMPs", "GMPs"};
	struct mad_async_stats stats;

	if (mad_async_get_stats(async, &stats, sizeof(stats)))
		return;
	fact("so far",
	     "%" PRIu64 " requests, %" PRIu64 " MADs sent, %" PRIu64
	     " retransmissions, %" PRIu64 " timed out, %" PRIu64 " dropped, %" PRIu64 " busy",
	     stats.submitted, stats.sent, stats.retried, stats.timed_out, stats.dropped,
	     stats.busy);
	for (int i = 0; i < 2; i++) {
		const struct mad_flow_stats *flow = i ? &stats.gmp : &stats.smp;

		if (!flow->rtt_smoothed_us && !flow->queue_losses && !flow->link_losses)
			continue;
		fact(names[i],
		     "window %u, round trip %u us shortest, %u us smoothed, %u responses a "
		     "second; lost: %" PRIu64 " by queues, %" PRIu64
		     " by links; %u in a million late%s",
		     flow->window, flow->rtt_shortest_us, flow->rtt_smoothed_us,
		     flow->delivery_rate, flow->queue_losses, flow->link_losses,
		     flow->link_loss_ppm, flow->silent ? "; silent" : "");
	}
}

static uint64_t clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* --- the port ------------------------------------------------------------------- */

static void print_port(void)
{
	part("port");
	fact("libibumad, libibmad", "%s", PACKAGE_VERSION);
	fact("link layer", "%s", local.link_layer);
	fact("port", "%d", local.portnum);
	fact("state", "%d, physical %d", local.state, local.phys_state);
	fact("rate", "%u Gb/s", local.rate);
	fact("LID", "%u, LMC %u", local.base_lid, local.lmc);
	fact("LID of the SM", "%u, SL %u", local.sm_lid, local.sm_sl);
	fact("CapabilityMask", "0x%08x", be32toh(local.capmask));
	fact("P_Keys", "%u", local.pkeys_size);
	if (rate)
		fact("limit", "%u MADs a second leave the port", rate);
	else
		fact("limit", "none");
}

/* --- round trips of Gets: sequential, and many in parallel ------------------------ */

struct series {
	unsigned rtt_us[AT_ONCE];
	unsigned count, failed, retransmitted;
	char failure[160];             /* the first failure, as text */
	uint8_t data[IB_SA_DATA_SIZE]; /* of the last response */
};
static struct series series;

static void came(struct mad_async *from, const struct mad_reply *reply, void *arg)
{
	(void)from;
	(void)arg;
	series.retransmitted += reply->transmissions ? reply->transmissions - 1 : 0;
	if (reply->error) {
		if (!series.failed++)
			mad_failure_text(NULL, series.failure, sizeof(series.failure));
		/* an error status is a response, too */
		if (reply->error != -EIO)
			return;
	} else if (reply->data) {
		memcpy(series.data, reply->data,
		       reply->data_size < sizeof(series.data) ? reply->data_size
							      : sizeof(series.data));
	}
	if (series.count < AT_ONCE)
		series.rtt_us[series.count++] = reply->rtt_us;
}

static int by_size(const void *a, const void *b)
{
	const unsigned *first = a, *second = b;

	return (*first > *second) - (*first < *second);
}

static ib_rpc_t get(int mgmt_class, unsigned attribute, unsigned modifier)
{
	ib_rpc_t rpc = {.mgtclass = mgmt_class,
			.method = IB_MAD_METHOD_GET,
			.attr = {.id = attribute, .mod = modifier},
			.dataoffs = IB_SMP_DATA_OFFS,
			.datasz = IB_SMP_DATA_SIZE};

	if (mgmt_class == IB_PERFORMANCE_CLASS) {
		rpc.dataoffs = IB_PC_DATA_OFFS;
		rpc.datasz = IB_PC_DATA_SZ;
	} else if (mgmt_class == IB_SA_CLASS) {
		rpc.dataoffs = IB_SA_DATA_OFFS;
		rpc.datasz = IB_SA_DATA_SIZE;
	}
	return rpc;
}

/* Submits requests, and waits after each one, until one has no response, or for all. */
static void run(ib_rpc_t rpc, const ib_portid_t *to, const void *payload, size_t size,
		unsigned count, bool at_once)
{
	memset(&series, 0, sizeof(series));
	for (unsigned i = 0; i < count && (at_once || !series.failed || series.count); i++) {
		int error = mad_async_submit(async, &rpc, to, payload, size, came, NULL, NULL);

		if (error) {
			series.failed++;
			snprintf(series.failure, sizeof(series.failure), "not submitted: %s",
				 strerror(-error));
			return;
		}
		if (!at_once)
			mad_async_wait(async, -1);
	}
	mad_async_wait(async, -1);
}

static void print_series(const char *name, unsigned requests)
{
	unsigned *rtt = series.rtt_us, count = series.count;

	if (count) {
		qsort(rtt, count, sizeof(*rtt), by_size);
		fact(name,
		     "%u of %u: min %u, median %u, 99%% %u, max %u us; %u retransmissions",
		     count, requests, rtt[0], rtt[count / 2], rtt[(count - 1) * 99 / 100],
		     rtt[count - 1], series.retransmitted);
	}
	if (series.failed)
		wrong("%s: %u of %u failed: %s", name, series.failed, requests, series.failure);
}

/* A sequential series; true if there was a response. */
static bool measure(const char *name, ib_rpc_t rpc, const ib_portid_t *to)
{
	run(rpc, to, NULL, 0, SEQUENTIAL, false);
	print_series(name, SEQUENTIAL);
	return series.count && !series.failed;
}

static void print_counters(const char *name, unsigned lid, unsigned number)
{
	struct mad_counters_options options = {.counters = MAD_COUNTERS_ERRORS};
	ib_portid_t to = {.lid = (int)lid};
	struct mad_counters counters;
	int error;

	if (!lid)
		return;
	error = mad_counters_read(port, &to, number, &options, &counters, sizeof(counters));
	if (error)
		wrong("%s: counters: %s", name, strerror(-error));
	else
		fact(name,
		     "VL15Dropped %" PRIu64 "%s, QP1Dropped %" PRIu64 ", PortRcvErrors %" PRIu64
		     ", PortXmitDiscards %" PRIu64 ", SymbolErrors %" PRIu64,
		     counters.vl15_dropped,
		     counters.at_maximum & MAD_COUNTER_BIT(MAD_COUNTER_VL15_DROPPED)
			     ? " (maximum)"
			     : "",
		     counters.qp1_dropped, counters.rcv_errors, counters.xmit_discards,
		     counters.symbol_errors);
}

/* The requests to a port by route and by LID, and many at once, between its counters. */
static void measure_port(const char *route, const ib_portid_t *by_route, unsigned lid,
			 unsigned number, unsigned at_once)
{
	ib_portid_t by_lid = {.lid = (int)lid};
	char name[64];
	uint64_t started;

	print_counters("before", lid, number);
	snprintf(name, sizeof(name), "PortInfo, route %s", route);
	measure(name, get(IB_SMI_DIRECT_CLASS, IB_ATTR_PORT_INFO, number), by_route);
	if (lid) {
		measure("NodeInfo, LID", get(IB_SMI_CLASS, IB_ATTR_NODE_INFO, 0), &by_lid);
		measure("PMA ClassPortInfo", get(IB_PERFORMANCE_CLASS, CLASS_PORT_INFO, 0),
			&by_lid);
	}
	started = clock_ms();
	run(get(IB_SMI_DIRECT_CLASS, IB_ATTR_NODE_INFO, 0), by_route, NULL, 0, at_once, true);
	started = clock_ms() - started;
	print_series("many at once, NodeInfo", at_once);
	fact("", "%" PRIu64 " ms", started);
	print_flow();
	print_counters("after", lid, number);
}

static void measure_local(void)
{
	ib_portid_t to = {0};

	part("round trips to the local port");
	/* these stay in the adapter: no limit applies */
	mad_port_set(port, MAD_PORT_RATE, 0);
	measure("NodeInfo, route 0", get(IB_SMI_DIRECT_CLASS, IB_ATTR_NODE_INFO, 0), &to);
	if (!local.base_lid)
		wrong("the port has no LID: there is no subnet manager");
	measure_port("0", &to, local.base_lid, (unsigned)local.portnum, AT_ONCE);
	mad_port_set(port, MAD_PORT_RATE, rate);
}

static void measure_peer(void)
{
	ib_portid_t to = {.drpath = {.cnt = 1, .p = {0, (uint8_t)local.portnum}}};
	unsigned type;

	part("round trips to the node at the other end of the cable");
	if (local.phys_state != 5) {
		wrong("the port has no link");
		return;
	}
	if (!measure("NodeInfo, route 0,port", get(IB_SMI_DIRECT_CLASS, IB_ATTR_NODE_INFO, 0),
		     &to))
		return;
	type = mad_get_field(series.data, 0, IB_NODE_TYPE_F);
	peer_port = mad_get_field(series.data, 0, IB_NODE_LOCAL_PORT_F);
	fact("node", "%s, %u ports, vendor 0x%06x, device 0x%04x, revision 0x%x",
	     type == IB_NODE_SWITCH ? "switch"
	     : type == IB_NODE_CA   ? "CA"
				    : "router",
	     mad_get_field(series.data, 0, IB_NODE_NPORTS_F),
	     mad_get_field(series.data, 0, IB_NODE_VENDORID_F),
	     mad_get_field(series.data, 0, IB_NODE_DEVID_F),
	     mad_get_field(series.data, 0, IB_NODE_REVISION_F));
	/* the LID of a switch is that of its port 0 */
	run(get(IB_SMI_DIRECT_CLASS, IB_ATTR_PORT_INFO, type == IB_NODE_SWITCH ? 0 : peer_port),
	    &to, NULL, 0, 1, false);
	if (series.count)
		peer_lid = mad_get_field(series.data, 0, IB_PORT_LID_F);
	fact("LID", "%u", peer_lid);
	measure_port("0,port", &to, peer_lid, peer_port, PEER_ONCE);
}

static void measure_sa(void)
{
	ib_portid_t sa = {.lid = (int)local.sm_lid, .sl = (uint8_t)local.sm_sl};
	/* NodeRecord by LID (IBA 15.2.5.2) */
	uint8_t record[IB_SA_DATA_SIZE] = {(uint8_t)(local.base_lid >> 8),
					   (uint8_t)local.base_lid};
	ib_rpc_t rpc = get(IB_SA_CLASS, IB_SA_ATTR_NODERECORD, 0);

	part("round trips to the SA");
	if (!sa.lid) {
		wrong("the port knows no subnet manager");
		return;
	}
	if (measure("ClassPortInfo", get(IB_SA_CLASS, SA_CLASS_PORT_INFO, 0), &sa))
		fact("", "CapabilityMask 0x%04x, RespTimeValue %u",
		     mad_get_field(series.data, 0, IB_CPI_CAPMASK_F),
		     mad_get_field(series.data, 0, IB_CPI_RESP_TIME_VALUE_F));
	rpc.mask = 1;
	run(rpc, &sa, record, sizeof(record), SEQUENTIAL, false);
	print_series("NodeRecord of this port", SEQUENTIAL);
	print_flow();
}

/* A RoCE port: its own GSA. */
static void measure_ethernet(void)
{
	ib_portid_t self = {.grh_present = 1};

	part("round trips to the local port");
	fact("", "a RoCE port: without QP0 it has no SMPs, and Ethernet has no SA");
	memcpy(self.gid, &local.gid_prefix, 8);
	memcpy(self.gid + 8, &local.port_guid, 8);
	/*
	 * The kernel of the port responds. Soft-RoCE has no PMA, and some kernels do not
	 * respond to this class: no failure.
	 */
	mad_rpc_set_retries(port, 1);
	run(get(IB_PERFORMANCE_CLASS, CLASS_PORT_INFO, 0), &self, NULL, 0, SEQUENTIAL, false);
	if (series.failed)
		fact("PMA ClassPortInfo", "%s", series.failure);
	series.failed = 0;
	print_series("PMA ClassPortInfo", SEQUENTIAL);
	print_flow();
}

/* --- the fabric: nodes, links, counters, and failures ----------------------------- */

/* The number of things with this text. */
struct tally {
	char text[96];
	size_t count;
};

static void __attribute__((format(printf, 2, 3)))
count(struct tally tallies[KINDS], const char *format, ...)
{
	va_list arguments;
	char text[96];
	size_t i = 0;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	while (i < KINDS - 1 && tallies[i].count && strcmp(tallies[i].text, text))
		i++;
	if (!tallies[i].count++)
		strcpy(tallies[i].text, i < KINDS - 1 ? text : "others");
}

static void print_tallies(const char *name, const struct tally tallies[KINDS])
{
	for (size_t i = 0; i < KINDS && tallies[i].count; i++)
		fact(i ? "" : name, "%zu: %s", tallies[i].count, tallies[i].text);
}

static void print_nodes(const struct mad_fabric *fabric)
{
	struct tally kinds[KINDS] = {0}, hops[KINDS] = {0}, links[KINDS] = {0};
	const struct mad_fabric_port *end = NULL;
	const struct mad_fabric_node *node;
	size_t types[4] = {0};

	for (size_t i = 0; (node = mad_fabric_get_node(fabric, i)); i++) {
		types[node->type < 4 ? node->type : 0]++;
		count(kinds, "type %u, vendor 0x%06x, device 0x%04x, %u ports", node->type,
		      node->vendor_id, node->device_id, node->port_count);
		count(hops, "%d hops away", node->route.cnt);
	}
	fact("nodes", "%zu CAs, %zu switches, %zu routers, %zu others", types[IB_NODE_CA],
	     types[IB_NODE_SWITCH], types[IB_NODE_ROUTER], types[0]);
	print_tallies("", kinds);
	print_tallies("", hops);
	while ((end = mad_fabric_next_port(fabric, end)))
		if (end->peer && end->peer->index >= end->index)
			count(links, "%ux %s%s, state %u", end->width,
			      mad_link_speed_name(end->speed),
			      end->width < end->width_possible ||
					      end->speed < end->speed_possible
				      ? ", below what both ends support"
				      : "",
			      end->state);
	print_tallies("links", links);
}

/* A description without characters that end quotation marks. */
static const char *quoted(const char *description)
{
	static char text[IB_SMP_DATA_SIZE + 3];
	int length = snprintf(text, sizeof(text) - 1, "\"%s", description);

	for (int i = 1; i < length; i++)
		if (!isprint((unsigned char)text[i]) || text[i] == '"')
			text[i] = '?';
	return strcat(text, "\"");
}

static void print_problems(const struct mad_fabric *fabric)
{
	const struct mad_fabric_problem *problem;
	char text[MAD_FABRIC_PROBLEM_TEXT_SIZE];

	fact("problems", "%zu", fabric->problem_count);
	for (size_t i = 0; i < FAILURES && (problem = mad_fabric_get_problem(fabric, i)); i++) {
		const struct mad_fabric_node *node = problem->node;
		unsigned number = problem->port ? problem->port->number : problem->modifier;

		if (problem->error) {
			wrong("%s %s 0x%016" PRIx64
			      " port %u: attribute 0x%04x, %u requests: %s",
			      problem->kind == MAD_FABRIC_PROBLEM_BEHIND ? "behind" : "at",
			      quoted(node->description), node->guid, number, problem->attribute,
			      problem->count, strerror(-problem->error));
			continue;
		}
		/* without the name in the text, which is not in quotation marks */
		mad_fabric_problem_text(problem, text, sizeof(text));
		fact("", "%s port %u%s", node ? quoted(node->description) : "", number,
		     strchr(strrchr(text, ')') ? strrchr(text, ')') : text, ':'));
	}
}

static struct mad_fabric *discovered;
static int discovery_error;

static void done(struct mad_async *from, int error, struct mad_fabric *fabric, void *arg)
{
	(void)from;
	(void)arg;
	discovered = fabric;
	discovery_error = error;
}

static struct mad_fabric *discover(void)
{
	const struct mad_fabric_options options = {.read = MAD_FABRIC_READ_DEFAULT |
							   MAD_FABRIC_READ_MLNX_EXT_PORTS};
	uint64_t started = clock_ms();
	int error = mad_fabric_submit(async, &options, done, NULL, NULL);

	if (!error)
		mad_async_wait(async, -1);
	if (error || discovery_error) {
		wrong("discovery: %s", strerror(-(error ? error : discovery_error)));
		return NULL;
	}
	fact("took", "%" PRIu64 " ms", clock_ms() - started);
	print_flow();
	return discovered;
}

struct sums {
	unsigned read, failed, with_vl15;
	uint64_t vl15, rcv_errors, discards, symbol_errors, link_downed;
	int error; /* the first failure */
};

static void counted(struct mad_async *from, int error, const struct mad_counters *counters,
		    void *arg)
{
	struct sums *sums = arg;

	(void)from;
	if (error) {
		if (!sums->failed++)
			sums->error = error;
		return;
	}
	sums->read++;
	sums->with_vl15 += counters->vl15_dropped != 0;
	sums->vl15 += counters->vl15_dropped;
	sums->rcv_errors += counters->rcv_errors;
	sums->discards += counters->xmit_discards;
	sums->symbol_errors += counters->symbol_errors;
	sums->link_downed += counters->link_downed;
}

/* PortCounters of each port with a link. Returns VL15Dropped of all. */
static uint64_t count_errors(const struct mad_fabric *fabric)
{
	struct mad_counters_options options = {.counters = MAD_COUNTERS_ERRORS, .basic = true};
	const struct mad_fabric_port *end = NULL;
	struct sums sums = {0};

	while ((end = mad_fabric_next_port(fabric, end))) {
		ib_portid_t to = {.lid = end->gmp_lid};

		if (end->peer && to.lid)
			sums.failed += mad_counters_submit(async, &to, end->number, &options,
							   counted, &sums, NULL) != 0;
	}
	mad_async_wait(async, -1);
	fact("counters",
	     "%u ports: VL15Dropped %" PRIu64 " (at %u ports), PortRcvErrors %" PRIu64
	     ", PortXmitDiscards %" PRIu64 ", SymbolErrors %" PRIu64 ", LinkDowned %" PRIu64,
	     sums.read, sums.vl15, sums.with_vl15, sums.rcv_errors, sums.discards,
	     sums.symbol_errors, sums.link_downed);
	if (sums.failed)
		wrong("counters of %u ports were not read: %s", sums.failed,
		      strerror(-sums.error));
	print_flow();
	return sums.vl15;
}

/* Writes the fabric to one file, the descriptions of its nodes to another. */
static void write_files(const struct mad_fabric *fabric, const char *store, const char *names)
{
	FILE *file = store ? fopen(store, "w") : NULL;
	const struct mad_fabric_node *node;

	if (file && (mad_fabric_store(fabric, file, NULL) | fclose(file)))
		wrong("the fabric cannot be stored");
	file = names ? fopen(names, "w") : NULL;
	for (size_t i = 0; file && (node = mad_fabric_get_node(fabric, i)); i++)
		fprintf(file, "%s\n", node->description);
	if (file)
		fclose(file);
}

static void measure_fabric(const char *store, const char *names)
{
	struct mad_fabric *fabric;
	uint64_t before, after;

	part("fabric: discovery");
	fabric = discover();
	if (!fabric)
		return;
	print_nodes(fabric);
	print_problems(fabric);
	part("fabric: counters before a second discovery");
	before = count_errors(fabric);
	mad_fabric_free(fabric);
	part("fabric: second discovery");
	fabric = discover();
	if (!fabric)
		return;
	part("fabric: counters after it");
	after = count_errors(fabric);
	if (after > before)
		wrong("VL15Dropped has grown by %" PRIu64, after - before);
	write_files(fabric, store, names);
	mad_fabric_free(fabric);
}

/* --- the program ---------------------------------------------------------------- */

/*
 * The port, if no port was named: libibumad's choice, or the first port of the first device.
 * RoCE ports are used only if they are named.
 */
static int find_port(const char *ca, int number)
{
	char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN];

	if (umad_init())
		return -1;
	if (!umad_get_port(ca, number, &local))
		return 0;
	if (ca || umad_get_cas_names(names, UMAD_MAX_DEVICES) < 1)
		return -1;
	return umad_get_port(names[0], 1, &local);
}

static int print_basic_counters(const char *text)
{
	struct mad_counters_options options = {.basic = true};
	const struct mad_counter_info *info;
	struct mad_counters counters;
	ib_portid_t to = {0};
	unsigned number;

	if (sscanf(text, "%d,%u", &to.lid, &number) != 2 ||
	    mad_counters_read(port, &to, number, &options, &counters, sizeof(counters)))
		return 1;
	for (unsigned i = 0; (info = mad_counters_info(i)); i++)
		if (counters.present & MAD_COUNTER_BIT(i))
			printf("%s %" PRIu64 "\n", info->field,
			       mad_counters_value(&counters, i, NULL) / info->multiplier);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"fabric", no_argument, NULL, 'f'},
						{"rate", required_argument, NULL, 'r'},
						{"store", required_argument, NULL, 's'},
						{"names", required_argument, NULL, 'n'},
						{"counters", required_argument, NULL, 'c'},
						{0}};
	int classes[] = {IB_PERFORMANCE_CLASS, IB_SMI_DIRECT_CLASS, IB_SMI_CLASS, IB_SA_CLASS};
	const char *given['s' + 1] = {0};
	int option, status = 0;
	bool ethernet;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1 && option != '?')
		given[option] = optarg ? optarg : "";
	if (option == '?' || argc - optind > 2) {
		fprintf(stderr, "usage: report [--fabric] [--rate N] [--store FILE] "
				"[--names FILE] [--counters LID,PORT] [CA [PORT]]\n");
		return 2;
	}
	if (!dlsym(RTLD_DEFAULT, "site_guard")) {
		fprintf(stderr, "the guard is not in this process\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (given['r'])
		rate = (unsigned)strtoul(given['r'], NULL, 10);
	argv += optind;
	if (find_port(argv[0], argv[0] && argv[1] ? atoi(argv[1]) : 0)) {
		fprintf(stderr, "there is no such device or port\n");
		return CANNOT;
	}
	ethernet = !strcmp(local.link_layer, "Ethernet");
	port = mad_rpc_open_port(local.ca_name, local.portnum, classes, ethernet ? 1 : 4);
	async = port ? mad_async_create(port) : NULL;
	if (!async) {
		fprintf(stderr, "the umad device of the port cannot be opened: %s\n",
			strerror(errno));
		return CANNOT;
	}
	mad_port_set(port, MAD_PORT_RATE, rate);
	if (given['c']) {
		status = print_basic_counters(given['c']);
	} else {
		print_port();
		if (ethernet) {
			measure_ethernet();
		} else {
			measure_local();
			measure_peer();
			measure_sa();
		}
		if (!ethernet && given['f'])
			measure_fabric(given['s'], given['n']);
		/* for the script: the ports whose counters it compares */
		if (given['n'])
			printf("@ %s %d %u %u %u\n", local.ca_name, local.portnum,
			       local.base_lid, peer_lid, peer_port);
	}
	mad_async_free(async);
	mad_rpc_close_port(port);
	umad_release_port(&local);
	return status;
}
