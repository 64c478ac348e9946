/* SPDX-License-Identifier: BSD-2-Clause */

/* The counters of all ports of a fabric, over discoveries. */

#include "fabrics.h"

#include <infiniband/mad_fabric_counters.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>

/* Host n is at port n of the switch, the local host at port 4. */
#define COUNTED                                                                             \
	"Ca 1 \"host\"\n[1] \"s\"[4]\nSwitch 5 \"s\"\n[1] \"h1\"\n[2] \"h2\"\n[3] \"h3\"\n" \
	"Ca 1 \"h1\"\nCa 1 \"h2\"\nCa 1 \"h3\"\n"
#define NODES  5
#define WANTED 9 /* ports: 5 of the switch, 4 of hosts */
#define SECOND 1000000

/* What the fabric says about the nodes; each is a device of the machine. */
static struct known {
	char device[8];
	uint64_t guid;
	unsigned lid, ports;
	bool absent;
} known[NODES];
/* The true counters of devices: received bytes, packets, symbol errors. */
#define COUNTS 3
static const unsigned counted[COUNTS] = {MAD_COUNTER_RCV_BYTES, MAD_COUNTER_RCV_PACKETS,
					 MAD_COUNTER_SYMBOL_ERRORS};
static uint64_t counts[NODES][8][COUNTS];
static struct mad_fabric_counters *counters;
static struct mad_async *async;
static uint64_t id; /* of the latest reading on it */
static struct {
	int calls, error;
	size_t read;
} done;

/* The fabric by the nodes that are known, as a text that is loaded. */
static struct mad_fabric *known_fabric(void)
{
	char *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	struct mad_fabric *loaded;
	const struct known *hub = &known[0];

	fprintf(file, "# empty\n");
	if (!hub->absent) {
		fprintf(file,
			"switchguid=0x%" PRIx64 "(%" PRIx64 ")\nSwitch %u \"S-%" PRIx64
			"\" # \"s\" base port 0 lid %u lmc 0\n",
			hub->guid, hub->guid, hub->ports, hub->guid, hub->lid);
		for (unsigned i = 1; i < NODES; i++)
			if (!known[i].absent)
				fprintf(file, "[%u] \"H-%" PRIx64 "\"[1]\n", i, known[i].guid);
	}
	for (unsigned i = 1; i < NODES; i++) {
		if (known[i].absent)
			continue;
		fprintf(file, "caguid=0x%" PRIx64 "\nCa 1 \"H-%" PRIx64 "\" # \"h\"\n",
			known[i].guid, known[i].guid);
		if (!hub->absent)
			fprintf(file,
				"[1] \"S-%" PRIx64 "\"[%u] # lid %u lmc 0 \"s\" lid %u 4xSDR\n",
				hub->guid, i, known[i].lid, hub->lid);
	}
	fclose(file);
	file = fmemopen(text, size, "r");
	assert_int_equal(mad_fabric_load(file, &loaded, NULL), 0);
	fclose(file);
	free(text);
	return loaded;
}

static void use_settings(const struct mad_fabric_counters_settings *settings)
{
	mad_fabric_counters_free(counters);
	counters = mad_fabric_counters_create(settings);
	assert_non_null(counters);
}

/* As after a discovery. */
static void know(void)
{
	struct mad_fabric *former = fabric;

	fabric = known_fabric();
	assert_int_equal(mad_fabric_counters_set_fabric(counters, fabric), 0);
	mad_fabric_free(former);
}

static void learn_nodes(void)
{
	static const char *const names[NODES] = {"s", "h1", "h2", "h3", "host"};

	for (unsigned i = 0; i < NODES; i++) {
		known[i] = (struct known){.guid = guid_of(names[i]),
					  .lid = machine_lid(names[i]),
					  .ports = i ? 1 : 5};
		strcpy(known[i].device, names[i]);
	}
}

static int setup(void)
{
	start(COUNTED);
	machine_pass(SECOND);
	memset(&done, 0, sizeof(done));
	memset(counts, 0, sizeof(counts));
	learn_nodes();
	use_settings(NULL);
	know();
	return 0;
}

static int teardown(void)
{
	machine_fail(MACHINE_MALLOC, 0, 0);
	mad_async_free(async);
	async = NULL;
	mad_fabric_counters_free(counters);
	counters = NULL;
	return teardown_fabrics();
}

FIXTURE(setup, teardown);

static int read_with(const struct mad_fabric_counters_options *options)
{
	machine_pass(SECOND);
	return mad_fabric_counters_read(port, counters, options);
}

static void read_all(void)
{
	assert_int_equal(read_with(NULL), 0);
}

static const struct mad_fabric_counters_port *entry(unsigned node, unsigned number)
{
	return mad_fabric_counters_find(counters, known[node].guid, number);
}

static uint64_t total_of(unsigned node, unsigned number)
{
	const struct mad_fabric_counters_port *found = entry(node, number);

	assert_non_null(found);
	assert_non_null(found->totals);
	assert_true(found->totals->total.present & MAD_COUNTER_BIT(MAD_COUNTER_RCV_BYTES));
	return found->totals->total.rcv_bytes;
}

static unsigned device_number(const char *device)
{
	unsigned i = 0;

	while (strcmp(((const char *[]){"s", "h1", "h2", "h3", "host"})[i], device))
		i++;
	return i;
}

/* Sets the counters of the device that the node is. */
static void show(unsigned node, unsigned number)
{
	const uint64_t *values = counts[device_number(known[node].device)][number];

	for (unsigned i = 0; i < COUNTS; i++)
		machine_set_counter(known[node].device, number, counted[i],
				    i ? values[i] : values[i] / 4);
}

static void receive(unsigned node, unsigned number, uint64_t bytes)
{
	counts[device_number(known[node].device)][number][0] += bytes;
	show(node, number);
}

static void reset(unsigned node, unsigned number, uint64_t bytes)
{
	memset(counts[device_number(known[node].device)][number], 0, sizeof(counts[0][0]));
	receive(node, number, bytes);
}

static int error_of(unsigned node, unsigned number)
{
	return entry(node, number)->error;
}

static const struct mad_fabric_counters_summary *latest(void)
{
	return counters->latest;
}

