/* SPDX-License-Identifier: BSD-2-Clause */

/* The counters of all ports of a fabric, over discoveries. */

#include "counted_fabric.h"
#include "test.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>

#define GB     UINT64_C(1000000000)
#define DAY_US (INT64_C(86400) * 1000000)

static struct mad_fabric_counters *counters;
static struct mad_fabric *fabric;
static struct mad_async *async;
static uint64_t id; /* of the latest reading on it */

/* What the callback got. */
static struct {
	int calls, error;
	size_t read;
} done;

static void note(struct mad_async *engine, int error, struct mad_fabric_counters *read,
		 void *arg)
{
	assert_ptr_equal(engine, async);
	assert_ptr_equal(arg, &done);
	done.calls++;
	done.error = error;
	done.read = read->latest->read;
	if (error)
		assert_int_equal(mad_last_failure()->error, error);
}

static void use_settings(const struct mad_fabric_counters_settings *settings)
{
	mad_fabric_counters_free(counters);
	counters = mad_fabric_counters_create(settings);
	assert_non_null(counters);
}

/* As after a discovery. */
static void discover(void)
{
	struct mad_fabric *former = fabric;

	fabric = counted_fabric();
	assert_int_equal(mad_fabric_counters_set_fabric(counters, fabric), 0);
	mad_fabric_free(former);
}

static int setup(void)
{
	if (setup_fabric())
		return -1;
	memset(&done, 0, sizeof(done));
	use_settings(NULL);
	discover();
	return 0;
}

static int teardown(void)
{
	device_fail_malloc(0);
	mad_async_free(async);
	async = NULL;
	mad_fabric_counters_free(counters);
	counters = NULL;
	mad_fabric_free(fabric);
	fabric = NULL;
	return fixture_teardown();
}

FIXTURE(setup, teardown);

static int read_with(const struct mad_fabric_counters_options *options)
{
	clock_skip += 1000000;
	return mad_fabric_counters_read(fixture.port, counters, options);
}

static void read_all(void)
{
	assert_int_equal(read_with(NULL), 0);
}

static const struct mad_fabric_counters_port *find(int node, unsigned number)
{
	return mad_fabric_counters_find(counters, net.nodes[node].guid, number);
}

static uint64_t total_of(int node, unsigned number)
{
	const struct mad_fabric_counters_port *port = find(node, number);

	assert_non_null(port);
	assert_non_null(port->totals);
	assert_true(port->totals->total.present & MAD_COUNTER_BIT(MAD_COUNTER_RCV_BYTES));
	return port->totals->total.rcv_bytes;
}

static void receive(int node, unsigned number, uint64_t bytes)
{
	net.nodes[node].counts[number][1] += bytes;
}

static int error_of(int node, unsigned number)
{
	return find(node, number)->error;
}

static unsigned requests_of(int node)
{
	unsigned count = net.nodes[node].class_port_infos + net.nodes[node].node_infos;

	for (unsigned i = 0; i < PORTS; i++)
		count += net.nodes[node].requests[i];
	return count;
}

static const struct mad_fabric_counters_summary *latest(void)
{
	return counters->latest;
}

/* --- totals ----------------------------------------------------------------------- */

TEST(a_reading_has_each_port)
{
	const struct mad_fabric_counters_port *each = NULL;
	unsigned ports = 0, readings = 0;
	uint64_t guid = 0;
	int number = -1;

	receive(2, 1, 400);
	read_all();
	while ((each = mad_fabric_counters_next(counters, each))) {
		ports++;
		readings += each->reading != NULL;
		assert_int_equal(each->error, 0);
		assert_int_equal(each->is_latest, each->reading != NULL);
		assert_int_equal(each->time_us != 0, each->reading != NULL);
		assert_ptr_equal(each->port,
				 mad_fabric_get_port(mad_fabric_find_guid(fabric, each->guid),
						     each->number));
		if (each->guid == guid)
			assert_true(each->number > number);
		else
			assert_true(each->guid > guid);
		guid = each->guid;
		number = each->number;
	}
	/* a base port 0 has no counters */
	assert_int_equal(ports, 6 + 3);
	assert_int_equal(readings, 5 + 3);
	assert_int_equal(latest()->wanted, 8);
	assert_int_equal(latest()->read, 8);
	assert_int_equal(latest()->failed, 0);
	assert_int_equal(latest()->error, 0);
	/* ClassPortInfo of each node, two attributes of each port */
	assert_int_equal(latest()->requests, 4 + 2 * 8);
	assert_int_equal(device_written() - net.local, 4 + 2 * 8);
	assert_true(latest()->begin_us && latest()->end_us >= latest()->begin_us);
	assert_int_equal(find(2, 1)->reading->rcv_bytes, 400);
	assert_int_equal(find(2, 1)->reading->port, 1);
	assert_int_equal(find(2, 1)->reading->extended & 3, 3);
}

TEST(a_total_begins_at_0_and_is_unknown_after_one_reading)
{
	receive(1, 1, 4000);
	read_all();
	assert_true(find(1, 1)->totals->total.present == 0);
	assert_true(isnan(mad_counters_tracker_rate(find(1, 1)->tracker, MAD_COUNTER_RCV_BYTES,
						    MAD_RATE_LATEST)));
	receive(1, 1, 1000);
	read_all();
	assert_int_equal(total_of(1, 1), 1000);
	assert_int_equal(total_of(2, 1), 0);
	assert_int_equal(find(1, 1)->totals->readings, 2);
}

TEST(a_total_may_begin_at_the_value_of_the_device)
{
	use_settings(&(struct mad_fabric_counters_settings){.flags = MAD_COUNTERS_FROM_DEVICE});
	discover();
	receive(1, 1, 4000);
	read_all();
	assert_int_equal(total_of(1, 1), 4000);
	receive(1, 1, 1000);
	read_all();
	assert_int_equal(total_of(1, 1), 5000);
}

TEST(a_rate_is_over_a_discovery)
{
	double rate;

	read_all();
	receive(1, 1, 4000000);
	discover();
	read_all();
	rate = mad_counters_tracker_rate(find(1, 1)->tracker, MAD_COUNTER_RCV_BYTES,
					 MAD_RATE_LATEST);
	/* the clock was moved by a second, and has gone on */
	assert_true(rate > 0 && rate <= 4000000);
	rate = mad_counters_tracker_rate(find(1, 1)->tracker, MAD_COUNTER_RCV_BYTES,
					 MAD_RATE_MEAN);
	assert_true(rate > 0 && rate <= 4000000);
}

