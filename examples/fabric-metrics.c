/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Prints the states, rates and counters of all ports of a fabric as OpenMetrics text.
 *
 *   fabric-metrics                      prints them once
 *   fabric-metrics 30                   prints them every 30 seconds
 *   fabric-metrics --listen 9683        serves them by HTTP on this port (0: any), as /metrics
 *   fabric-metrics --listen 127.0.0.1:9683          on this address only
 *
 * Options:
 *
 *   --prometheus                        prints the older text format 0.0.4 of Prometheus
 *   -C DEVICE, -P PORT                  the fabric of this device or port
 *
 * The server listens on all IPv4 addresses by default, because Prometheus usually runs on
 * another machine. An IPv6 address is in brackets: [::]:9683. There is no access control.
 *
 * The server prints the older format, too, if the request's Accept header names text/plain and
 * not OpenMetrics. For each request it discovers and reads the fabric again: first the states,
 * then the counters. No counter is reset. The details of errors and discards are not read.
 *
 * Values that could not be read are left out, and ib_port_up is 0. ib_port_peer_up is 0 if the
 * node at the other end of a link does not respond at all: that node has no lines of its own.
 * It is 1 if that node responds, even with an error. A counter at its maximum is printed, and
 * ib_port_at_maximum names it: it may have missed events. If several nodes have one GUID, the
 * first one is printed.
 *
 * Exits with 1 if the local port fails, with 2 if the command line is wrong. The server
 * responds with status 503 while the local port fails, and opens a device again that was
 * removed.
 */

#include <infiniband/mad_counters.h>
#include <infiniband/mad_fabric.h>

#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#ifdef HAVE_MICROHTTPD
#include <microhttpd.h>
#endif

struct reading {
	const struct mad_fabric_port *port;
	char *labels; /* NULL: the port is not printed */
	bool wanted;  /* the counters are to be read */
	bool failed;
	struct mad_counters counters;
};

static char *device;         /* NULL: any */
static unsigned port_number; /* 0: any */
static struct ibmad_port *local_port;
static struct mad_async *async;            /* NULL: the port is not open */
static struct mad_fabric *fabric;          /* the latest */
static struct mad_counters_node **classes; /* ClassPortInfo, by node */

static void *or_exit(void *memory)
{
	if (memory)
		return memory;
	perror("fabric-metrics");
	exit(1);
}

/* --- labels --------------------------------------------------------------------- */

/* A NodeDescription may have any bytes. Bytes that are not printable ASCII become "?". */
static void put_description(FILE *out, const struct mad_fabric_node *node)
{
	for (const char *at = node->description; *at; at++) {
		if (*at == '"' || *at == '\\')
			putc('\\', out);
		putc(*at >= ' ' && *at <= '~' ? *at : '?', out);
	}
}

static char *make_labels(const struct mad_fabric_port *port, int lid)
{
	char *text = NULL;
	size_t size;
	FILE *out = or_exit(open_memstream(&text, &size));

	fprintf(out, "guid=\"0x%016" PRIx64 "\",port=\"%u\",lid=\"%d\",node=\"",
		port->node->guid, port->number, lid);
	put_description(out, port->node);
	fprintf(out, "\",peer=\"");
	if (port->peer) {
		put_description(out, port->peer->node);
		fprintf(out, "/%u", port->peer->number);
	}
	fprintf(out, "\"");
	fclose(out);
	return or_exit(text);
}

/* --- reading the fabric --------------------------------------------------------- */

static int open_port(void)
{
	int mad_classes[] = {IB_SMI_DIRECT_CLASS, IB_PERFORMANCE_CLASS};

	local_port = mad_rpc_open_port(device, (int)port_number, mad_classes, 2);
	async = local_port ? or_exit(mad_async_create(local_port)) : NULL;
	return async ? 0 : -errno;
}

static void close_port(void)
{
	mad_async_destroy(async);
	mad_rpc_close_port(local_port);
	async = NULL;
	local_port = NULL;
}

static void forget(void)
{
	for (size_t i = 0; fabric && i < mad_fabric_node_count(fabric); i++)
		mad_counters_node_free(classes[i]);
	free(classes);
	mad_fabric_free(fabric);
}