static double rate_of(unsigned node, enum mad_rate rate)
{
	return mad_counters_tracker_rate(entry(node, 1)->tracker, MAD_COUNTER_RCV_BYTES, rate);
}

/* --- totals ----------------------------------------------------------------------- */

TEST(a_reading_has_each_port)
{
	const struct mad_fabric_counters_port *each = NULL;
	unsigned ports = 0, with_readings = 0, nodes = 0;
	uint64_t guid = 0;
	int number = -1;

	receive(2, 1, 400);
	read_all();
	while ((each = mad_fabric_counters_next(counters, each))) {
		ports++;
		with_readings += each->reading != NULL;
		assert_int_equal(each->error, 0);
		assert_int_equal(each->is_latest, each->reading != NULL);
		assert_int_equal(each->time_us != 0, each->reading != NULL);
		assert_ptr_equal(each->port,
				 mad_fabric_get_port(mad_fabric_find_guid(fabric, each->guid),
						     each->number));
		/* the ports of a node come together, by number */
		nodes += each->guid != guid;
		assert_true(each->guid != guid || each->number > number);
		guid = each->guid;
		number = each->number;
	}
	/* a base port 0 has no counters */
	assert_int_equal(ports, WANTED + 1);
	assert_int_equal(with_readings, WANTED);
	assert_int_equal(nodes, NODES);
	assert_int_equal(latest()->wanted, WANTED);
	assert_int_equal(latest()->read, WANTED);
	assert_int_equal(latest()->failed, 0);
	assert_int_equal(latest()->error, 0);
	/* ClassPortInfo of each node, an attribute of each port */
	assert_int_equal(latest()->requests, NODES + WANTED);
	assert_int_equal(asked(NULL, PMA(IB_GSI_PORT_COUNTERS_EXT)), WANTED);
	assert_true(latest()->begin_us && latest()->end_us >= latest()->begin_us);
	assert_int_equal(entry(2, 1)->reading->rcv_bytes, 400);
	assert_int_equal(entry(2, 1)->reading->port, 1);
	assert_int_equal(entry(2, 1)->reading->extended & 3, 3);
}

TEST(totals_and_rates_over_discoveries)
{
	receive(1, 1, 4000);
	read_all();
	assert_true(entry(1, 1)->totals->total.present == 0);
	assert_true(isnan(rate_of(1, MAD_RATE_LATEST)));
	receive(1, 1, 1000);
	know();
	read_all();
	assert_int_equal(total_of(1, 1), 1000);
	assert_int_equal(total_of(2, 1), 0);
	assert_int_equal(entry(1, 1)->totals->readings, 2);
	assert_true(fabs(rate_of(1, MAD_RATE_LATEST) - 1000) < 2);
	read_all();
	assert_true(rate_of(1, MAD_RATE_LATEST) == 0);
	assert_true(fabs(rate_of(1, MAD_RATE_MEAN) - 500) < 2);
	/* a node that restarts goes on from 0 */
	reset(1, 1, 300);
	read_all();
	assert_int_equal(entry(1, 1)->events, MAD_COUNTERS_RESTARTED);
	assert_int_equal(total_of(1, 1), 1300);
	read_all();
	assert_int_equal(entry(1, 1)->events, 0);
	assert_int_equal(entry(1, 1)->totals->restarts, 1);
	/* a total may begin at the value of the device */
	use_settings(&(struct mad_fabric_counters_settings){.flags = MAD_COUNTERS_FROM_DEVICE});
	know();
	read_all();
	assert_int_equal(total_of(1, 1), 300);
	receive(1, 1, 1000);
	read_all();
	assert_int_equal(total_of(1, 1), 1300);
}

/* The devices of two nodes are exchanged, with their LIDs: the nodes have moved. */
static void exchange(unsigned one, unsigned other)
{
	struct known node = known[one];

	known[one].guid = known[other].guid;
	known[other].guid = node.guid;
}

TEST(a_node_that_moves_keeps_its_totals)
{
	read_all();
	receive(1, 1, 1000);
	read_all();
	/* 1 and 3 change places and LIDs, and their counters go with them */
	exchange(1, 3);
	reset(3, 1, 1500);
	reset(1, 1, 0);
	know();
	receive(2, 1, 20);
	read_all();
	assert_int_equal(total_of(3, 1), 1500);
	assert_int_equal(total_of(1, 1), 0);
	assert_int_equal(total_of(2, 1), 20);
	assert_int_equal(entry(3, 1)->events, 0);
	assert_int_equal(entry(3, 1)->port->peer->number, 3);
}

TEST(a_node_that_is_replaced_never_adds_to_the_old_one)
{
	uint64_t old = known[1].guid;
	const struct mad_fabric_counters_port *gone;

	read_all();
	receive(1, 1, 1000);
	read_all();
	known[1].guid = 0x999;
	receive(1, 1, 5000);
	know();
	read_all();
	receive(1, 1, 32);
	read_all();
	assert_int_equal(total_of(1, 1), 32);
	gone = mad_fabric_counters_find(counters, old, 1);
	assert_int_equal(gone->totals->total.rcv_bytes, 1000);
	assert_null(gone->port);
	assert_false(gone->is_latest);
	/* the old node returns at another LID */
	known[3].guid = old;
	receive(3, 1, 60000);
	know();
	read_all();
	assert_int_equal(total_of(3, 1), 60000);
	assert_int_equal(total_of(1, 1), 32);
}

TEST(ports_and_guids_that_change)
{
	receive(0, 5, 80);
	known[0].ports = 4;
	use_settings(NULL);
	know();
	read_all();
	known[0].ports = 5;
	know();
	read_all();
	receive(0, 5, 32);
	read_all();
	assert_int_equal(total_of(0, 5), 32);
	/* the ports that are gone are not read */
	known[0].ports = 4;
	receive(0, 5, 100);
	know();
	read_all();
	assert_null(entry(0, 5)->port);
	assert_int_equal(total_of(0, 5), 32);
	assert_null(entry(0, 8));
	/* of several nodes with one GUID the first is read */
	receive(1, 1, 400);
	receive(3, 1, 4000);
	known[3].guid = known[1].guid;
	use_settings(NULL);
	know();
	forget_odd_nodes();
	read_all();
	assert_int_equal(latest()->wanted, 4 + 3);
	assert_int_equal(entry(1, 1)->reading->rcv_bytes, 400);
	assert_int_equal(asked("h3", 0), 0);
}