TEST(a_node_that_moves_keeps_its_totals)
{
	struct counted_device moved;

	read_all();
	receive(1, 1, 1000);
	read_all();
	/* the hosts 1 and 3 change places and LIDs; the LID of host 2 changes */
	moved = net.nodes[1];
	net.nodes[1] = net.nodes[3];
	net.nodes[3] = moved;
	net.nodes[2].lid = 77;
	discover();
	receive(3, 1, 500);
	receive(2, 1, 20);
	read_all();
	assert_int_equal(total_of(3, 1), 1500);
	assert_int_equal(total_of(1, 1), 0);
	assert_int_equal(total_of(2, 1), 20);
	assert_int_equal(find(3, 1)->events, 0);
	assert_int_equal(find(3, 1)->port->peer->number, 3);
}

TEST(a_node_that_is_replaced_never_adds_to_the_old_one)
{
	uint64_t old = net.nodes[1].guid;

	read_all();
	receive(1, 1, 1000);
	read_all();
	net.nodes[1].guid = 0x999;
	receive(1, 1, 5000);
	discover();
	read_all();
	receive(1, 1, 32);
	read_all();
	assert_int_equal(total_of(1, 1), 32);
	assert_int_equal(mad_fabric_counters_find(counters, old, 1)->totals->total.rcv_bytes,
			 1000);
	assert_null(mad_fabric_counters_find(counters, old, 1)->port);
	assert_false(mad_fabric_counters_find(counters, old, 1)->is_latest);
	/* the old node returns at another LID */
	add_device(IB_NODE_CA, 1)->guid = old;
	receive(4, 1, 60000);
	discover();
	read_all();
	assert_int_equal(total_of(4, 1), 60000);
	assert_int_equal(total_of(1, 1), 32);
}

TEST(a_node_that_restarts_goes_on_from_0)
{
	receive(1, 1, 8000);
	read_all();
	net.nodes[1].counts[1][1] = 300;
	read_all();
	assert_int_equal(find(1, 1)->events, MAD_COUNTERS_RESTARTED);
	assert_int_equal(total_of(1, 1), 300);
	read_all();
	assert_int_equal(find(1, 1)->events, 0);
	assert_int_equal(find(1, 1)->totals->restarts, 1);
}

TEST(a_node_may_get_more_ports)
{
	receive(0, 5, 80);
	read_all();
	receive(0, 5, 32);
	net.nodes[0].ports = 7;
	discover();
	read_all();
	assert_int_equal(total_of(0, 5), 32);
	assert_non_null(find(0, 7)->reading);
	/* and fewer: the ports that are gone are not read */
	net.nodes[0].ports = 4;
	receive(0, 5, 100);
	discover();
	read_all();
	assert_null(find(0, 5)->port);
	assert_int_equal(total_of(0, 5), 32);
	assert_null(find(0, 8));
}

TEST(of_several_nodes_with_one_guid_the_first_is_read)
{
	receive(1, 1, 400);
	receive(3, 1, 4000);
	net.nodes[3].guid = net.nodes[1].guid;
	use_settings(NULL);
	discover();
	read_all();
	assert_int_equal(latest()->wanted, 5 + 2);
	assert_int_equal(find(1, 1)->reading->rcv_bytes, 400);
	assert_ptr_equal(find(1, 1)->port->node, mad_fabric_get_node(fabric, 1));
	assert_int_equal(net.nodes[3].requests[1], 0);
}

/* --- nodes that are absent -------------------------------------------------------- */

TEST(an_absent_node_is_kept_for_its_time)
{
	use_settings(&(struct mad_fabric_counters_settings){.keep_s = 60});
	discover();
	receive(1, 1, 100);
	read_all();
	net.nodes[1].absent = true;
	discover();
	read_all();
	clock_skip += 50 * INT64_C(1000000);
	discover();
	assert_non_null(find(1, 1));
	net.nodes[1].absent = false;
	discover();
	receive(1, 1, 8);
	read_all();
	assert_int_equal(total_of(1, 1), 8);
	/* the time begins again */
	net.nodes[1].absent = true;
	clock_skip += 50 * INT64_C(1000000);
	discover();
	assert_non_null(find(1, 1));
	clock_skip += 61 * INT64_C(1000000);
	discover();
	assert_null(find(1, 1));
	assert_non_null(find(2, 1));
}

/* The absence begins with the fabric that does not have the node, however old the other is. */
TEST(an_old_fabric_loses_no_totals)
{
	use_settings(&(struct mad_fabric_counters_settings){.keep_s = 1});
	discover();
	read_all();
	receive(1, 1, 100);
	read_all();
	clock_skip += 10 * INT64_C(1000000);
	assert_int_equal(mad_fabric_counters_set_fabric(counters, NULL), 0);
	assert_int_equal(total_of(1, 1), 100);
	discover();
	assert_int_equal(total_of(1, 1), 100);
}

TEST(a_day_and_for_ever)
{
	net.nodes[1].absent = true;
	read_all();
	discover();
	clock_skip += DAY_US - 10000000;
	discover();
	assert_non_null(find(1, 1));
	clock_skip += 11000000;
	discover();
	assert_null(find(1, 1));
	net.nodes[1].absent = false;
	use_settings(&(struct mad_fabric_counters_settings){.keep_s = UINT_MAX});
	discover();
	read_all();
	net.nodes[1].absent = true;
	clock_skip += INT64_C(1000) * 365 * DAY_US;
	discover();
	assert_non_null(find(1, 1));
}

TEST(a_node_is_forgotten_by_a_call)
{
	receive(1, 1, 100);
	receive(2, 1, 100);
	read_all();
	net.nodes[1].absent = true;
	discover();
	assert_int_equal(mad_fabric_counters_forget(counters, net.nodes[1].guid), 0);
	assert_null(find(1, 1));
	assert_int_equal(mad_fabric_counters_forget(counters, net.nodes[1].guid), -ENOENT);
	assert_int_equal(mad_fabric_counters_forget(NULL, 1), -EINVAL);
	/* of a node in the fabric, only the readings */
	assert_int_equal(mad_fabric_counters_forget(counters, net.nodes[2].guid), 0);
	assert_null(find(2, 1)->reading);
	assert_null(find(2, 1)->totals);
	assert_non_null(find(3, 1)->reading);
	read_all();
	assert_int_equal(find(2, 1)->totals->readings, 1);
	assert_int_equal(net.nodes[2].class_port_infos, 2);
}