/* ClassPortInfo is read once: it is kept of nodes that the former fabric has, too. */
static int discover(void)
{
	struct mad_counters_node **kept;
	const struct mad_fabric_node *node, *former;
	struct mad_fabric *found;
	int ret = mad_fabric_discover(local_port, NULL, &found);

	if (ret < 0)
		return ret;
	kept = or_exit(
		calloc(mad_fabric_node_count(found), sizeof(struct mad_counters_node *)));
	for (size_t i = 0; (node = mad_fabric_node(found, i)); i++) {
		former = fabric ? mad_fabric_find_guid(fabric, node->guid) : NULL;
		if (former && former->guid == node->guid && classes[former->index]) {
			kept[i] = classes[former->index];
			classes[former->index] = NULL;
		} else
			kept[i] = or_exit(mad_counters_node_create());
	}
	forget();
	fabric = found;
	classes = kept;
	return 0;
}

static void counters_came(struct mad_async *engine, int error,
			  const struct mad_counters *counters, void *arg)
{
	struct reading *reading = arg;

	(void)engine;
	reading->counters = *counters;
	reading->failed |= error && error != -EOPNOTSUPP; /* the node has none */
}

static void read_port(struct reading *reading)
{
	const struct mad_fabric_port *port = reading->port;
	bool is_switch = port->node->type == IB_NODE_SWITCH;
	ib_portid_t to = {.lid = mad_fabric_port_lid(fabric, port)};
	struct mad_counters_options options = {.node = classes[port->node->index]};
	int ret = 0;

	/* neither a base port 0 of a switch, nor a second node with one GUID: equal labels */
	if ((!port->number && !port->node->enhanced_port0) ||
	    mad_fabric_find_guid(fabric, port->node->guid) != port->node)
		return;
	reading->labels = make_labels(port, is_switch ? port->node->lid : port->lid);
	/* a CA's port without a known link may be of another subnet */
	reading->wanted = is_switch || port->peer || port == mad_fabric_origin(fabric);
	reading->failed = port->error || !to.lid;
	if (to.lid)
		ret = mad_counters_submit(async, &to, port->number, &options, counters_came,
					  reading, NULL);
	reading->failed |= ret < 0 && ret != -EOPNOTSUPP;
}

/* One reading for each port. */
static struct reading *read_ports(void)
{
	struct reading *readings =
		or_exit(calloc(mad_fabric_port_count(fabric) + 1, sizeof(*readings)));
	const struct mad_fabric_port *port = NULL;

	while ((port = mad_fabric_next_port(fabric, port))) {
		readings[port->index].port = port;
		read_port(&readings[port->index]);
	}
	mad_async_run(async);
	return readings;
}

/* --- the text ------------------------------------------------------------------- */

/* The metrics that are not counters, by numbers after those of the counters. */
enum {
	STATE = MAD_COUNTER_COUNT,
	PHYSICAL_STATE,
	RATE,
	UP,
	PEER_UP,
	METRIC_COUNT
};

static const struct {
	const char *name, *unit, *description, *field;
} gauges[] = {
	{"state", "", "1 Down, 2 Init, 3 Armed, 4 Active", "PortState"},
	{"physical_state", "",
	 "1 Sleep, 2 Polling, 3 Disabled, 4 Training, 5 LinkUp, 6 Recovery",
	 "PortPhysicalState"},
	{"rate_bytes_per_second", "bytes_per_second",
	 "Rate of the link; 0: the link is down or the rate is not known",
	 "LinkWidthActive, LinkSpeedActive"},
	{"up", "", "Whether the state and the counters of the port could be read",
	 "PortInfo, PortCounters"},
	{"peer_up", "", "Whether a node responds at the other end of the link", "NodeInfo"},
};