/* --- nodes that are absent -------------------------------------------------------- */

TEST(an_absent_node_is_kept_for_its_time)
{
	use_settings(&(struct mad_fabric_counters_settings){.keep_s = 60});
	know();
	receive(1, 1, 100);
	read_all();
	for (int i = 0; i < 2; i++) {
		known[1].absent = true;
		know();
		read_all();
		machine_pass(50 * SECOND);
		know();
		assert_non_null(entry(1, 1));
		known[1].absent = false;
		know();
		receive(1, 1, 8);
		read_all();
		assert_int_equal(total_of(1, 1), 8 + 8 * i);
	}
	known[1].absent = true;
	know();
	machine_pass(61 * SECOND);
	know();
	assert_null(entry(1, 1));
	assert_non_null(entry(2, 1));
	/* the absence begins with the fabric that does not have the node */
	machine_pass(INT64_C(1000) * SECOND);
	assert_int_equal(mad_fabric_counters_set_fabric(counters, NULL), 0);
	assert_non_null(entry(2, 1)->totals);
}

TEST(a_day_and_for_ever)
{
	const int64_t day = INT64_C(86400) * SECOND;

	known[1].absent = true;
	read_all();
	know();
	machine_pass(day - 10 * SECOND);
	know();
	assert_non_null(entry(1, 1));
	machine_pass(11 * SECOND);
	know();
	assert_null(entry(1, 1));
	known[1].absent = false;
	use_settings(&(struct mad_fabric_counters_settings){.keep_s = UINT_MAX});
	know();
	read_all();
	known[1].absent = true;
	know();
	machine_pass(100 * day);
	know();
	assert_non_null(entry(1, 1));
}

TEST(a_node_is_forgotten_by_a_call)
{
	use_settings(&(struct mad_fabric_counters_settings){.keep_s = UINT_MAX});
	know();
	for (int absences = 1; absences < 3; absences++) {
		known[1].absent = false;
		know();
		read_all();
		receive(1, 1, 100);
		read_all();
		known[1].absent = true;
		for (int i = 0; i < absences; i++)
			know();
		assert_int_equal(total_of(1, 1), 100);
		assert_int_equal(mad_fabric_counters_forget(counters, known[1].guid), 0);
		assert_null(entry(1, 1));
		assert_int_equal(mad_fabric_counters_forget(counters, known[1].guid), -ENOENT);
	}
	known[1].absent = false;
	know();
	assert_null(entry(1, 1)->reading);
	read_all();
	assert_int_equal(entry(1, 1)->totals->readings, 1);
	/* of a node in the fabric, only the readings */
	assert_int_equal(mad_fabric_counters_forget(counters, known[2].guid), 0);
	assert_null(entry(2, 1)->reading);
	assert_null(entry(2, 1)->totals);
	assert_non_null(entry(3, 1)->reading);
	forget_odd_nodes();
	read_all();
	assert_int_equal(entry(2, 1)->totals->readings, 1);
	assert_int_equal(asked("h2", PMA(CLASS_PORT_INFO)), 1);
	assert_int_equal(asked("h3", PMA(CLASS_PORT_INFO)), 0);
	/* all nodes of a former fabric */
	assert_int_equal(mad_fabric_counters_set_fabric(counters, NULL), 0);
	/* a port that was never read is gone with the fabric */
	assert_null(entry(0, 0));
	read_all();
	assert_int_equal(latest()->wanted, 0);
	for (unsigned i = 0; i < NODES; i++) {
		assert_non_null(mad_fabric_counters_next(counters, NULL));
		assert_int_equal(mad_fabric_counters_forget(counters, known[i].guid), 0);
	}
	assert_null(mad_fabric_counters_next(counters, NULL));
	assert_int_equal(mad_fabric_counters_set_fabric(counters, fabric), 0);
	assert_non_null(entry(1, 1));
	assert_int_equal(mad_fabric_counters_forget(NULL, 1), -EINVAL);
}

/* --- what is requested ------------------------------------------------------------ */

TEST(class_port_info_is_read_once_for_each_fabric)
{
	for (int i = 0; i < 3; i++)
		read_all();
	assert_int_equal(asked("h1", PMA(CLASS_PORT_INFO)), 1);
	know();
	read_all();
	assert_int_equal(asked("s", PMA(CLASS_PORT_INFO)), 2);
	assert_int_equal(asked("h1", PMA(CLASS_PORT_INFO)), 2);
	/* and after a restart */
	receive(1, 1, 1000);
	read_all();
	reset(1, 1, 8);
	read_all();
	read_all();
	read_all();
	assert_int_equal(asked("h1", PMA(CLASS_PORT_INFO)), 3);
	assert_int_equal(asked("h2", PMA(CLASS_PORT_INFO)), 2);
}

TEST(a_node_that_loses_and_gets_counters)
{
	const uint64_t wait = MAD_COUNTER_BIT(MAD_COUNTER_XMIT_WAIT_TICKS);

	read_all();
	read_all();
	assert_true(entry(1, 1)->reading->present & wait);
	machine_rule("counters 32 on h1");
	read_all();
	assert_int_equal(error_of(1, 1), 0);
	assert_false(entry(1, 1)->reading->present & wait);
	assert_int_equal(asked("h1", PMA(CLASS_PORT_INFO)), 2);
	assert_int_equal(latest()->wanted, latest()->read);
	machine_rule("clear");
	know();
	read_all();
	assert_true(entry(1, 1)->reading->present & wait);
	/* another firmware's counters begin again */
	receive(1, 1, 1000);
	read_all();
	assert_int_equal(total_of(1, 1), 1000);
	machine_rule("counters 64 on h1");
	receive(1, 1, 1000);
	know();
	read_all();
	assert_int_equal(entry(1, 1)->events & MAD_COUNTERS_REPLACED, MAD_COUNTERS_REPLACED);
	assert_int_equal(total_of(1, 1), 1000);
	/* what a node refuses is requested once */
	add_oddity((struct oddity){
		.node = "h2", .attribute = PMA(IB_GSI_PORT_COUNTERS_EXT), .status = 0x0c});
	read_all();
	read_all();
	assert_int_equal(error_of(2, 1), 0);
	net.asked_count = 0;
	read_all();
	read_all();
	assert_int_equal(asked("h2", PMA(CLASS_PORT_INFO)), 0);
	assert_int_equal(asked("h2", PMA(IB_GSI_PORT_COUNTERS_EXT)), 0);
	assert_int_equal(latest()->read, WANTED);
}