TEST(a_forgotten_node_that_returns_begins_again)
{
	/* until then, not even "for ever" keeps it */
	use_settings(&(struct mad_fabric_counters_settings){.keep_s = UINT_MAX});
	discover();
	for (int absences = 1; absences < 3; absences++) {
		net.nodes[1].absent = false;
		discover();
		read_all();
		receive(1, 1, 100);
		read_all();
		net.nodes[1].absent = true;
		for (int i = 0; i < absences; i++)
			discover();
		assert_int_equal(total_of(1, 1), 100);
		assert_int_equal(mad_fabric_counters_forget(counters, net.nodes[1].guid), 0);
		for (int i = 1; i < absences; i++)
			discover();
		assert_null(find(1, 1));
		assert_int_equal(mad_fabric_counters_forget(counters, net.nodes[1].guid),
				 -ENOENT);
	}
	net.nodes[1].absent = false;
	discover();
	assert_null(find(1, 1)->reading);
	read_all();
	assert_int_equal(find(1, 1)->totals->readings, 1);
	assert_int_equal(mad_fabric_counters_forget(counters, net.nodes[1].guid), 0);
}

TEST(all_nodes_of_a_former_fabric_can_be_forgotten)
{
	read_all();
	assert_int_equal(mad_fabric_counters_set_fabric(counters, NULL), 0);
	for (int i = 0; i < net.count; i++) {
		assert_non_null(mad_fabric_counters_next(counters, NULL));
		assert_int_equal(mad_fabric_counters_forget(counters, net.nodes[i].guid), 0);
	}
	assert_null(mad_fabric_counters_next(counters, NULL));
	assert_int_equal(mad_fabric_counters_set_fabric(counters, fabric), 0);
	assert_non_null(find(1, 1));
}

TEST(an_object_may_have_no_fabric)
{
	read_all();
	assert_int_equal(mad_fabric_counters_set_fabric(counters, NULL), 0);
	mad_fabric_free(fabric);
	fabric = NULL;
	assert_null(find(1, 1)->port);
	assert_int_equal(find(1, 1)->totals->readings, 1);
	/* a port that was never read is gone with the fabric */
	assert_null(find(0, 0));
	read_all();
	assert_int_equal(latest()->wanted, 0);
	assert_int_equal(find(1, 1)->totals->readings, 1);
}

/* --- what is requested ------------------------------------------------------------ */

TEST(class_port_info_is_read_once_for_each_fabric)
{
	for (int i = 0; i < 3; i++)
		read_all();
	assert_int_equal(net.nodes[0].class_port_infos, 1);
	assert_int_equal(net.nodes[1].class_port_infos, 1);
	discover();
	read_all();
	assert_int_equal(net.nodes[0].class_port_infos, 2);
	assert_int_equal(net.nodes[1].class_port_infos, 2);
	receive(1, 1, 1000);
	read_all();
	net.nodes[1].counts[1][1] = 8;
	read_all();
	assert_int_equal(net.nodes[1].class_port_infos, 2);
	read_all();
	read_all();
	assert_int_equal(net.nodes[1].class_port_infos, 3);
	assert_int_equal(net.nodes[2].class_port_infos, 2);
}

TEST(a_reading_has_no_counters_that_the_node_has_lost)
{
	const uint64_t wait = MAD_COUNTER_BIT(MAD_COUNTER_XMIT_WAIT_TICKS);
	const unsigned all = MAD_PMA_EXTENDED_WIDTH | MAD_PMA_XMIT_WAIT;

	net.nodes[1].capabilities = all;
	read_all();
	read_all();
	assert_true(find(1, 1)->reading->present & wait);
	net.nodes[1].lacks_extended = true;
	net.nodes[1].capabilities = 0;
	read_all();
	assert_int_equal(find(1, 1)->error, 0);
	assert_false(find(1, 1)->reading->present & wait);
	assert_int_equal(net.nodes[1].class_port_infos, 2);
	assert_int_equal(latest()->wanted, latest()->read);
	net.nodes[1].lacks_extended = false;
	net.nodes[1].capabilities = all;
	discover();
	read_all();
	assert_true(find(1, 1)->reading->present & wait);
}

TEST(a_node_whose_class_port_info_is_wrong_is_not_asked_again)
{
	net.nodes[1].lacks_extended = true;
	for (int i = 0; i < 3; i++)
		read_all();
	assert_int_equal(net.nodes[1].class_port_infos, 1);
	assert_int_equal(net.nodes[1].extended, 1);
}

TEST(another_firmware_s_counters_begin_again)
{
	read_all();
	receive(1, 1, 1000);
	read_all();
	net.nodes[1].absent = true;
	discover();
	net.nodes[1].absent = false;
	net.nodes[1].capabilities |= MAD_PMA_XMIT_WAIT;
	receive(1, 1, 1000);
	discover();
	read_all();
	assert_int_equal(find(1, 1)->events & MAD_COUNTERS_REPLACED, MAD_COUNTERS_REPLACED);
	assert_int_equal(total_of(1, 1), 1000);
}

TEST(basic_counters_are_one_request_a_port)
{
	const struct mad_fabric_counters_options basic = {.basic = true};

	assert_int_equal(read_with(&basic), 0);
	assert_int_equal(latest()->requests, 8);
	assert_int_equal(device_written() - net.local, 8);
	assert_int_equal(find(1, 1)->reading->extended, 0);
}

static unsigned asked;

static bool is_odd(const struct mad_fabric_port *port, void *arg)
{
	assert_ptr_equal(arg, &asked);
	asked++;
	return port->number % 2;
}