/* False: not known. */
static bool get_value(const struct reading *reading, unsigned metric, uint64_t *value)
{
	const struct mad_fabric_port *port = reading->port;

	switch (metric) {
	case STATE:
		*value = port->state;
		return port->info;
	case PHYSICAL_STATE:
		*value = port->physical_state;
		return port->info;
	case RATE:
		*value = (uint64_t)(port->rate_gbps * 1e9 / 8);
		return port->info;
	case UP:
		*value = !reading->failed;
		return reading->wanted;
	case PEER_UP:
		/* a response with an error is one, too */
		*value = port->peer || port->peer_error == -EIO || port->peer_error == -EBADMSG;
		return *value || port->peer_error == -ETIMEDOUT;
	default:
		*value = mad_counters_value(&reading->counters, metric);
		return reading->counters.present & MAD_COUNTER_BIT(metric);
	}
}

/* OpenMetrics' families do not have the suffix _total of their samples, and may have a UNIT. */
static void put_metric(FILE *out, bool prometheus, const struct reading *readings, size_t count,
		       unsigned metric)
{
	const struct mad_counter_info *info = mad_counters_info(metric);
	unsigned gauge = metric - MAD_COUNTER_COUNT;
	const char *name = info ? info->name : gauges[gauge].name;
	const char *unit = info ? info->unit : gauges[gauge].unit;
	const char *total = info ? "_total" : "", *suffix = prometheus ? total : "";
	const char *end = strstr(name, unit); /* a UNIT has to be the end of the name */
	uint64_t value;

	fprintf(out, "# TYPE ib_port_%s%s %s\n", name, suffix, info ? "counter" : "gauge");
	if (!prometheus && end && !strcmp(end, unit))
		fprintf(out, "# UNIT ib_port_%s %s\n", name, unit);
	fprintf(out, "# HELP ib_port_%s%s %s (%s)\n", name, suffix,
		info ? info->description : gauges[gauge].description,
		info ? info->field : gauges[gauge].field);
	for (size_t i = 0; i < count; i++)
		if (readings[i].labels && get_value(&readings[i], metric, &value))
			fprintf(out, "ib_port_%s%s{%s} %" PRIu64 "\n", name, total,
				readings[i].labels, value);
}

static void put_maxima(FILE *out, const struct reading *readings, size_t count)
{
	fprintf(out, "# TYPE ib_port_at_maximum gauge\n"
		     "# HELP ib_port_at_maximum 1: the counter may have missed events\n");
	for (size_t i = 0; i < count; i++)
		for (unsigned n = 0; n < MAD_COUNTER_COUNT; n++)
			if (readings[i].counters.at_maximum & MAD_COUNTER_BIT(n))
				fprintf(out, "ib_port_at_maximum{%s,counter=\"%s\"} 1\n",
					readings[i].labels, mad_counters_info(n)->name);
}

/* Reads the fabric and prints it. Returns 0 or a negative errno. */
static int expose(FILE *out, bool prometheus)
{
	struct reading *readings;
	size_t count;
	int ret = async ? 0 : open_port();

	if (!ret)
		ret = discover();
	if (ret == -ENODEV)
		close_port(); /* it may return */
	if (ret < 0)
		return ret;
	count = mad_fabric_port_count(fabric);
	readings = read_ports();
	for (unsigned metric = 0; metric < METRIC_COUNT; metric++)
		if (metric >= MAD_COUNTER_COUNT ||
		    MAD_COUNTERS_DEFAULT & MAD_COUNTER_BIT(metric))
			put_metric(out, prometheus, readings, count, metric);
	put_maxima(out, readings, count);
	if (!prometheus)
		fprintf(out, "# EOF\n");
	for (size_t i = 0; i < count; i++)
		free(readings[i].labels);
	free(readings);
	return fflush(out) ? -errno : 0;
}

/* --- HTTP ----------------------------------------------------------------------- */