static unsigned filtered;

static bool is_odd_port(const struct mad_fabric_port *each, void *arg)
{
	assert_ptr_equal(arg, &filtered);
	filtered++;
	return each->number % 2;
}

static const struct which {
	const char *behaviour;
	unsigned leave_out;
	bool filter, enhanced;
	unsigned of_switch, of_hosts; /* ports */
} whiches[] = {
	{"all_ports_are_read", 0, false, false, 5, 4},
	{"an_enhanced_port_0_is_read", 0, false, true, 6, 4},
	{"port_0_is_left_out", MAD_FABRIC_COUNTERS_NO_PORT0, false, true, 5, 4},
	{"switches_are_left_out", MAD_FABRIC_COUNTERS_NO_SWITCHES, false, true, 0, 4},
	{"hosts_are_left_out", MAD_FABRIC_COUNTERS_NO_OTHERS, false, false, 5, 0},
	{"ports_that_are_down_are_left_out", MAD_FABRIC_COUNTERS_NO_DOWN, false, false, 4, 4},
	{"a_filter_leaves_out_ports", 0, true, true, 3, 4},
	{"a_filter_and_bits_leave_out_ports", MAD_FABRIC_COUNTERS_NO_SWITCHES, true, false, 0,
	 4},
	{"nothing_is_read", 3, false, false, 0, 0},
};

static void read_which(const void *row)
{
	const struct which *which = row;
	struct mad_fabric_counters_options options = {.leave_out = which->leave_out};
	struct mad_fabric *found;

	if (which->enhanced)
		set_field("s", IB_ATTR_SWITCH_INFO, IB_SW_ENHANCED_PORT0_F, 1);
	assert_int_equal(mad_fabric_discover(port, NULL, &found), 0);
	assert_int_equal(mad_fabric_counters_set_fabric(counters, found), 0);
	filtered = 0;
	if (which->filter) {
		options.filter = is_odd_port;
		options.filter_arg = &filtered;
	}
	assert_int_equal(read_with(&options), 0);
	assert_int_equal(latest()->wanted, which->of_switch + which->of_hosts);
	assert_int_equal(latest()->read, which->of_switch + which->of_hosts);
	assert_int_equal(asked("s", PMA(CLASS_PORT_INFO)), which->of_switch != 0);
	assert_int_equal(asked("h3", PMA(CLASS_PORT_INFO)), which->of_hosts != 0);
	assert_int_equal(filtered > 0, which->filter);
	if (!which->of_switch)
		assert_int_equal(entry(0, 1)->time_us, 0);
	/* ports that a reading leaves out keep their readings */
	if (which->of_switch && which->of_hosts) {
		options.leave_out = MAD_FABRIC_COUNTERS_NO_SWITCHES;
		assert_int_equal(read_with(&options), 0);
		assert_true(entry(1, 1)->is_latest);
		assert_false(entry(0, 1)->is_latest);
		assert_int_equal(entry(0, 1)->totals->readings, 1);
		assert_int_equal(entry(1, 1)->totals->readings, 2);
	}
	assert_int_equal(mad_fabric_counters_set_fabric(counters, NULL), 0);
	mad_fabric_free(found);
}

TEST_ROWS(read_which, whiches);

TEST(basic_counters_are_one_request_a_port)
{
	const struct mad_fabric_counters_options basic = {.basic = true};

	assert_int_equal(read_with(&basic), 0);
	assert_int_equal(latest()->requests, WANTED);
	assert_int_equal(entry(1, 1)->reading->extended, 0);
	/* a host without a link is not read */
	known[0].absent = true;
	know();
	read_all();
	assert_int_equal(latest()->wanted, 0);
}

TEST(more_nodes_than_are_read_at_once)
{
	char *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	struct mad_fabric *many;

	/* one device behind all LIDs responds for all */
	fprintf(file, "Switch 254 \"S-1\" # \"s\" base port 0 lid 0 lmc 0\n");
	for (unsigned i = 0; i < 5000; i++)
		fprintf(file,
			"caguid=0x%x\nCa 1 \"H-%x\"\n[1] \"S-1\"[1] # lid %u lmc 0 \"s\" lid 9 "
			"4xSDR\n",
			0x1000 + i, 0x1000 + i, known[1].lid);
	fclose(file);
	file = fmemopen(text, size, "r");
	assert_int_equal(mad_fabric_load(file, &many, NULL), 0);
	fclose(file);
	free(text);
	assert_int_equal(mad_fabric_counters_set_fabric(counters, many), 0);
	assert_int_equal(read_with(&(struct mad_fabric_counters_options){
				 .basic = true, .leave_out = MAD_FABRIC_COUNTERS_NO_SWITCHES}),
			 0);
	assert_int_equal(latest()->read, 5000);
	assert_int_equal(mad_fabric_counters_set_fabric(counters, NULL), 0);
	mad_fabric_free(many);
}

/* --- nodes without a response ----------------------------------------------------- */

TEST(a_silent_node_costs_one_request)
{
	mad_async_wait(NULL, 0);
	read_all();
	receive(0, 1, 400);
	read_all();
	reset(0, 1, 0);
	read_all();
	assert_int_equal(entry(0, 1)->events, MAD_COUNTERS_RESTARTED);
	machine_rule("silent on s");
	receive(1, 1, 40);
	/* the reading has a timeout of its own */
	mad_rpc_set_timeout(port, 60000);
	assert_int_equal(read_with(&(struct mad_fabric_counters_options){.timeout_ms = 5}), 0);
	assert_int_equal(entry(0, 1)->events, 0);
	assert_int_equal(latest()->wanted, WANTED);
	assert_int_equal(latest()->read, 4);
	assert_int_equal(latest()->failed, 5);
	for (unsigned i = 1; i <= 5; i++) {
		assert_int_equal(error_of(0, i), -ETIMEDOUT);
		assert_true(entry(0, i)->is_latest);
		assert_int_equal(entry(0, i)->totals->readings, 3);
	}
	assert_int_equal(latest()->requests, 4 + 1);
	assert_int_equal(total_of(1, 1), 40);
	/* the last failure is left */
	assert_int_equal(mad_last_failure()->error, -EINVAL);
	machine_rule("clear");
	read_all();
	assert_int_equal(error_of(0, 5), 0);
	assert_int_equal(entry(0, 5)->totals->readings, 4);
}