static const struct which {
	const char *behaviour;
	unsigned leave_out;
	bool filter;
	unsigned of_switch, of_hosts; /* ports */
	bool enhanced_port0;
} whiches[] = {
	{"all_ports_are_read", 0, false, 5, 3, false},
	{"an_enhanced_port_0_is_read", 0, false, 6, 3, true},
	{"port_0_is_left_out", MAD_FABRIC_COUNTERS_NO_PORT0, false, 5, 3, true},
	{"switches_are_left_out", MAD_FABRIC_COUNTERS_NO_SWITCHES, false, 0, 3, true},
	{"hosts_are_left_out", MAD_FABRIC_COUNTERS_NO_OTHERS, false, 5, 0, false},
	{"ports_that_are_down_are_left_out", MAD_FABRIC_COUNTERS_NO_DOWN, false, 3, 3, false},
	{"a_filter_leaves_out_ports", 0, true, 3, 3, true},
	{"a_filter_and_bits_leave_out_ports", MAD_FABRIC_COUNTERS_NO_SWITCHES, true, 0, 3,
	 false},
	{"nothing_is_read", 3, false, 0, 0, false},
};

static void read_which(const void *row)
{
	const struct which *which = row;
	struct mad_fabric_counters_options options = {.leave_out = which->leave_out};
	struct mad_fabric_node *node = graph_node(fabric, 0);

	node->enhanced_port0 = which->enhanced_port0;
	asked = 0;
	if (which->filter) {
		options.filter = is_odd;
		options.filter_arg = &asked;
	}
	assert_int_equal(read_with(&options), 0);
	assert_int_equal(latest()->wanted, which->of_switch + which->of_hosts);
	assert_int_equal(latest()->read, which->of_switch + which->of_hosts);
	assert_int_equal(net.nodes[0].class_port_infos, which->of_switch != 0);
	assert_int_equal(net.nodes[3].class_port_infos, which->of_hosts != 0);
	assert_int_equal(asked > 0, which->filter);
	if (!which->of_switch)
		assert_int_equal(find(0, 1)->time_us, 0);
}

TEST_ROWS(read_which, whiches);

TEST(ports_that_a_reading_leaves_out_keep_their_readings)
{
	const struct mad_fabric_counters_options hosts = {
		.leave_out = MAD_FABRIC_COUNTERS_NO_SWITCHES};

	read_all();
	assert_int_equal(read_with(&hosts), 0);
	assert_true(find(1, 1)->is_latest);
	assert_false(find(0, 1)->is_latest);
	assert_int_equal(find(0, 1)->totals->readings, 1);
	assert_int_equal(find(1, 1)->totals->readings, 2);
}

TEST(a_host_without_a_link_is_not_read)
{
	net.nodes[0].absent = true;
	discover();
	read_all();
	assert_int_equal(latest()->wanted, 0);
}

TEST(more_nodes_than_are_read_at_once)
{
	enum {
		MANY = 5000
	};
	struct mad_fabric *many = graph_create();
	struct mad_fabric_node *node, *hub;

	hub = graph_add_node(many, 1, IB_NODE_SWITCH, 1);
	assert_non_null(hub);
	for (unsigned i = 0; i < MANY; i++) {
		node = graph_add_node(many, 0x1000 + i, IB_NODE_CA, 1);
		assert_non_null(node);
		node->entry_port = 1;
		/* one device behind all LIDs of an LMC responds for all */
		node->lid = graph_port(node, 1)->lid = FIRST_LID + 1;
		graph_link(graph_port(node, 1), graph_port(hub, 1));
		graph_port(node, 1)->peer = graph_port(hub, 1);
	}
	assert_int_equal(graph_finish(many), 0);
	assert_int_equal(mad_fabric_counters_set_fabric(counters, many), 0);
	assert_int_equal(read_with(&(struct mad_fabric_counters_options){.basic = true}), 0);
	assert_int_equal(latest()->read, MANY);
	assert_int_equal(mad_fabric_counters_set_fabric(counters, NULL), 0);
	mad_fabric_free(many);
}

/* --- nodes without a response ----------------------------------------------------- */

static void be_impatient(void)
{
	mad_rpc_set_timeout(fixture.port, 5);
	mad_rpc_set_retries(fixture.port, 1);
}

TEST(a_dead_node_costs_one_request)
{
	be_impatient();
	read_all();
	receive(0, 1, 400);
	read_all();
	net.nodes[0].counts[1][1] = 0;
	read_all();
	assert_int_equal(find(0, 1)->events, MAD_COUNTERS_RESTARTED);
	net.nodes[0].dead = true;
	receive(1, 1, 40);
	read_all();
	assert_int_equal(find(0, 1)->events, 0);
	assert_int_equal(latest()->wanted, 8);
	assert_int_equal(latest()->read, 3);
	assert_int_equal(latest()->failed, 5);
	for (unsigned i = 1; i <= 5; i++) {
		assert_int_equal(error_of(0, i), -ETIMEDOUT);
		assert_true(find(0, i)->is_latest);
		assert_int_equal(find(0, i)->totals->readings, 3);
	}
	assert_int_equal(latest()->requests, 2 * 3 + 1);
	assert_int_equal(total_of(1, 1), 40);
	net.nodes[0].dead = false;
	read_all();
	assert_int_equal(error_of(0, 5), 0);
	assert_int_equal(find(0, 5)->totals->readings, 4);
}

TEST(a_port_has_the_status_of_its_response)
{
	read_all();
	net.nodes[0].status = 0x1c;
	read_all();
	assert_int_equal(error_of(0, 1), -EIO);
	assert_int_equal(find(0, 1)->status, 0x1c);
	/* a response: the other ports are requested */
	assert_int_equal(find(0, 5)->status, 0x1c);
	assert_int_equal(net.nodes[0].requests[5], 3);
	net.nodes[0].status = 0;
	read_all();
	assert_int_equal(find(0, 1)->status, 0);
}

TEST(a_node_that_stops_responding_costs_two_requests)
{
	be_impatient();
	read_all();
	net.nodes[0].silent = 1 << 2;
	read_all();
	assert_int_equal(latest()->failed, 1);
	assert_int_equal(error_of(0, 2), -ETIMEDOUT);
	assert_int_equal(error_of(0, 3), 0);
	net.nodes[0].silent = 1 << 2 | 1 << 4;
	read_all();
	assert_int_equal(latest()->failed, 2);
	assert_int_equal(error_of(0, 5), 0);
	net.nodes[0].silent = 1 << 2 | 1 << 3;
	read_all();
	assert_int_equal(latest()->failed, 4);
	assert_int_equal(error_of(0, 5), -ETIMEDOUT);
	assert_int_equal(net.nodes[0].requests[4], 2 * 2 + 1);
}

