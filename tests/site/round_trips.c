/* SPDX-License-Identifier: BSD-2-Clause */

/* Round trips of Gets: sequential, and many in parallel. */
#include "report.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/mad_counters.h>
#include <infiniband/mad_errors.h>
#include <infiniband/mad_fields.h>
#include <stdlib.h>
#include <string.h>

#define SEQUENTIAL         200 /* requests of a sequential series */
#define AT_ONCE            1000
#define PEER_ONCE          256
#define SA_CLASS_PORT_INFO 0x0001

struct series {
	unsigned rtt_us[AT_ONCE];
	unsigned count, failed, retransmitted;
	char failure[160];             /* the first failure, as text */
	uint8_t data[IB_SA_DATA_SIZE]; /* of the last response */
};

static void came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	struct series *series = arg;

	(void)async;
	series->retransmitted += reply->transmissions ? reply->transmissions - 1 : 0;
	if (reply->error) {
		if (!series->failed++)
			mad_failure_text(NULL, series->failure, sizeof(series->failure));
		/* an error status is a response, too */
		if (reply->error != -EIO)
			return;
	} else if (reply->data) {
		size_t size = reply->data_size < sizeof(series->data) ? reply->data_size
								      : sizeof(series->data);

		memcpy(series->data, reply->data, size);
	}
	if (series->count < AT_ONCE)
		series->rtt_us[series->count++] = reply->rtt_us;
}

static int by_size(const void *a, const void *b)
{
	const unsigned *first = a, *second = b;

	return (*first > *second) - (*first < *second);
}