#ifdef HAVE_MICROHTTPD
/* The thread of libmicrohttpd calls this for one request after the other. */
static enum MHD_Result respond(void *arg, struct MHD_Connection *connection, const char *url,
			       const char *method, const char *version, const char *upload,
			       size_t *upload_size, void **state)
{
	const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
	bool prometheus = *(bool *)arg || (accept && strstr(accept, "text/plain") &&
					   !strstr(accept, "openmetrics"));
	unsigned status = MHD_HTTP_OK;
	struct MHD_Response *response;
	enum MHD_Result result;
	char *text = NULL;
	size_t size;
	FILE *out = or_exit(open_memstream(&text, &size));

	(void)method, (void)version, (void)upload, (void)upload_size, (void)state;
	if (strcmp(url, "/metrics") != 0)
		status = MHD_HTTP_NOT_FOUND;
	else if (expose(out, prometheus) < 0)
		status = MHD_HTTP_SERVICE_UNAVAILABLE;
	fclose(out);
	response = or_exit(MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE));
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
				prometheus ? "text/plain; version=0.0.4; charset=utf-8"
					   : "application/openmetrics-text; version=1.0.0; "
					     "charset=utf-8");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static int serve(const struct addrinfo *to, const char *host, bool prometheus)
{
	unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD;
	struct MHD_Daemon *daemon = MHD_start_daemon(
		to->ai_family == AF_INET6 ? flags | MHD_USE_IPv6 : flags, 0, NULL, NULL,
		respond, &prometheus, MHD_OPTION_SOCK_ADDR, to->ai_addr, MHD_OPTION_END);

	if (!daemon) {
		perror("MHD_start_daemon");
		return 1;
	}
	fprintf(stderr, "http://%s:%u/metrics\n", host,
		MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
	for (;;)
		pause();
}
#else
static int serve(const struct addrinfo *to, const char *host, bool prometheus)
{
	(void)to, (void)host, (void)prometheus;
	fprintf(stderr,
		"fabric-metrics: --listen needs libmicrohttpd, and was built without\n");
	return 2;
}
#endif

/* --- the command line ----------------------------------------------------------- */

static int print(unsigned seconds, bool prometheus)
{
	int ret;

	while (!(ret = expose(stdout, prometheus)) && seconds)
		sleep(seconds);
	if (ret)
		fprintf(stderr, "fabric-metrics: %s\n", strerror(-ret));
	return ret != 0;
}

static _Noreturn void say_usage(void)
{
	fprintf(stderr, "usage: fabric-metrics [-C DEVICE] [-P PORT] [--prometheus] "
			"[SECONDS | --listen [ADDRESS:]PORT]\n");
	exit(2);
}

static unsigned get_number(const char *text, unsigned long least, unsigned long most)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || number < least || number > most)
		say_usage();
	return (unsigned)number;
}

/* PORT, ADDRESS:PORT or [ADDRESS]:PORT. The host is that of the URL. */
static struct addrinfo *get_address(char *text, const char **host)
{
	const struct addrinfo hints = {.ai_family = *text == '[' ? AF_INET6 : AF_INET,
				       .ai_socktype = SOCK_STREAM,
				       .ai_flags = AI_PASSIVE | AI_NUMERICHOST};
	char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text, *address = NULL;
	struct addrinfo *found;

	get_number(port, 0, UINT16_MAX);
	*host = "localhost";
	if (colon) {
		*colon = '\0';
		*host = text;
		address = or_exit(strdup(*text == '[' ? text + 1 : text));
		if (*text == '[')
			*(colon[-1] == ']' ? strrchr(address, ']') : address) = '\0';
	}
	if (getaddrinfo(address, port, &hints, &found) != 0)
		say_usage();
	free(address);
	return found;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"prometheus", no_argument, NULL, 'p'},
						{"listen", required_argument, NULL, 'l'},
						{0}};
	unsigned seconds = 0;
	int status, option;
	struct addrinfo *address = NULL;
	bool prometheus = false;
	const char *host = NULL;

	while ((option = getopt_long(argc, argv, "C:P:", options, NULL)) != -1) {
		if (option == 'C')
			device = optarg;
		else if (option == 'P')
			port_number = get_number(optarg, 1, UINT8_MAX);
		else if (option == 'p')
			prometheus = true;
		else if (option == 'l' && !address)
			address = get_address(optarg, &host);
		else
			say_usage();
	}
	if (optind < argc && !address)
		seconds = get_number(argv[optind++], 1, UINT32_MAX);
	if (optind < argc)
		say_usage();
	if (open_port() < 0) {
		perror("mad_rpc_open_port");
		return 1;
	}
	status = address ? serve(address, host, prometheus) : print(seconds, prometheus);
	close_port();
	if (address)
		freeaddrinfo(address);
	forget();
	return status;
}