TEST(a_reading_has_a_timeout_of_its_own)
{
	/* the port's is a minute */
	mad_rpc_set_retries(fixture.port, 1);
	net.nodes[0].dead = true;
	assert_int_equal(read_with(&(struct mad_fabric_counters_options){.timeout_ms = 5}), 0);
	assert_int_equal(error_of(0, 1), -ETIMEDOUT);
	assert_int_equal(read_with(&(struct mad_fabric_counters_options){.timeout_ms = 5,
									 .check_guid = true}),
			 0);
	assert_int_equal(error_of(0, 1), -ETIMEDOUT);
}

TEST(what_a_node_refuses_is_requested_once_in_its_life)
{
	net.nodes[0].lacks_extended = true;
	read_all();
	receive(0, 2, 80);
	read_all();
	assert_int_equal(net.nodes[0].extended, 1);
	assert_int_equal(total_of(0, 2), 80);
	assert_int_equal(latest()->read, 8);
}

TEST(the_node_behind_a_lid_is_checked)
{
	const struct mad_fabric_counters_options check = {.check_guid = true};
	unsigned lid = net.nodes[1].lid, before;

	be_impatient();
	smp_mkey_set(fixture.port, 0x1234);
	assert_int_equal(read_with(&check), 0);
	assert_int_equal(net.m_key, 0x1234);
	assert_int_equal(read_with(&(struct mad_fabric_counters_options){.check_guid = true,
									 .m_key = 0x99}),
			 0);
	assert_int_equal(net.m_key, 0x99);
	assert_int_equal(read_with(&check), 0);
	assert_int_equal(net.nodes[0].node_infos, 3);
	assert_int_equal(latest()->requests, 4 + 2 * 8);
	receive(1, 1, 1000);
	receive(2, 1, 52);
	assert_int_equal(read_with(&check), 0);
	/* two LIDs are exchanged, and no discovery has noticed */
	net.nodes[1].lid = net.nodes[2].lid;
	net.nodes[2].lid = lid;
	receive(2, 1, 4000);
	before = requests_of(1) + requests_of(2);
	assert_int_equal(read_with(&check), 0);
	assert_int_equal(requests_of(1) + requests_of(2) - before, 2);
	assert_int_equal(error_of(1, 1), -ESTALE);
	assert_int_equal(error_of(2, 1), -ESTALE);
	assert_int_equal(error_of(3, 1), 0);
	assert_int_equal(latest()->failed, 2);
	assert_int_equal(total_of(1, 1), 1000);
	discover();
	assert_int_equal(read_with(&check), 0);
	assert_int_equal(total_of(1, 1), 1000);
	assert_int_equal(total_of(2, 1), 4052);
	net.nodes[3].is_short = true;
	assert_int_equal(read_with(&check), 0);
	assert_int_equal(error_of(3, 1), -EBADMSG);
	/* without a response to NodeInfo there is none to the others */
	net.nodes[0].dead = true;
	assert_int_equal(read_with(&check), 0);
	assert_int_equal(error_of(0, 1), -ETIMEDOUT);
	assert_int_equal(error_of(0, 5), -ETIMEDOUT);
}

/* --- limits ----------------------------------------------------------------------- */

static struct mad_cancel cancel;

static void cancel_now(void)
{
	mad_cancel_set(&cancel);
}

/* A reading of all ports that ends before a node has responded. */
static void expect_end(const struct mad_fabric_counters_options *options, int error)
{
	net.hold = true;
	assert_int_equal(read_with(options), error);
	assert_int_equal(mad_last_failure()->error, error);
	assert_int_equal(latest()->error, error);
	assert_int_equal(latest()->wanted, 8);
	assert_int_equal(latest()->failed, 8);
	for (int i = 0; i < net.count; i++)
		for (unsigned n = 1; n <= net.nodes[i].ports; n++) {
			assert_int_equal(error_of(i, n), error);
			assert_true(find(i, n)->is_latest);
			assert_int_equal(find(i, n)->totals->readings, 1);
		}
	net.hold = false;
}

TEST(a_reading_has_a_time_limit)
{
	read_all();
	expect_end(&(struct mad_fabric_counters_options){.time_limit_ms = 500}, -ETIME);
	read_all();
	assert_int_equal(find(0, 5)->totals->readings, 2);
}

TEST(a_reading_is_cancelled)
{
	const struct mad_fabric_counters_options options = {.cancel = &cancel};

	memset(&cancel, 0, sizeof(cancel));
	read_all();
	mad_cancel_set(&cancel);
	expect_end(&options, -ECANCELED);
	/* in the middle */
	memset(&cancel, 0, sizeof(cancel));
	net.nodes[0].silent = 1 << 3;
	net.on_counters = cancel_now;
	assert_int_equal(read_with(&options), -ECANCELED);
	assert_int_equal(latest()->wanted, 8);
	for (unsigned n = 1; n <= 5; n++) {
		bool was_read = !error_of(0, n);

		/* port 3 does not respond; a slow machine may not have read the first ones */
		assert_true(was_read ? n < 3 : error_of(0, n) == -ECANCELED);
		assert_int_equal(find(0, n)->totals->readings, was_read ? 2 : 1);
	}
}

TEST(a_reading_ends_when_the_local_link_is_down)
{
	read_all();
	net.state = MAD_PORT_DOWN;
	expect_end(NULL, -ENETDOWN);
	assert_true(net.local > 0);
}

static void remove_device(void)
{
	device_remove();
}

TEST(a_reading_ends_when_the_device_is_gone)
{
	read_all();
	net.on_counters = remove_device;
	assert_int_equal(read_with(NULL), -ENODEV);
	assert_int_equal(mad_last_failure()->error, -ENODEV);
	assert_int_equal(latest()->wanted, 8);
	assert_int_equal(error_of(0, 5), -ENODEV);
}

TEST(a_reading_that_succeeds_leaves_the_last_failure)
{
	net.nodes[0].silent = 1 << 3;
	mad_async_wait(NULL, 0);
	assert_int_equal(mad_last_failure()->error, -EINVAL);
	assert_int_equal(read_with(NULL), 0);
	assert_int_equal(error_of(0, 3), -ETIMEDOUT);
	assert_int_equal(mad_last_failure()->error, -EINVAL);
}