TEST(a_port_has_the_status_of_its_response)
{
	read_all();
	add_oddity((struct oddity){
		.node = "s", .attribute = PMA(IB_GSI_PORT_COUNTERS_EXT), .status = 0x1c});
	read_all();
	/* a response: the other ports are requested */
	for (unsigned n = 1; n <= 5; n++) {
		assert_int_equal(error_of(0, n), -EIO);
		assert_int_equal(entry(0, n)->status, 0x1c);
	}
	forget_odd_nodes();
	read_all();
	assert_int_equal(entry(0, 1)->status, 0);
}

static void silence_port(unsigned number)
{
	add_oddity((struct oddity){.node = "s",
				   .attribute = PMA(IB_GSI_PORT_COUNTERS_EXT),
				   .first = number,
				   .last = number,
				   .drop = true});
}

TEST(a_node_that_stops_responding_costs_two_requests)
{
	mad_rpc_set_timeout(port, 5);
	read_all();
	silence_port(2);
	read_all();
	assert_int_equal(latest()->failed, 1);
	assert_int_equal(error_of(0, 2), -ETIMEDOUT);
	assert_int_equal(error_of(0, 3), 0);
	silence_port(4);
	read_all();
	assert_int_equal(latest()->failed, 2);
	assert_int_equal(error_of(0, 5), 0);
	forget_odd_nodes();
	silence_port(2);
	silence_port(3);
	read_all();
	assert_int_equal(latest()->failed, 4);
	assert_int_equal(error_of(0, 5), -ETIMEDOUT);
	assert_int_equal(latest()->requests, WANTED - 2);
}

TEST(the_node_behind_a_lid_is_checked)
{
	const struct mad_fabric_counters_options check = {.check_guid = true};
	unsigned before;

	mad_rpc_set_timeout(port, 5);
	smp_mkey_set(port, 0x1234);
	add_oddity((struct oddity){.attribute = IB_ATTR_NODE_INFO, .m_key = 0x1234});
	assert_int_equal(read_with(&check), 0);
	assert_int_equal(latest()->read, WANTED);
	assert_int_equal(latest()->requests, 2 * NODES + WANTED);
	net.oddities[0].m_key = 0x99;
	assert_int_equal(read_with(&(struct mad_fabric_counters_options){.check_guid = true,
									 .m_key = 0x99}),
			 0);
	assert_int_equal(latest()->read, WANTED);
	forget_odd_nodes();
	assert_int_equal(read_with(&check), 0);
	receive(1, 1, 1000);
	receive(2, 1, 52);
	assert_int_equal(read_with(&check), 0);
	/* two LIDs are exchanged, and no discovery has noticed */
	set_field("h1", IB_ATTR_NODE_INFO, IB_NODE_GUID_F, known[2].guid);
	set_field("h2", IB_ATTR_NODE_INFO, IB_NODE_GUID_F, known[1].guid);
	before = asked("h1", 0) + asked("h2", 0);
	assert_int_equal(read_with(&check), 0);
	assert_int_equal(asked("h1", 0) + asked("h2", 0) - before, 2);
	assert_int_equal(error_of(1, 1), -ESTALE);
	assert_int_equal(error_of(2, 1), -ESTALE);
	assert_int_equal(entry(2, 1)->status, 0);
	assert_int_equal(error_of(3, 1), 0);
	assert_int_equal(latest()->failed, 2);
	assert_int_equal(total_of(1, 1), 1000);
	/* a discovery notices */
	exchange(1, 2);
	reset(1, 1, 52);
	reset(2, 1, 5000);
	exchange(1, 2);
	exchange(1, 2);
	know();
	assert_int_equal(read_with(&check), 0);
	assert_int_equal(error_of(1, 1), 0);
	assert_int_equal(error_of(2, 1), 0);
	/* without a response to NodeInfo there is none to the others */
	machine_rule("silent on s");
	assert_int_equal(read_with(&check), 0);
	assert_int_equal(error_of(0, 1), -ETIMEDOUT);
	assert_int_equal(error_of(0, 5), -ETIMEDOUT);
}

/* --- limits ----------------------------------------------------------------------- */

static struct mad_cancel cancel;

/* A reading of all ports that ends before a node has responded. */
static void expect_end(const struct mad_fabric_counters_options *options, int error)
{
	add_oddity((struct oddity){.attribute = PMA(IB_GSI_PORT_COUNTERS_EXT), .drop = true});
	mad_rpc_set_timeout(port, 60000);
	assert_int_equal(read_with(options), error);
	assert_int_equal(mad_last_failure()->error, error);
	assert_int_equal(latest()->error, error);
	assert_int_equal(latest()->wanted, WANTED);
	assert_int_equal(latest()->failed, WANTED);
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned n = 1; n <= known[i].ports; n++) {
			assert_int_equal(error_of(i, n), error);
			assert_true(entry(i, n)->is_latest);
			assert_int_equal(entry(i, n)->totals->readings, 1);
		}
	forget_odd_nodes();
}

static void *cancel_soon(void *arg)
{
	machine_pass(SECOND + 500000);
	mad_cancel_set(&cancel);
	return arg;
}