static void print_series(const char *name, struct series *series, unsigned requests)
{
	unsigned *rtt = series->rtt_us, count = series->count;

	if (count) {
		qsort(rtt, count, sizeof(*rtt), by_size);
		fact(name,
		     "%u of %u: min %u, median %u, 99%% %u, max %u us; %u retransmissions",
		     count, requests, rtt[0], rtt[count / 2], rtt[(count - 1) * 99 / 100],
		     rtt[count - 1], series->retransmitted);
	}
	if (series->failed)
		wrong("%s: %u of %u failed: %s", name, series->failed, requests,
		      series->failure);
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

/* Submits requests, and waits after each one or for all. */
static void run(struct site *site, struct series *series, ib_rpc_t rpc, const ib_portid_t *to,
		const void *payload, size_t size, unsigned count, bool at_once)
{
	memset(series, 0, sizeof(*series));
	for (unsigned i = 0; i < count; i++) {
		int error = mad_async_submit(site->async, &rpc, to, payload, size, came, series,
					     NULL);

		if (error) {
			series->failed++;
			snprintf(series->failure, sizeof(series->failure), "not submitted: %s",
				 strerror(-error));
			return;
		}
		if (!at_once)
			mad_async_wait(site->async, -1);
		/* stop if the node does not respond */
		if (!at_once && series->failed && !series->count)
			return;
	}
	mad_async_wait(site->async, -1);
}

/* A sequential series; true if there was a response. */
static bool measure(struct site *site, const char *name, ib_rpc_t rpc, const ib_portid_t *to,
		    const void *payload, size_t size, struct series *series)
{
	run(site, series, rpc, to, payload, size, SEQUENTIAL, false);
	print_series(name, series, SEQUENTIAL);
	return series->count && !series->failed;
}

static void measure_at_once(struct site *site, const ib_portid_t *to, unsigned count)
{
	struct series series;
	uint64_t started = clock_ms(), took;

	run(site, &series, get(IB_SMI_DIRECT_CLASS, IB_ATTR_NODE_INFO, 0), to, NULL, 0, count,
	    true);
	took = clock_ms() - started;
	print_series("many at once, NodeInfo", &series, count);
	fact("", "%" PRIu64 " ms", took);
	print_flow(site);
}

static void print_counters(struct site *site, const char *name, int lid, unsigned port)
{
	struct mad_counters_options options = {.counters = MAD_COUNTERS_ERRORS};
	ib_portid_t to = {.lid = lid};
	struct mad_counters counters;
	int error =
		mad_counters_read(site->port, &to, port, &options, &counters, sizeof(counters));

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

void measure_local(struct site *site)
{
	ib_portid_t by_route = {0}, by_lid = {.lid = (int)site->local->base_lid};
	int number = site->local->portnum;
	struct series series;

	part("round trips to the local port");
	if (by_lid.lid)
		print_counters(site, "before", by_lid.lid, (unsigned)number);
	/* these stay in the adapter: no limit applies */
	mad_port_set(site->port, MAD_PORT_RATE, 0);
	measure(site, "NodeInfo, route 0", get(IB_SMI_DIRECT_CLASS, IB_ATTR_NODE_INFO, 0),
		&by_route, NULL, 0, &series);
	measure(site, "PortInfo, route 0",
		get(IB_SMI_DIRECT_CLASS, IB_ATTR_PORT_INFO, (unsigned)number), &by_route, NULL,
		0, &series);
	if (by_lid.lid) {
		measure(site, "NodeInfo, LID", get(IB_SMI_CLASS, IB_ATTR_NODE_INFO, 0), &by_lid,
			NULL, 0, &series);
		measure(site, "PMA ClassPortInfo",
			get(IB_PERFORMANCE_CLASS, CLASS_PORT_INFO, 0), &by_lid, NULL, 0,
			&series);
	} else {
		wrong("the port has no LID: there is no subnet manager");
	}
	measure_at_once(site, &by_route, AT_ONCE);
	mad_port_set(site->port, MAD_PORT_RATE, site->rate);
	if (by_lid.lid)
		print_counters(site, "after", by_lid.lid, (unsigned)number);
}

/* The LID of a switch is that of its port 0. */
static void find_peer_lid(struct site *site)
{
	struct series series;
	unsigned port = site->peer_type == IB_NODE_SWITCH ? 0 : site->peer_port;

	run(site, &series, get(IB_SMI_DIRECT_CLASS, IB_ATTR_PORT_INFO, port), &site->peer, NULL,
	    0, 1, false);
	if (series.count)
		site->peer_lid = (int)mad_get_field(series.data, 0, IB_PORT_LID_F);
}

void measure_peer(struct site *site)
{
	struct series series;
	ib_portid_t by_lid = {0};

	part("round trips to the node at the other end of the cable");
	if (site->local->phys_state != 5) {
		wrong("the port has no link");
		return;
	}
	site->peer.drpath.cnt = 1;
	site->peer.drpath.p[1] = (uint8_t)site->local->portnum;
	site->has_peer = measure(site, "NodeInfo, route 0,port",
				 get(IB_SMI_DIRECT_CLASS, IB_ATTR_NODE_INFO, 0), &site->peer,
				 NULL, 0, &series);
	if (!site->has_peer)
		return;
	site->peer_type = mad_get_field(series.data, 0, IB_NODE_TYPE_F);
	site->peer_port = mad_get_field(series.data, 0, IB_NODE_LOCAL_PORT_F);
	site->peer_ports = mad_get_field(series.data, 0, IB_NODE_NPORTS_F);
	fact("node", "%s, %u ports, vendor 0x%06x, device 0x%04x, revision 0x%x",
	     site->peer_type == IB_NODE_SWITCH ? "switch"
	     : site->peer_type == IB_NODE_CA   ? "CA"
					       : "router",
	     site->peer_ports, mad_get_field(series.data, 0, IB_NODE_VENDORID_F),
	     mad_get_field(series.data, 0, IB_NODE_DEVID_F),
	     mad_get_field(series.data, 0, IB_NODE_REVISION_F));
	find_peer_lid(site);
	fact("LID", "%d", site->peer_lid);
	by_lid.lid = site->peer_lid;
	if (by_lid.lid)
		print_counters(site, "before", by_lid.lid, site->peer_port);
	measure(site, "PortInfo, route 0,port",
		get(IB_SMI_DIRECT_CLASS, IB_ATTR_PORT_INFO, site->peer_port), &site->peer, NULL,
		0, &series);
	if (by_lid.lid) {
		measure(site, "NodeInfo, LID", get(IB_SMI_CLASS, IB_ATTR_NODE_INFO, 0), &by_lid,
			NULL, 0, &series);
		measure(site, "PMA ClassPortInfo",
			get(IB_PERFORMANCE_CLASS, CLASS_PORT_INFO, 0), &by_lid, NULL, 0,
			&series);
	}
	measure_at_once(site, &site->peer, PEER_ONCE);
	if (by_lid.lid)
		print_counters(site, "after", by_lid.lid, site->peer_port);
}

void measure_sa(struct site *site)
{
	ib_portid_t sa = {.lid = (int)site->local->sm_lid, .sl = (uint8_t)site->local->sm_sl};
	ib_rpc_t rpc = get(IB_SA_CLASS, SA_CLASS_PORT_INFO, 0);
	uint8_t record[IB_SA_DATA_SIZE] = {0};
	struct series series;

	part("round trips to the SA");
	if (!sa.lid) {
		wrong("the port knows no subnet manager");
		return;
	}
	if (measure(site, "ClassPortInfo", rpc, &sa, NULL, 0, &series))
		fact("", "CapabilityMask 0x%04x, RespTimeValue %u",
		     mad_get_field(series.data, 0, IB_CPI_CAPMASK_F),
		     mad_get_field(series.data, 0, IB_CPI_RESP_TIME_VALUE_F));
	/* the record of the local port: NodeRecord by LID (IBA 15.2.5.2), component mask bit 0
	 */
	record[0] = (uint8_t)(site->local->base_lid >> 8);
	record[1] = (uint8_t)site->local->base_lid;
	rpc = get(IB_SA_CLASS, IB_SA_ATTR_NODERECORD, 0);
	rpc.mask = 1;
	measure(site, "NodeRecord of this port", rpc, &sa, record, sizeof(record), &series);
	print_flow(site);
}

void measure_ethernet(struct site *site)
{
	ib_portid_t self = {.grh_present = 1};
	struct series series;
	char path[128], text[64] = "";
	FILE *file;

	part("round trips to the local port");
	fact("", "a RoCE port: without QP0 it has no SMPs, and Ethernet has no SA");
	snprintf(path, sizeof(path), SYS_INFINIBAND "/%s/ports/%d/gids/0", site->local->ca_name,
		 site->local->portnum);
	file = fopen(path, "r");
	if (!file || !fgets(text, sizeof(text), file))
		text[0] = '\0';
	if (file)
		fclose(file);
	text[strcspn(text, "\n")] = '\0';
	if (inet_pton(AF_INET6, text, self.gid) != 1) {
		wrong("the port has no GID");
		return;
	}
	/*
	 * The kernel of the port responds. Soft-RoCE has no PMA, and some kernels do not
	 * respond to this class: no failure.
	 */
	mad_rpc_set_retries(site->port, 1);
	run(site, &series, get(IB_PERFORMANCE_CLASS, CLASS_PORT_INFO, 0), &self, NULL, 0,
	    SEQUENTIAL, false);
	if (series.failed)
		fact("PMA ClassPortInfo", "%s", series.failure);
	series.failed = 0;
	print_series("PMA ClassPortInfo", &series, SEQUENTIAL);
	print_flow(site);
}