/* --- on an engine ----------------------------------------------------------------- */

TEST(a_reading_is_refused_when_the_device_is_gone)
{
	async = mad_async_create(fixture.port);
	device_remove();
	while (!mad_async_process(async))
		;
	assert_int_equal(mad_fabric_counters_submit(async, counters, NULL, note, &done, NULL),
			 -ENODEV);
	assert_int_equal(done.calls, 0);
}

static void begin(const struct mad_fabric_counters_options *options)
{
	async = async ? async : mad_async_create(fixture.port);
	assert_non_null(async);
	assert_int_equal(mad_fabric_counters_submit(async, counters, options, note, &done, &id),
			 0);
}

TEST(a_reading_on_an_engine_is_called_back_once)
{
	begin(NULL);
	assert_int_equal(done.calls, 0);
	assert_int_equal(latest()->end_us, 0);
	assert_int_equal(mad_fabric_counters_submit(async, counters, NULL, note, &done, NULL),
			 -EBUSY);
	assert_int_equal(mad_fabric_counters_read(fixture.port, counters, NULL), -EBUSY);
	assert_int_equal(mad_fabric_counters_set_fabric(counters, NULL), -EBUSY);
	assert_int_equal(mad_fabric_counters_forget(counters, net.nodes[1].guid), -EBUSY);
	mad_async_wait(async, -1);
	assert_int_equal(done.calls, 1);
	assert_int_equal(done.error, 0);
	assert_int_equal(done.read, 8);
	begin(NULL);
	mad_async_wait(async, -1);
	assert_int_equal(done.calls, 2);
}

TEST(a_reading_of_nothing_is_called_back_later)
{
	begin(&(struct mad_fabric_counters_options){.leave_out = 3});
	assert_int_equal(done.calls, 0);
	assert_int_equal(mad_fabric_counters_set_fabric(counters, NULL), -EBUSY);
	mad_async_wait(async, -1);
	assert_int_equal(done.calls, 1);
	assert_int_equal(done.error, 0);
	assert_int_equal(mad_async_cancel(async, id), -ENOENT);
	begin(&(struct mad_fabric_counters_options){.leave_out = 3});
	mad_async_free(async);
	async = NULL;
	assert_int_equal(done.calls, 2);
	assert_int_equal(done.error, -ECANCELED);
}

TEST(a_reading_of_nothing_can_be_cancelled_before)
{
	const struct mad_fabric_counters_options options = {.cancel = &cancel, .leave_out = 3};

	memset(&cancel, 0, sizeof(cancel));
	mad_cancel_set(&cancel);
	assert_int_equal(read_with(&options), -ECANCELED);
	begin(&(struct mad_fabric_counters_options){.leave_out = 3});
	assert_int_equal(mad_async_cancel(async, id), 0);
	assert_int_equal(done.calls, 0);
	mad_async_wait(async, -1);
	assert_int_equal(done.calls, 1);
	assert_int_equal(done.error, -ECANCELED);
}

static bool free_counters(const struct mad_fabric_port *port, void *arg)
{
	(void)port, (void)arg;
	mad_fabric_counters_free(counters);
	counters = NULL;
	return false;
}

/* The sanitizers see that its memory is freed. */
TEST(an_object_may_be_freed_by_the_filter)
{
	begin(&(struct mad_fabric_counters_options){.filter = free_counters});
	assert_non_null(counters);
	mad_async_wait(async, -1);
	assert_null(counters);
	assert_int_equal(done.calls, 1);
	assert_int_equal(done.error, -ECANCELED);
}

static void *cancel_from_a_thread(void *arg)
{
	(void)arg;
	assert_int_equal(mad_async_cancel(async, id), 0);
	assert_int_equal(mad_async_cancel(async, id), -ENOENT);
	return NULL;
}

/* Before anything was sent, and with requests in flight. */
TEST(another_thread_cancels_a_reading)
{
	pthread_t thread;

	for (unsigned sent = 0; sent < 2; sent++) {
		unsigned before = device_written();

		net.hold = true;
		begin(&(struct mad_fabric_counters_options){.check_guid = true});
		while (sent && device_written() == before)
			assert_true(mad_async_process(async) >= 0);
		assert_int_equal(pthread_create(&thread, NULL, cancel_from_a_thread, NULL), 0);
		pthread_join(thread, NULL);
		assert_int_equal(done.calls, sent);
		mad_async_wait(async, -1);
		assert_int_equal(done.calls, sent + 1);
		assert_int_equal(done.error, -ECANCELED);
		assert_int_equal(error_of(3, 1), -ECANCELED);
		assert_int_equal(device_written() != before, sent);
	}
}

static void cancel_again(struct mad_async *engine, int error, struct mad_fabric_counters *read,
			 void *arg)
{
	note(engine, error, read, arg);
	assert_int_equal(mad_async_cancel(engine, id), -ENOENT);
}

TEST(a_reading_is_complete_in_its_callback)
{
	async = mad_async_create(fixture.port);
	assert_int_equal(
		mad_fabric_counters_submit(async, counters, NULL, cancel_again, &done, &id), 0);
	mad_async_wait(async, -1);
	assert_int_equal(done.calls, 1);
	assert_int_equal(done.error, 0);
}

TEST(an_object_that_is_freed_ends_its_reading)
{
	net.hold = true;
	begin(NULL);
	mad_fabric_counters_free(counters);
	counters = NULL;
	assert_int_equal(done.calls, 0);
	mad_async_wait(async, -1);
	assert_int_equal(done.calls, 1);
	assert_int_equal(done.error, -ECANCELED);
}

TEST(an_engine_that_is_destroyed_ends_its_reading)
{
	net.hold = true;
	begin(NULL);
	mad_async_free(async);
	assert_int_equal(done.calls, 1);
	assert_int_equal(done.error, -ECANCELED);
	async = NULL;
	assert_int_equal(error_of(2, 1), -ECANCELED);
}

static void read_again(struct mad_async *engine, int error, struct mad_fabric_counters *read,
		       void *arg)
{
	note(engine, error, read, arg);
	if (done.calls < 3)
		assert_int_equal(
			mad_fabric_counters_submit(engine, read, NULL, read_again, arg, NULL),
			0);
}