TEST(a_reading_has_limits)
{
	pthread_t thread;

	cancel = (struct mad_cancel){0};
	read_all();
	expect_end(&(struct mad_fabric_counters_options){.time_limit_ms = 500}, -ETIME);
	assert_int_equal(pthread_create(&thread, NULL, cancel_soon, NULL), 0);
	expect_end(&(struct mad_fabric_counters_options){.cancel = &cancel}, -ECANCELED);
	pthread_join(thread, NULL);
	expect_end(&(struct mad_fabric_counters_options){.cancel = &cancel}, -ECANCELED);
	machine_rule("after 1200ms link down on host");
	expect_end(NULL, -ENETDOWN);
	machine_rule("link up on host");
	machine_pass(60 * (int64_t)SECOND);
	read_all();
	assert_int_equal(entry(0, 5)->totals->readings, 2);
	/* a device that is gone */
	machine_rule("slow 1ms");
	machine_rule("after 1001ms remove on host");
	assert_int_equal(read_with(NULL), -ENODEV);
	assert_int_equal(mad_last_failure()->error, -ENODEV);
	assert_int_equal(latest()->wanted, WANTED);
	assert_int_equal(error_of(0, 5), -ENODEV);
}

TEST(a_reading_is_cancelled_in_the_middle)
{
	pthread_t thread;

	cancel = (struct mad_cancel){0};
	read_all();
	silence_port(3);
	mad_rpc_set_timeout(port, 60000);
	assert_int_equal(pthread_create(&thread, NULL, cancel_soon, NULL), 0);
	assert_int_equal(read_with(&(struct mad_fabric_counters_options){.cancel = &cancel}),
			 -ECANCELED);
	pthread_join(thread, NULL);
	assert_int_equal(latest()->wanted, WANTED);
	assert_int_equal(error_of(0, 3), -ECANCELED);
	assert_int_equal(error_of(1, 1), 0);
	for (unsigned n = 1; n <= 5; n++)
		assert_int_equal(entry(0, n)->totals->readings, error_of(0, n) ? 1 : 2);
}

/* --- on an engine ----------------------------------------------------------------- */

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

static void begin(const struct mad_fabric_counters_options *options)
{
	async = async ? async : mad_async_create(port);
	assert_non_null(async);
	done.calls = 0;
	assert_int_equal(mad_fabric_counters_submit(async, counters, options, note, &done, &id),
			 0);
	assert_int_equal(done.calls, 0);
}

static void finish(int error)
{
	mad_async_wait(async, -1);
	assert_int_equal(done.calls, 1);
	assert_int_equal(done.error, error);
	assert_int_equal(mad_async_cancel(async, id), -ENOENT);
}

TEST(a_reading_on_an_engine_is_called_back_once)
{
	begin(NULL);
	assert_int_equal(latest()->end_us, 0);
	assert_int_equal(mad_fabric_counters_submit(async, counters, NULL, note, &done, NULL),
			 -EBUSY);
	assert_int_equal(mad_fabric_counters_read(port, counters, NULL), -EBUSY);
	assert_int_equal(mad_fabric_counters_set_fabric(counters, NULL), -EBUSY);
	assert_int_equal(mad_fabric_counters_forget(counters, known[1].guid), -EBUSY);
	finish(0);
	assert_int_equal(done.read, WANTED);
	/* of nothing, too */
	begin(&(struct mad_fabric_counters_options){.leave_out = 3});
	assert_int_equal(mad_fabric_counters_set_fabric(counters, NULL), -EBUSY);
	finish(0);
	begin(&(struct mad_fabric_counters_options){.leave_out = 3});
	assert_int_equal(mad_async_cancel(async, id), 0);
	finish(-ECANCELED);
	cancel = (struct mad_cancel){0};
	mad_cancel_set(&cancel);
	assert_int_equal(read_with(&(struct mad_fabric_counters_options){.cancel = &cancel,
									 .leave_out = 3}),
			 -ECANCELED);
	begin(&(struct mad_fabric_counters_options){.leave_out = 3});
	mad_async_free(async);
	async = NULL;
	assert_int_equal(done.calls, 1);
	assert_int_equal(done.error, -ECANCELED);
}

static bool free_counters(const struct mad_fabric_port *each, void *arg)
{
	(void)each, (void)arg;
	mad_fabric_counters_free(counters);
	counters = NULL;
	return false;
}

/* The sanitizers see that the memory is freed. */
TEST(an_object_or_engine_that_is_freed_ends_its_reading)
{
	begin(&(struct mad_fabric_counters_options){.filter = free_counters});
	assert_non_null(counters);
	finish(-ECANCELED);
	assert_null(counters);
	use_settings(NULL);
	know();
	machine_rule("slow 1s");
	begin(NULL);
	mad_fabric_counters_free(counters);
	counters = NULL;
	assert_int_equal(done.calls, 0);
	finish(-ECANCELED);
	use_settings(NULL);
	know();
	begin(NULL);
	mad_async_free(async);
	async = NULL;
	assert_int_equal(done.calls, 1);
	assert_int_equal(done.error, -ECANCELED);
	assert_int_equal(error_of(2, 1), -ECANCELED);
	/* a device that is gone refuses a reading */
	async = mad_async_create(port);
	machine_rule("remove on host");
	while (!mad_async_process(async))
		;
	assert_int_equal(mad_fabric_counters_submit(async, counters, NULL, note, &done, NULL),
			 -ENODEV);
	assert_int_equal(done.calls, 1);
}

static void *cancel_from_a_thread(void *arg)
{
	return mad_async_cancel(async, id) || mad_async_cancel(async, id) != -ENOENT ? NULL
										     : arg;
}

/* Before anything was sent, and with requests in flight. */
TEST(another_thread_cancels_a_reading)
{
	pthread_t thread;
	void *ok;

	machine_rule("slow 10s");
	for (unsigned sent = 0; sent < 2; sent++) {
		net.asked_count = 0;
		begin(&(struct mad_fabric_counters_options){.check_guid = true});
		while (sent && !net.asked_count) {
			machine_pass(1);
			assert_true(mad_async_process(async) >= 0);
		}
		assert_int_equal(pthread_create(&thread, NULL, cancel_from_a_thread, &done), 0);
		pthread_join(thread, &ok);
		assert_non_null(ok);
		assert_int_equal(done.calls, 0);
		finish(-ECANCELED);
		assert_int_equal(error_of(3, 1), -ECANCELED);
		assert_int_equal(net.asked_count != 0, sent);
	}
}

static void read_again(struct mad_async *engine, int error, struct mad_fabric_counters *read,
		       void *arg)
{
	note(engine, error, read, arg);
	assert_int_equal(mad_async_cancel(engine, id), -ENOENT);
	if (done.calls < 3)
		assert_int_equal(
			mad_fabric_counters_submit(engine, read, NULL, read_again, arg, &id),
			0);
}

TEST(a_callback_may_start_the_next_reading)
{
	async = mad_async_create(port);
	assert_int_equal(
		mad_fabric_counters_submit(async, counters, NULL, read_again, &done, &id), 0);
	mad_async_wait(async, -1);
	assert_int_equal(done.calls, 3);
	assert_int_equal(entry(1, 1)->totals->readings, 3);
}

/* --- errors ----------------------------------------------------------------------- */

TEST(wrong_arguments_are_refused)
{
	const struct mad_cancel odd = {.reserved = {[2] = 1}}, token = {0};
	const struct mad_fabric_counters_options wrong[] = {
		{.reserved = {1}},
		{.cancel = &odd},
		{.leave_out = 16},
		{.timeout_ms = -1},
		{.counters = ~MAD_COUNTERS_ALL},
	};
	int classes[] = {IB_SMI_DIRECT_CLASS}, performance[] = {IB_PERFORMANCE_CLASS};
	struct ibmad_port *other;

	assert_fails_null(
		mad_fabric_counters_create(&(struct mad_fabric_counters_settings){.flags = 2}),
		EINVAL);
	assert_fails_null(mad_fabric_counters_create(&(struct mad_fabric_counters_settings){
				  .reserved = {0, 0, 0, 1}}),
			  EINVAL);
	assert_int_equal(mad_fabric_counters_set_fabric(NULL, fabric), -EINVAL);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(read_with(&wrong[i]), -EINVAL);
		assert_int_equal(mad_last_failure()->error, -EINVAL);
	}
	assert_int_equal(mad_fabric_counters_read(NULL, counters, NULL), -EINVAL);
	assert_int_equal(mad_fabric_counters_read(port, NULL, NULL), -EINVAL);
	async = mad_async_create(port);
	assert_int_equal(mad_fabric_counters_submit(NULL, counters, NULL, note, &done, NULL),
			 -EINVAL);
	assert_int_equal(mad_fabric_counters_submit(async, NULL, NULL, note, &done, NULL),
			 -EINVAL);
	assert_int_equal(mad_fabric_counters_submit(async, counters, NULL, NULL, &done, NULL),
			 -EINVAL);
	/* mad_async_cancel() cancels a reading on an engine */
	assert_int_equal(mad_fabric_counters_submit(
				 async, counters,
				 &(struct mad_fabric_counters_options){.cancel = &token}, note,
				 &done, NULL),
			 -EINVAL);
	assert_null(mad_fabric_counters_next(NULL, NULL));
	assert_null(mad_fabric_counters_find(NULL, 1, 1));
	assert_null(mad_fabric_counters_find(counters, 12345, 1));
	assert_null(entry(1, 2));
	assert_null(entry(1, 0));
	mad_fabric_counters_free(NULL);
	assert_int_equal(net.asked_count, 0);
	/* classes that are not registered */
	other = mad_rpc_open_port(NULL, 0, classes, 1);
	assert_int_equal(mad_fabric_counters_read(other, counters, NULL), -EPROTONOSUPPORT);
	assert_int_equal(mad_last_failure()->error, -EPROTONOSUPPORT);
	mad_rpc_close_port(other);
	other = mad_rpc_open_port(NULL, 0, performance, 1);
	assert_int_equal(mad_fabric_counters_read(
				 other, counters,
				 &(struct mad_fabric_counters_options){.check_guid = true}),
			 -EPROTONOSUPPORT);
	assert_int_equal(mad_fabric_counters_read(other, counters, NULL), 0);
	mad_rpc_close_port(other);
}

/* All but one of the allocations succeed: the object is as before, or has the whole result. */
TEST(without_memory_an_update_changes_nothing)
{
	struct mad_fabric *larger;
	int error = -ENOMEM;
	unsigned n;

	known[4].absent = true;
	known[0].ports = 4;
	use_settings(NULL);
	know();
	read_all();
	known[4].absent = false;
	known[0].ports = 5;
	larger = known_fabric();
	for (n = 1; error; n++) {
		machine_fail(MACHINE_MALLOC, n, ENOMEM);
		error = mad_fabric_counters_set_fabric(counters, larger);
		machine_fail(MACHINE_MALLOC, 0, 0);
		assert_true(n < 20 && (!error || error == -ENOMEM));
		assert_int_equal(!error, entry(0, 5) != NULL);
		assert_int_equal(!error, entry(4, 1) != NULL);
		assert_ptr_equal(
			entry(1, 1)->port,
			mad_fabric_get_port(
				mad_fabric_find_guid(error ? fabric : larger, known[1].guid),
				1));
	}
	assert_true(n > 4);
	assert_int_equal(entry(1, 1)->totals->readings, 1);
	mad_fabric_free(fabric);
	fabric = larger;
}

TEST(without_memory_a_reading_ends)
{
	int error = -ENOMEM;

	for (unsigned n = 1; error; n++) {
		assert_true(n < 1000);
		use_settings(NULL);
		know();
		machine_fail(MACHINE_MALLOC, n, ENOMEM);
		error = mad_fabric_counters_read(port, counters, NULL);
		machine_fail(MACHINE_MALLOC, 0, 0);
		assert_true(!error || error == -ENOMEM);
		if (!error)
			assert_non_null(entry(0, 5)->reading);
		read_all();
		assert_int_equal(latest()->read, WANTED);
	}
}

/* --- random histories ------------------------------------------------------------- */

#define ROUNDS 6
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
	/* the nodes behind the LIDs of the devices */
	struct real_node {
		uint64_t guid, counts[8][COUNTS];
		bool is_reset[8];
	} nodes[NODES];
} model;

static long roll(long sides)
{
	return random() % sides;
}

static struct model_port *model_port(uint64_t guid, unsigned number)
{
	struct model_port *each = model.ports;

	for (; each < model.ports + model.count; each++)
		if (each->guid == guid && each->number == number)
			return each;
	assert_true(model.count < 1000);
	model.count++;
	*each = (struct model_port){
		.guid = guid, .number = number, .tracker = mad_counters_tracker_create(0)};
	assert_non_null(each->tracker);
	return each;
}

static void model_free(void)
{
	for (unsigned i = 0; i < model.count; i++)
		mad_counters_tracker_free(model.ports[i].tracker);
	memset(&model, 0, sizeof(model));
}