TEST(a_callback_may_start_the_next_reading)
{
	async = mad_async_create(fixture.port);
	assert_int_equal(
		mad_fabric_counters_submit(async, counters, NULL, read_again, &done, NULL), 0);
	mad_async_wait(async, -1);
	assert_int_equal(done.calls, 3);
	assert_int_equal(find(1, 1)->totals->readings, 3);
}

/* --- errors ----------------------------------------------------------------------- */

TEST(wrong_arguments_are_refused)
{
	const struct mad_cancel odd = {.reserved = {[2] = 1}}, token = {0};
	struct mad_fabric_counters_options options = {.reserved = {1}};
	struct mad_fabric_counters_settings settings = {.flags = 2};

	assert_fails_null(mad_fabric_counters_create(&settings), EINVAL);
	settings = (struct mad_fabric_counters_settings){.reserved = {0, 0, 0, 1}};
	assert_fails_null(mad_fabric_counters_create(&settings), EINVAL);
	assert_int_equal(mad_fabric_counters_set_fabric(NULL, fabric), -EINVAL);
	assert_int_equal(read_with(&options), -EINVAL);
	assert_int_equal(mad_last_failure()->error, -EINVAL);
	options = (struct mad_fabric_counters_options){.cancel = &odd};
	assert_int_equal(read_with(&options), -EINVAL);
	options = (struct mad_fabric_counters_options){.leave_out = 16};
	assert_int_equal(read_with(&options), -EINVAL);
	options = (struct mad_fabric_counters_options){.timeout_ms = -1};
	assert_int_equal(read_with(&options), -EINVAL);
	options = (struct mad_fabric_counters_options){.counters = ~MAD_COUNTERS_ALL};
	assert_int_equal(read_with(&options), -EINVAL);
	assert_int_equal(mad_fabric_counters_read(NULL, counters, NULL), -EINVAL);
	assert_int_equal(mad_fabric_counters_read(fixture.port, NULL, NULL), -EINVAL);
	async = mad_async_create(fixture.port);
	assert_int_equal(mad_fabric_counters_submit(NULL, counters, NULL, note, &done, NULL),
			 -EINVAL);
	assert_int_equal(mad_fabric_counters_submit(async, NULL, NULL, note, &done, NULL),
			 -EINVAL);
	assert_int_equal(mad_fabric_counters_submit(async, counters, NULL, NULL, &done, NULL),
			 -EINVAL);
	/* mad_async_cancel() cancels a reading on an engine */
	options = (struct mad_fabric_counters_options){.cancel = &token};
	assert_int_equal(
		mad_fabric_counters_submit(async, counters, &options, note, &done, NULL),
		-EINVAL);
	assert_null(mad_fabric_counters_next(NULL, NULL));
	assert_null(mad_fabric_counters_find(NULL, 1, 1));
	assert_null(mad_fabric_counters_find(counters, 12345, 1));
	assert_null(mad_fabric_counters_find(counters, net.nodes[1].guid, 2));
	assert_null(mad_fabric_counters_find(counters, net.nodes[1].guid, 0));
	mad_fabric_counters_free(NULL);
	assert_int_equal(device_written(), 0);
}

TEST(a_class_that_is_not_registered_ends_a_reading)
{
	int classes[] = {IB_SMI_DIRECT_CLASS}, both[] = {IB_PERFORMANCE_CLASS};
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 1);

	assert_non_null(port);
	assert_int_equal(mad_fabric_counters_read(port, counters, NULL), -EPROTONOSUPPORT);
	assert_int_equal(mad_last_failure()->error, -EPROTONOSUPPORT);
	mad_rpc_close_port(port);
	port = mad_rpc_open_port(NULL, 0, both, 1);
	assert_int_equal(mad_fabric_counters_read(
				 port, counters,
				 &(struct mad_fabric_counters_options){.check_guid = true}),
			 -EPROTONOSUPPORT);
	assert_int_equal(mad_fabric_counters_read(port, counters, NULL), 0);
	mad_rpc_close_port(port);
}

/* All but one of the allocations succeed: the object is as before, or has the whole result. */
TEST(without_memory_an_update_changes_nothing)
{
	struct mad_fabric *larger;
	int error = -1;

	receive(1, 1, 4);
	read_all();
	net.nodes[0].ports = 7;
	add_device(IB_NODE_CA, 1);
	larger = counted_fabric();
	for (unsigned n = 1; error; n++) {
		device_fail_malloc(n);
		error = mad_fabric_counters_set_fabric(counters, larger);
		device_fail_malloc(0);
		assert_true(n < 20);
		if (!error)
			break;
		assert_int_equal(error, -ENOMEM);
		assert_null(find(0, 7));
		assert_null(find(4, 1));
		assert_ptr_equal(find(1, 1)->port,
				 mad_fabric_get_port(mad_fabric_find_guid(fabric, 0x101), 1));
	}
	assert_non_null(find(4, 1));
	assert_int_equal(find(1, 1)->totals->readings, 1);
	mad_fabric_free(fabric);
	fabric = larger;
}

TEST(without_memory_a_reading_ends)
{
	int error = -1;
	unsigned readings;

	for (unsigned n = 1; error; n++) {
		readings = 0;
		assert_true(n < 1000);
		use_settings(NULL);
		discover();
		device_fail_malloc(n);
		error = mad_fabric_counters_read(fixture.port, counters, NULL);
		device_fail_malloc(0);
		if (error)
			assert_int_equal(error, -ENOMEM);
		for (int i = 0; i < net.count; i++)
			for (unsigned p = 1; p <= net.nodes[i].ports; p++)
				readings += find(i, p)->reading != NULL;
		if (!error)
			assert_int_equal(readings, 8);
		read_all();
		assert_int_equal(latest()->read, 8);
	}
}

/* --- random histories ------------------------------------------------------------- */

#define ROUNDS 10
#define STEPS  40

/* What is to be expected of a port, by NodeGUID and number. */
struct model_port {
	uint64_t guid;
	unsigned number;
	struct mad_counters_tracker *tracker; /* the tracker of a single port */
	uint64_t read[COUNTS];                /* the values of the latest reading */
	uint64_t totals[COUNTS];
	unsigned readings;
	bool basic; /* the latest reading was */
};

static struct {
	struct model_port ports[1000];
	unsigned count;
	uint64_t next_guid;
} model;

static long roll(long sides)
{
	return random() % sides;
}

static struct model_port *model_port(uint64_t guid, unsigned number)
{
	struct model_port *port = model.ports;

	for (; port < model.ports + model.count; port++)
		if (port->guid == guid && port->number == number)
			return port;
	assert_true(model.count < 1000);
	model.count++;
	*port = (struct model_port){
		.guid = guid, .number = number, .tracker = mad_counters_tracker_create(0)};
	assert_non_null(port->tracker);
	return port;
}

static void model_free(void)
{
	for (unsigned i = 0; i < model.count; i++)
		mad_counters_tracker_free(model.ports[i].tracker);
	model.count = 0;
}

/*
 * The totals of a port grow by what a reading has more than the one before. Bytes of another
 * attribute begin again.
 */
static void model_read(struct model_port *port, struct counted_device *node, bool basic)
{
	for (unsigned i = 0; i < COUNTS; i++) {
		uint64_t now = node->counts[port->number][i];

		if (port->readings && (basic == port->basic || i == 2))
			port->totals[i] += now < port->read[i] ? now : now - port->read[i];
		port->read[i] = now;
	}
	port->basic = basic;
	port->readings++;
	node->is_reset[port->number] = false;
}

static void expect_same_totals(const struct mad_counters_totals *one,
			       const struct mad_counters_totals *other)
{
	struct mad_counters_totals copy = *one;

	copy.total.requests = other->total.requests; /* which a reading does not have */
	assert_memory_equal(&copy, other, sizeof(copy));
}

/* The object has the same of a port as a tracker of its own, and as the model. */
static void model_judge(struct model_port *port, bool was_read)
{
	const struct mad_fabric_counters_port *found =
		mad_fabric_counters_find(counters, port->guid, port->number);
	int events;

	if (!port->readings) {
		assert_true(!found || !found->totals);
		return;
	}
	assert_non_null(found);
	assert_non_null(found->totals);
	assert_int_equal(found->totals->readings, port->readings);
	for (unsigned i = 0; i < COUNTS; i++) {
		assert_int_equal(mad_counters_value(found->reading, counted[i], NULL),
				 port->read[i]);
		assert_int_equal(mad_counters_value(&found->totals->total, counted[i], NULL),
				 port->totals[i]);
	}
	if (was_read) {
		events = mad_counters_tracker_add(port->tracker, found->reading);
		assert_int_equal(events, found->events);
	}
	expect_same_totals(mad_counters_tracker_totals(port->tracker), found->totals);
	for (unsigned i = 0; i < MAD_COUNTER_COUNT; i++) {
		double rates[] = {mad_counters_tracker_rate(port->tracker, i, MAD_RATE_LATEST),
				  mad_counters_tracker_rate(found->tracker, i, MAD_RATE_LATEST),
				  mad_counters_tracker_rate(port->tracker, i, MAD_RATE_MEAN),
				  mad_counters_tracker_rate(found->tracker, i, MAD_RATE_MEAN)};

		assert_memory_equal(&rates[0], &rates[1], sizeof(rates[0]));
		assert_memory_equal(&rates[2], &rates[3], sizeof(rates[2]));
	}
}

/* A counter that was reset counts nothing until it is read, so that its fall is seen. */
static void model_count(struct counted_device *node, unsigned number)
{
	uint64_t *counts = node->counts[number];

	for (unsigned i = 0; i < COUNTS && !node->is_reset[number]; i++)
		if (!roll(3)) /* symbol errors have 16 bits */
			counts[i] += (uint64_t)(i == 2 ? roll(400) : 4 * roll(50000));
}

static void model_reset(struct counted_device *node, unsigned number)
{
	memset(node->counts[number], 0, sizeof(node->counts[number]));
	node->is_reset[number] = true;
}

/* Nodes count, are reset, replaced, away, silent. */
static void model_change(void)
{
	for (int i = 0; i < net.count; i++) {
		struct counted_device *node = &net.nodes[i];
		bool restarts = !roll(12);

		for (unsigned n = 0; n < PORTS; n++) {
			model_count(node, n);
			if (restarts || !roll(12))
				model_reset(node, n);
		}
		if (i && !roll(8))
			node->guid = model.next_guid++;
		node->absent = i && !roll(6);
		node->dead = !roll(8);
		node->silent = roll(4) ? 0 : 1U << roll(PORTS);
	}
}

static void model_exchange(bool lids_alone)
{
	int one = 1 + (int)roll(net.count - 1), other = 1 + (int)roll(net.count - 1);
	struct counted_device node = net.nodes[one];
	unsigned lid = node.lid;

	if (lids_alone) {
		net.nodes[one].lid = net.nodes[other].lid;
		net.nodes[other].lid = lid;
		return;
	}
	net.nodes[one] = net.nodes[other];
	net.nodes[other] = node;
}

static void model_step(void)
{
	struct mad_fabric_counters_options options = {.leave_out = (unsigned)roll(4) * !roll(3),
						      .check_guid = true,
						      .basic = !roll(6)};

	model_change();
	model_exchange(roll(2));
	discover();
	/* the fabric changes after the discovery */
	if (!roll(3))
		model_exchange(true);
	assert_int_equal(read_with(&options), 0);
	for (int i = 0; i < net.count; i++)
		for (unsigned n = 0; n <= net.nodes[i].ports; n++) {
			const struct mad_fabric_counters_port *port = find(i, n);
			bool was_read = port && port->is_latest && !port->error;

			if (was_read)
				model_read(model_port(net.nodes[i].guid, n), &net.nodes[i],
					   options.basic);
			if (port && port->is_latest && port->error)
				assert_true(port->error == -ETIMEDOUT ||
					    port->error == -ESTALE);
			model_judge(model_port(net.nodes[i].guid, n), was_read);
		}
	for (unsigned i = 0; i < model.count; i++)
		model_judge(&model.ports[i], false);
}

TEST(totals_follow_the_ports_through_random_histories)
{
	unsigned seed = test_seed();

	srandom(seed);
	be_impatient();
	model.next_guid = 0x5000;
	for (int round = 0; round < ROUNDS; round++) {
		use_settings(NULL);
		for (int step = 0; step < STEPS; step++)
			model_step();
		model_free();
	}
}