/*
 * The totals of a port grow by what a reading has more than the one before. Counters of another
 * attribute begin again.
 */
static void model_read(struct model_port *each, struct real_node *node, bool basic)
{
	for (unsigned i = 0; i < COUNTS; i++) {
		uint64_t now = node->counts[each->number][i];

		if (each->readings && basic == each->basic)
			each->totals[i] += now < each->read[i] ? now : now - each->read[i];
		each->read[i] = now;
	}
	each->basic = basic;
	each->readings++;
	node->is_reset[each->number] = false;
}

static void expect_same_totals(const struct mad_counters_totals *one,
			       const struct mad_counters_totals *other)
{
	struct mad_counters_totals copy = *one;

	copy.total.requests = other->total.requests; /* which a reading does not have */
	assert_memory_equal(&copy, other, sizeof(copy));
}

/* The object has the same of a port as a tracker of its own, and as the model. */
static void model_judge(struct model_port *each, bool was_read)
{
	const struct mad_fabric_counters_port *found =
		mad_fabric_counters_find(counters, each->guid, each->number);
	int events;

	if (!each->readings) {
		assert_true(!found || !found->totals);
		return;
	}
	assert_non_null(found);
	assert_non_null(found->totals);
	assert_int_equal(found->totals->readings, each->readings);
	for (unsigned i = 0; i < COUNTS; i++) {
		assert_int_equal(mad_counters_value(found->reading, counted[i], NULL),
				 each->read[i]);
		assert_int_equal(mad_counters_value(&found->totals->total, counted[i], NULL),
				 each->totals[i]);
	}
	if (was_read) {
		events = mad_counters_tracker_add(each->tracker, found->reading);
		assert_int_equal(events, found->events);
	}
	expect_same_totals(mad_counters_tracker_totals(each->tracker), found->totals);
	for (unsigned i = 0; i < MAD_COUNTER_COUNT; i++) {
		double rates[] = {mad_counters_tracker_rate(each->tracker, i, MAD_RATE_LATEST),
				  mad_counters_tracker_rate(found->tracker, i, MAD_RATE_LATEST),
				  mad_counters_tracker_rate(each->tracker, i, MAD_RATE_MEAN),
				  mad_counters_tracker_rate(found->tracker, i, MAD_RATE_MEAN)};

		assert_memory_equal(&rates[0], &rates[1], sizeof(rates[0]));
		assert_memory_equal(&rates[2], &rates[3], sizeof(rates[2]));
	}
}

/* Nodes count, are reset, and replaced. What was reset counts nothing until it is read. */
static void model_change(void)
{
	for (unsigned i = 0; i < NODES; i++) {
		struct real_node *node = &model.nodes[i];
		bool restarts = !roll(12);

		for (unsigned n = 1; n <= known[i].ports; n++) {
			for (unsigned k = 0; k < COUNTS && !node->is_reset[n]; k++)
				if (!roll(3)) /* symbol errors have 16 bits */
					node->counts[n][k] +=
						(uint64_t)(k == 2 ? roll(400)
								  : 4 * roll(50000));
			if (!restarts && roll(12))
				continue;
			memset(node->counts[n], 0, sizeof(node->counts[n]));
			node->is_reset[n] = true;
		}
		if (i && !roll(8))
			node->guid = model.next_guid++;
		known[i].absent = i && !roll(6);
	}
}

/* Two nodes change places. */
static void model_exchange(void)
{
	unsigned one = 1 + (unsigned)roll(NODES - 2), other = 1 + (unsigned)roll(NODES - 2);
	struct real_node node = model.nodes[one];

	model.nodes[one] = model.nodes[other];
	model.nodes[other] = node;
}

/* The machine's devices are the nodes; some are silent. */
static void model_show(void)
{
	forget_odd_nodes();
	for (unsigned i = 0; i < NODES; i++) {
		if (i)
			set_field(known[i].device, IB_ATTR_NODE_INFO, IB_NODE_GUID_F,
				  model.nodes[i].guid);
		for (unsigned n = 1; n <= known[i].ports; n++)
			for (unsigned k = 0; k < COUNTS; k++)
				machine_set_counter(known[i].device, n, counted[k],
						    k ? model.nodes[i].counts[n][k]
						      : model.nodes[i].counts[n][k] / 4);
	}
	if (!roll(2))
		add_oddity((struct oddity){.node = known[roll(NODES)].device, .drop = true});
	if (!roll(3))
		silence_port(1 + (unsigned)roll(5));
}

static void model_step(void)
{
	struct mad_fabric_counters_options options = {.leave_out = (unsigned)roll(4) * !roll(3),
						      .check_guid = true,
						      .basic = !roll(6)};

	model_change();
	model_exchange();
	for (unsigned i = 0; i < NODES; i++)
		known[i].guid = model.nodes[i].guid;
	know();
	/* the fabric changes after the discovery */
	if (!roll(3))
		model_exchange();
	model_show();
	assert_int_equal(read_with(&options), 0);
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned n = 1; n <= known[i].ports; n++) {
			const struct mad_fabric_counters_port *each = entry(i, n);
			bool was_read = each && each->is_latest && !each->error;

			if (was_read) {
				assert_int_equal(model.nodes[i].guid, known[i].guid);
				model_read(model_port(known[i].guid, n), &model.nodes[i],
					   options.basic);
			}
			if (each && each->is_latest && each->error)
				assert_true(each->error == -ETIMEDOUT ||
					    each->error == -ESTALE);
			model_judge(model_port(known[i].guid, n), was_read);
		}
	for (unsigned i = 0; i < model.count; i++)
		model_judge(&model.ports[i], false);
}

TEST(totals_follow_the_ports_through_random_histories)
{
	srandom(test_seed());
	mad_rpc_set_timeout(port, 5);
	mad_rpc_set_retries(port, 1);
	for (int round = 0; round < ROUNDS; round++) {
		use_settings(NULL);
		model.next_guid = 0x500000;
		learn_nodes();
		for (unsigned i = 0; i < NODES; i++)
			model.nodes[i].guid = known[i].guid;
		for (int step = 0; step < STEPS; step++)
			model_step();
		model_free();
	}
}
