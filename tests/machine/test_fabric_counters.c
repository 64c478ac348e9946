/* SPDX-License-Identifier: BSD-2-Clause */

/* The counters of all ports of a fabric, over discoveries. */

#include "../heap_in_use.h"
#include "fabrics.h"

#include <infiniband/mad_fabric_counters.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>

/* Host n is at port n of the switch, the local host at port 4. */
#define COUNTED                                                                             \
	"Ca 1 \"host\"\n[1] \"s\"[4]\nSwitch 5 \"s\"\n[1] \"h1\"\n[2] \"h2\"\n[3] \"h3\"\n" \
	"Ca 1 \"h1\"\nCa 1 \"h2\"\nCa 1 \"h3\"\n"
#define NODES  5
#define WANTED 9 /* ports: 5 of the switch, 4 of hosts */
#define SECOND INT64_C(1000000)

/* Initializers of options and settings. */
#define OPTIONS(...)  (&(struct mad_fabric_counters_options){__VA_ARGS__})
#define SETTINGS(...) (&(struct mad_fabric_counters_settings){__VA_ARGS__})

static const char *const devices[NODES] = {"s", "h1", "h2", "h3", "host"};
/* What devices[i] of the machine is in the fabric. */
static struct known {
	uint64_t guid;
	unsigned ports;
	bool absent, enhanced; /* a switch with an enhanced port 0 */
} known[NODES];
static struct mad_fabric_counters *counters;
static struct mad_async *async;
static uint64_t id; /* of the latest reading on it */
static struct {
	int calls, error, repeats;
} done;

/* The hosts have their GUIDs, or are absent, and the switch has its ports, by responses. */
static void show_nodes(void)
{
	forget_odd_nodes();
	set_field("s", IB_ATTR_NODE_INFO, IB_NODE_NPORTS_F, known[0].ports);
	set_field("s", IB_ATTR_SWITCH_INFO, IB_SW_ENHANCED_PORT0_F, known[0].enhanced);
	for (unsigned i = 1; i < NODES - 1; i++)
		add_oddity((struct oddity){.node = devices[i],
					   .attribute = IB_ATTR_NODE_INFO,
					   .drop = known[i].absent,
					   .field = IB_NODE_GUID_F,
					   .value = known[i].guid});
}

/* A discovery. */
static void know(void)
{
	struct mad_fabric *former = fabric;

	show_nodes();
	assert_int_equal(mad_fabric_discover(port, NULL, &fabric), 0);
	assert_int_equal(mad_fabric_counters_set_fabric(counters, fabric), 0);
	mad_fabric_free(former);
	forget_odd_nodes();
}

/* Another object, with the fabric that is known. */
static void use(const struct mad_fabric_counters_settings *settings)
{
	mad_fabric_counters_free(counters);
	counters = mad_fabric_counters_create(settings);
	assert_non_null(counters);
	know();
}

static void learn_nodes(void)
{
	for (unsigned i = 0; i < NODES; i++)
		known[i] = (struct known){.guid = guid_of(devices[i]), .ports = i ? 1 : 5};
}

static int setup(void)
{
	start(COUNTED);
	mad_rpc_set_timeout(port, 5);
	mad_rpc_set_retries(port, 1);
	machine_pass(SECOND);
	memset(&done, 0, sizeof(done));
	learn_nodes();
	use(NULL);
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

/* A reading, of so many ports. */
static void read_ports(const struct mad_fabric_counters_options *options, size_t ports)
{
	assert_int_equal(read_with(options), 0);
	assert_int_equal(counters->latest->wanted, ports);
	assert_int_equal(counters->latest->read, ports);
}

static void read_all(void)
{
	read_ports(NULL, WANTED);
}

static const struct mad_fabric_counters_port *entry(unsigned node, unsigned number)
{
	return mad_fabric_counters_find(counters, known[node].guid, number);
}

static uint64_t readings_of(unsigned node, unsigned number)
{
	return entry(node, number)->totals->readings;
}

/*
 * The errors of the latest reading: ports 1 to 5 of the switch, h1 to h3, the host. Ports have
 * so many readings, and those that were read have one more.
 */
static void expect_errors(const int errors[WANTED], unsigned readings)
{
	unsigned failed = 0;

	for (unsigned i = 0; i < WANTED; i++) {
		const struct mad_fabric_counters_port *each =
			i < 5 ? entry(0, i + 1) : entry(i - 4, 1);

		failed += errors[i] != 0;
		assert_int_equal(each->error, errors[i]);
		assert_true(each->is_latest);
		assert_int_equal(each->totals->readings, readings + !errors[i]);
		assert_int_equal(each->status, errors[i] == -EIO ? 0x1c : 0);
		assert_true(!errors[i] || !each->events);
	}
	assert_int_equal(counters->latest->wanted, WANTED);
	assert_int_equal(counters->latest->failed, failed);
	assert_int_equal(counters->latest->read, WANTED - failed);
}

/* The bytes that a device has received, a multiple of 4. */
static void set_bytes(unsigned node, unsigned number, uint64_t bytes)
{
	machine_set_counter(devices[node], number, MAD_COUNTER_RCV_BYTES, bytes / 4);
}

static void silence_port(unsigned number)
{
	add_oddity((struct oddity){.node = "s",
				   .attribute = PMA(IB_GSI_PORT_COUNTERS_EXT),
				   .first = number,
				   .last = number,
				   .drop = true});
}

static void set_status(const char *node, uint16_t status)
{
	add_oddity((struct oddity){
		.node = node, .attribute = PMA(IB_GSI_PORT_COUNTERS_EXT), .status = status});
}

/* --- the ports of a reading ------------------------------------------------------- */

TEST(a_reading_has_each_port)
{
	const struct mad_fabric_counters_port *each = NULL;
	const struct mad_fabric_counters_summary *latest = counters->latest;
	unsigned ports = 0, nodes = 0;
	uint64_t guid = 0;
	int number = -1;

	read_all();
	while ((each = mad_fabric_counters_next(counters, each))) {
		/* a base port 0 has no counters */
		bool is_read = each->guid != known[0].guid || each->number;

		ports++;
		assert_int_equal(each->reading != NULL, is_read);
		assert_int_equal(each->is_latest, is_read);
		assert_int_equal(each->time_us != 0, is_read);
		/* the ports of a node come together, by number */
		nodes += each->guid != guid;
		assert_true(each->guid != guid || each->number > number);
		guid = each->guid;
		number = each->number;
	}
	assert_int_equal(ports, WANTED + 1);
	assert_int_equal(nodes, NODES);
	/* ClassPortInfo of each node, an attribute of each port; PortCounters: one request */
	assert_int_equal(latest->requests, NODES + WANTED);
	assert_true(latest->begin_us && latest->end_us >= latest->begin_us);
	read_ports(OPTIONS(.basic = true), WANTED);
	assert_int_equal(latest->requests, WANTED);
	assert_int_equal(entry(1, 1)->reading->extended, 0);
}

#define MOST_BYTES 180 /* of a port whose counters are 0 */

TEST(more_nodes_than_are_read_at_once_and_few_bytes_for_each)
{
	char *text;
	size_t size, in_use;
	FILE *file = open_memstream(&text, &size);

	/* a host without a link has no LID; one device responds for all others */
	fprintf(file, "Switch 254 \"S-1\" # \"s\" base port 0 lid 0 lmc 0\n"
		      "caguid=0x999\nCa 1 \"H-999\"\n");
	/* of several nodes with one GUID the first is read */
	for (unsigned i = 0; i < 3000; i++)
		fprintf(file,
			"caguid=0x%x\nCa 1 \"H-%x\"\n[1] \"S-1\"[1] # lid %u lmc 0 \"s\" lid 9 "
			"4xSDR\n",
			0x1000 + i / 2, 0x1000 + i / 2, i % 2 ? 99 : machine_lid("h1"));
	fclose(file);
	file = fmemopen(text, size, "r");
	mad_fabric_counters_set_fabric(counters, NULL);
	mad_fabric_free(fabric);
	assert_int_equal(mad_fabric_load(file, &fabric, NULL), 0);
	fclose(file);
	free(text);
	assert_int_equal(mad_fabric_counters_set_fabric(counters, fabric), 0);
	in_use = heap_in_use();
	read_ports(OPTIONS(.basic = true), 1500);
	read_ports(OPTIONS(.basic = true), 1500);
	assert_in_range(heap_in_use(), 0, in_use + 1500 * MOST_BYTES);
}

TEST(a_node_is_forgotten_by_a_call)
{
	read_all();
	/* of a node in the fabric, only the readings */
	assert_int_equal(mad_fabric_counters_forget(counters, known[2].guid), 0);
	assert_null(entry(2, 1)->reading);
	assert_null(entry(2, 1)->totals);
	forget_odd_nodes();
	read_all();
	assert_int_equal(readings_of(2, 1), 1);
	assert_int_equal(readings_of(3, 1), 2);
	assert_int_equal(asked("h2", PMA(CLASS_PORT_INFO)), 1);
	assert_int_equal(asked("h3", PMA(CLASS_PORT_INFO)), 0);
	/* all nodes of a former fabric, whose ports that were never read are gone */
	assert_int_equal(mad_fabric_counters_set_fabric(counters, NULL), 0);
	assert_null(entry(0, 0));
	read_ports(NULL, 0);
	for (unsigned i = 0; i < NODES; i++) {
		assert_int_equal(mad_fabric_counters_forget(counters, known[i].guid), 0);
		assert_int_equal(mad_fabric_counters_forget(counters, known[i].guid), -ENOENT);
	}
	assert_null(mad_fabric_counters_next(counters, NULL));
	know();
	assert_non_null(entry(2, 1));
}

/* --- what is requested ------------------------------------------------------------ */

TEST(class_port_info_is_read_once_for_each_fabric)
{
	read_all();
	read_all();
	assert_int_equal(asked("h1", PMA(CLASS_PORT_INFO)), 1);
	know();
	set_bytes(1, 1, 1000);
	read_all();
	assert_int_equal(asked("h1", PMA(CLASS_PORT_INFO)), 1);
	/* and after a restart */
	set_bytes(1, 1, 8);
	for (int i = 0; i < 3; i++)
		read_all();
	assert_int_equal(asked("h1", PMA(CLASS_PORT_INFO)), 2);
	assert_int_equal(asked("h2", PMA(CLASS_PORT_INFO)), 1);
	/* what a node refuses is requested once */
	set_status("h2", 0x0c);
	read_all();
	read_all();
	net.asked_count = 0;
	read_all();
	assert_int_equal(asked("h2", 0), 1);
	assert_int_equal(asked("h2", PMA(IB_GSI_PORT_COUNTERS)), 1);
}

TEST(a_node_that_loses_and_gets_counters)
{
	const uint64_t wait = MAD_COUNTER_BIT(MAD_COUNTER_XMIT_WAIT_TICKS);

	read_all();
	assert_true(entry(1, 1)->reading->present & wait);
	machine_rule("counters 32 on h1");
	read_all();
	assert_int_equal(entry(1, 1)->error, 0);
	assert_false(entry(1, 1)->reading->present & wait);
	assert_int_equal(asked("h1", PMA(CLASS_PORT_INFO)), 2);
	machine_rule("clear");
	know();
	read_all();
	assert_true(entry(1, 1)->reading->present & wait);
	read_all();
	/* another firmware's counters begin again */
	machine_rule("counters 64 on h1");
	set_bytes(1, 1, 1000);
	know();
	read_all();
	assert_int_equal(entry(1, 1)->events & MAD_COUNTERS_REPLACED, MAD_COUNTERS_REPLACED);
	assert_int_equal(entry(1, 1)->totals->total.rcv_bytes, 0);
}

/* --- nodes without a response ----------------------------------------------------- */

#define SILENT (-ETIMEDOUT)

TEST(a_silent_node_costs_one_request)
{
	set_bytes(0, 1, 400);
	read_all();
	set_bytes(0, 1, 0);
	read_all();
	assert_int_equal(entry(0, 1)->events, MAD_COUNTERS_RESTARTED);
	machine_rule("silent on s");
	mad_async_wait(NULL, 0); /* a failure */
	/* the reading has a timeout of its own */
	mad_rpc_set_timeout(port, 60000);
	assert_int_equal(read_with(OPTIONS(.timeout_ms = 5)), 0);
	assert_true(machine_us() < 10 * SECOND);
	expect_errors((int[]){SILENT, SILENT, SILENT, SILENT, SILENT, 0, 0, 0, 0}, 2);
	assert_int_equal(counters->latest->requests, 4 + 1);
	/* the last failure is left */
	assert_int_equal(mad_last_failure()->error, -EINVAL);
	machine_rule("clear");
	read_all();
	assert_int_equal(readings_of(0, 5), 3);
}

TEST(a_node_that_stops_responding_costs_two_requests)
{
	read_all();
	silence_port(2);
	silence_port(4);
	assert_int_equal(read_with(NULL), 0);
	expect_errors((int[]){0, SILENT, 0, SILENT, 0, 0, 0, 0, 0}, 1);
	use(NULL);
	read_all();
	silence_port(2);
	silence_port(3);
	assert_int_equal(read_with(NULL), 0);
	expect_errors((int[]){0, SILENT, SILENT, SILENT, SILENT, 0, 0, 0, 0}, 1);
	assert_int_equal(counters->latest->requests, WANTED - 2);
	/* a status is a response: the other ports are requested */
	use(NULL);
	read_all();
	set_status("s", 0x1c);
	assert_int_equal(read_with(NULL), 0);
	expect_errors((int[]){-EIO, -EIO, -EIO, -EIO, -EIO, 0, 0, 0, 0}, 1);
	forget_odd_nodes();
	read_all();
	assert_int_equal(entry(0, 1)->status, 0);
}

TEST(the_node_behind_a_lid_is_checked)
{
	const struct mad_fabric_counters_options *check = OPTIONS(.check_guid = true);

	smp_mkey_set(port, 0x1234);
	add_oddity((struct oddity){.attribute = IB_ATTR_NODE_INFO, .m_key = 0x1234});
	read_ports(check, WANTED);
	assert_int_equal(counters->latest->requests, 2 * NODES + WANTED);
	net.oddities[0].m_key = 0x99;
	read_ports(OPTIONS(.check_guid = true, .m_key = 0x99), WANTED);
	forget_odd_nodes();
	/* two LIDs are exchanged, and no discovery has noticed */
	set_field("h1", IB_ATTR_NODE_INFO, IB_NODE_GUID_F, known[2].guid);
	set_field("h2", IB_ATTR_NODE_INFO, IB_NODE_GUID_F, known[1].guid);
	assert_int_equal(read_with(check), 0);
	assert_int_equal(asked("h1", 0) + asked("h2", 0), 2);
	expect_errors((int[]){0, 0, 0, 0, 0, -ESTALE, -ESTALE, 0, 0}, 2);
	/* without a response to NodeInfo there is none to the others */
	use(NULL);
	read_all();
	machine_rule("silent on s");
	assert_int_equal(read_with(check), 0);
	expect_errors((int[]){SILENT, SILENT, SILENT, SILENT, SILENT, 0, 0, 0, 0}, 1);
}

/* --- limits ----------------------------------------------------------------------- */

static struct mad_cancel cancel;

/* A reading that ends before a node has responded. */
static void expect_end(const struct mad_fabric_counters_options *options, int error)
{
	add_oddity((struct oddity){.attribute = PMA(IB_GSI_PORT_COUNTERS_EXT), .drop = true});
	mad_rpc_set_timeout(port, 60000);
	assert_int_equal(read_with(options), error);
	assert_int_equal(mad_last_failure()->error, error);
	assert_int_equal(counters->latest->error, error);
	expect_errors((int[]){error, error, error, error, error, error, error, error, error},
		      1);
	forget_odd_nodes();
}

static void *cancel_soon(void *arg)
{
	machine_pass(SECOND + SECOND / 2);
	mad_cancel_set(&cancel);
	return arg;
}

TEST(a_reading_has_limits)
{
	pthread_t thread;

	cancel = (struct mad_cancel){0};
	read_all();
	expect_end(OPTIONS(.time_limit_ms = 500), -ETIME);
	assert_int_equal(pthread_create(&thread, NULL, cancel_soon, NULL), 0);
	expect_end(OPTIONS(.cancel = &cancel), -ECANCELED);
	pthread_join(thread, NULL);
	expect_end(OPTIONS(.cancel = &cancel), -ECANCELED);
	machine_rule("after 1200ms link down on host");
	expect_end(NULL, -ENETDOWN);
	machine_rule("link up on host");
	machine_pass(60 * SECOND);
	/* in the middle: what was read counts */
	silence_port(3);
	assert_int_equal(read_with(OPTIONS(.time_limit_ms = 500)), -ETIME);
	expect_errors((int[]){0, 0, -ETIME, -ETIME, -ETIME, 0, 0, 0, 0}, 1);
	/* a device that is gone */
	machine_rule("slow 1ms");
	machine_rule("after 1001ms remove on host");
	assert_int_equal(read_with(NULL), -ENODEV);
	assert_int_equal(mad_last_failure()->error, -ENODEV);
	assert_int_equal(counters->latest->wanted, WANTED);
	assert_int_equal(entry(0, 5)->error, -ENODEV);
}

/* --- on an engine ----------------------------------------------------------------- */

static void note(struct mad_async *engine, int error, struct mad_fabric_counters *read,
		 void *arg);

static int submit(const struct mad_fabric_counters_options *options)
{
	async = async ? async : mad_async_create(port);
	return mad_fabric_counters_submit(async, counters, options, note, &done, &id);
}

/* A callback may begin the next reading. */
static void note(struct mad_async *engine, int error, struct mad_fabric_counters *read,
		 void *arg)
{
	assert_ptr_equal(engine, async);
	(void)read;
	assert_ptr_equal(arg, &done);
	done.calls++;
	done.error = error;
	if (error)
		assert_int_equal(mad_last_failure()->error, error);
	if (!done.repeats)
		return;
	done.repeats--;
	assert_int_equal(mad_async_cancel(engine, id), -ENOENT);
	assert_int_equal(submit(NULL), 0);
}

static void begin(const struct mad_fabric_counters_options *options)
{
	done.calls = 0;
	assert_int_equal(submit(options), 0);
	assert_int_equal(done.calls, 0);
}

static void free_engine(void)
{
	mad_async_free(async);
	async = NULL;
}

static void free_counters(void)
{
	mad_fabric_counters_free(counters);
	counters = NULL;
}

static void expect_done(int error)
{
	mad_async_wait(async, -1);
	assert_int_equal(done.calls, 1);
	assert_int_equal(done.error, error);
}

TEST(a_reading_on_an_engine_is_called_back_once)
{
	const struct mad_fabric_counters_options *nothing = OPTIONS(.leave_out = 3);

	begin(NULL);
	assert_int_equal(counters->latest->end_us, 0);
	assert_int_equal(submit(NULL), -EBUSY);
	assert_int_equal(mad_fabric_counters_read(port, counters, NULL), -EBUSY);
	assert_int_equal(mad_fabric_counters_set_fabric(counters, NULL), -EBUSY);
	assert_int_equal(mad_fabric_counters_forget(counters, known[1].guid), -EBUSY);
	expect_done(0);
	assert_int_equal(counters->latest->read, WANTED);
	done.repeats = 2;
	begin(NULL);
	mad_async_wait(async, -1);
	assert_int_equal(done.calls, 3);
	assert_int_equal(readings_of(1, 1), 4);
	/* of nothing, too */
	begin(nothing);
	assert_int_equal(mad_fabric_counters_set_fabric(counters, NULL), -EBUSY);
	expect_done(0);
	begin(nothing);
	assert_int_equal(mad_async_cancel(async, id), 0);
	expect_done(-ECANCELED);
	begin(nothing);
	free_engine();
	expect_done(-ECANCELED);
}

static bool free_at_once(const struct mad_fabric_port *each, void *arg)
{
	(void)each, (void)arg;
	free_counters();
	return false;
}

/* The sanitizers see that the memory is freed. */
TEST(an_object_or_engine_that_is_freed_ends_its_reading)
{
	begin(OPTIONS(.filter = free_at_once));
	expect_done(-ECANCELED);
	assert_null(counters);
	use(NULL);
	machine_rule("slow 1s");
	begin(NULL);
	free_counters();
	assert_int_equal(done.calls, 0);
	expect_done(-ECANCELED);
	machine_rule("clear");
	use(NULL);
	begin(NULL);
	free_engine();
	expect_done(-ECANCELED);
	assert_int_equal(entry(2, 1)->error, -ECANCELED);
	/* a device that is gone refuses a reading */
	async = mad_async_create(port);
	machine_rule("remove on host");
	while (!mad_async_process(async))
		;
	assert_int_equal(submit(NULL), -ENODEV);
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
		begin(OPTIONS(.check_guid = true));
		while (sent && !net.asked_count) {
			machine_pass(1);
			assert_true(mad_async_process(async) >= 0);
		}
		assert_int_equal(pthread_create(&thread, NULL, cancel_from_a_thread, &done), 0);
		pthread_join(thread, &ok);
		assert_non_null(ok);
		assert_int_equal(done.calls, 0);
		expect_done(-ECANCELED);
		assert_int_equal(entry(3, 1)->error, -ECANCELED);
		assert_int_equal(net.asked_count != 0, sent);
	}
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

	assert_fails_null(mad_fabric_counters_create(SETTINGS(.flags = 2)), EINVAL);
	assert_fails_null(mad_fabric_counters_create(SETTINGS(.reserved = {0, 0, 0, 1})),
			  EINVAL);
	assert_int_equal(mad_fabric_counters_set_fabric(NULL, fabric), -EINVAL);
	assert_int_equal(mad_fabric_counters_forget(NULL, 1), -EINVAL);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(read_with(&wrong[i]), -EINVAL);
		assert_int_equal(mad_last_failure()->error, -EINVAL);
	}
	assert_int_equal(mad_fabric_counters_read(NULL, counters, NULL), -EINVAL);
	assert_int_equal(mad_fabric_counters_read(port, NULL, NULL), -EINVAL);
	/* mad_async_cancel() cancels a reading on an engine */
	assert_int_equal(submit(OPTIONS(.cancel = &token)), -EINVAL);
	assert_int_equal(mad_fabric_counters_submit(NULL, counters, NULL, note, NULL, NULL),
			 -EINVAL);
	assert_int_equal(mad_fabric_counters_submit(async, NULL, NULL, note, NULL, NULL),
			 -EINVAL);
	assert_int_equal(mad_fabric_counters_submit(async, counters, NULL, NULL, NULL, NULL),
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
	machine_fail(MACHINE_MALLOC, 1, ENOMEM);
	assert_int_equal(mad_fabric_counters_read(other, counters, NULL), -ENOMEM);
	assert_int_equal(mad_fabric_counters_read(other, counters, OPTIONS(.check_guid = true)),
			 -EPROTONOSUPPORT);
	assert_int_equal(mad_fabric_counters_read(other, counters, NULL), 0);
	mad_rpc_close_port(other);
}

/* All but one of the allocations succeed: the object is as before, or has the whole result. */
TEST(without_memory_an_update_changes_nothing)
{
	struct mad_fabric *smaller, *larger = fabric;
	int error = -ENOMEM;

	known[3].absent = true;
	known[0].ports = 4;
	fabric = NULL;
	use(NULL);
	smaller = fabric;
	read_ports(NULL, WANTED - 2);
	for (unsigned n = 1; error; n++) {
		machine_fail(MACHINE_MALLOC, n, ENOMEM);
		error = mad_fabric_counters_set_fabric(counters, larger);
		machine_fail(MACHINE_MALLOC, 0, 0);
		assert_true(!error || error == -ENOMEM);
		assert_int_equal(!error, entry(0, 5) != NULL);
		assert_int_equal(!error, entry(3, 1) != NULL);
		fabric = error ? smaller : larger;
		assert_ptr_equal(entry(1, 1)->port, port_of("h1", 1));
	}
	assert_int_equal(readings_of(1, 1), 1);
	mad_fabric_free(smaller);
}

TEST(without_memory_a_reading_ends)
{
	int error = -ENOMEM;

	for (unsigned n = 1; error; n++) {
		assert_true(n < 1000);
		use(NULL);
		machine_fail(MACHINE_MALLOC, n, ENOMEM);
		error = mad_fabric_counters_read(port, counters, NULL);
		machine_fail(MACHINE_MALLOC, 0, 0);
		assert_true(!error || error == -ENOMEM);
		if (!error)
			assert_non_null(entry(0, 5)->reading);
		read_all();
	}
}

/* --- random histories ------------------------------------------------------------- */

#define NODES_KNOWN 9

/* A node: its true counts, and what is to be expected of its ports. */
static struct real_node {
	uint64_t guid;
	bool in_fabric;
	int64_t seen_us; /* when it was there, or found to be absent */
	struct real_port {
		uint64_t count;
		struct mad_counters reading; /* the latest one */
		struct mad_counters_tracker *tracker;
	} ports[6];
} real_nodes[NODES_KNOWN];
/* The nodes behind the LIDs of the devices; the others are in no fabric. */
static struct real_node *places[NODES_KNOWN];
static unsigned flags;  /* of trackers */
static int64_t keep_us; /* of absent nodes; 0: for ever */

static unsigned roll(long sides)
{
	return (unsigned)(random() % sides);
}

static void forget(struct real_node *node)
{
	for (unsigned n = 0; n < 6; n++) {
		mad_counters_tracker_free(node->ports[n].tracker);
		node->ports[n].tracker = mad_counters_tracker_create(flags);
	}
}

/* Two of the nodes at places 1 to 3, and of those in no fabric, change places. */
static void exchange(void)
{
	unsigned one = 1 + roll(7), other = 1 + roll(7);
	struct real_node *node, **a = &places[one + (one > 3)];
	struct real_node **b = &places[other + (other > 3)];

	node = *a;
	*a = *b;
	*b = node;
}

/* A discovery. The time of an absence begins with the fabric that does not have the node. */
static void know_nodes(void)
{
	machine_pass(roll(2) * (keep_us ? keep_us : INT64_C(1) << 42) / 10 * roll(20));
	know();
	for (unsigned i = 0; i < NODES_KNOWN; i++) {
		struct real_node *node = &real_nodes[i];
		bool was_there = node->in_fabric;

		node->in_fabric = mad_fabric_find_guid(fabric, node->guid) != NULL;
		if (node->in_fabric || was_there)
			node->seen_us = machine_us();
		else if (keep_us && machine_us() - node->seen_us > keep_us)
			forget(node);
	}
}

/* Nodes count, are reset, come and go, are absent, and change places, also after a discovery.
 */
static void change_nodes(void)
{
	for (unsigned i = 0; i < NODES_KNOWN; i++)
		for (unsigned n = 1, restarts = !roll(12); n < 6; n++) {
			uint64_t *count = &real_nodes[i].ports[n].count;

			*count = restarts || !roll(12) ? roll(100)
						       : *count + roll(2) * roll(50000);
		}
	exchange();
	for (unsigned i = 0; i < NODES; i++) {
		known[i].guid = places[i]->guid;
		known[i].absent = i && i < 4 && !roll(6);
	}
	known[0].enhanced = roll(2);
	known[0].ports = roll(4) ? 5 : 4;
	know_nodes();
	if (!roll(3))
		exchange();
}

/* The machine's devices are the nodes at their places; some are silent. */
static void show_places(void)
{
	for (unsigned i = 0; i < NODES; i++) {
		if (i)
			set_field(devices[i], IB_ATTR_NODE_INFO, IB_NODE_GUID_F,
				  places[i]->guid);
		for (unsigned n = 1; n <= (i ? 1 : 5); n++) {
			set_bytes(i, n, 4 * places[i]->ports[n].count);
			machine_set_counter(devices[i], n, MAD_COUNTER_SYMBOL_ERRORS,
					    places[i]->ports[n].count & 0xffff);
		}
	}
	if (!roll(2))
		add_oddity((struct oddity){.node = devices[roll(NODES)], .drop = true});
	if (!roll(3))
		silence_port(1 + roll(5));
}

/* The object has the same of a port as its tracker. */
static void judge(const struct real_node *node, unsigned number)
{
	const struct mad_fabric_counters_port *found =
		mad_fabric_counters_find(counters, node->guid, number);
	const struct real_port *expected = &node->ports[number];
	const struct mad_counters_tracker *tracker = expected->tracker;
	struct mad_counters_totals totals = *mad_counters_tracker_totals(tracker);

	if (found)
		assert_ptr_equal(
			found->port,
			mad_fabric_get_port(mad_fabric_find_guid(fabric, node->guid), number));
	if (!totals.readings) {
		assert_true(!found || !found->totals);
		return;
	}
	assert_non_null(found);
	assert_non_null(found->totals);
	totals.total.requests = found->totals->total.requests; /* no reading has it */
	assert_memory_equal(found->totals, &totals, sizeof(totals));
	assert_memory_equal(found->reading, &expected->reading, sizeof(expected->reading));
	for (unsigned i = 0; i < 2 * MAD_COUNTER_COUNT; i++) {
		double one = mad_counters_tracker_rate(tracker, i / 2, i % 2);
		double other = mad_counters_tracker_rate(found->tracker, i / 2, i % 2);

		assert_memory_equal(&one, &other, sizeof(one));
	}
}

static bool is_odd_port(const struct mad_fabric_port *each, void *arg)
{
	assert_ptr_equal(arg, counters);
	return each->number % 2;
}

static bool is_wanted(const struct mad_fabric_counters_options *options, unsigned node,
		      unsigned number)
{
	unsigned left_out = options->leave_out;

	if (known[node].absent || (options->filter && !(number % 2)))
		return false;
	if (node)
		return number && !(left_out & MAD_FABRIC_COUNTERS_NO_OTHERS);
	if (number == 5 && left_out & MAD_FABRIC_COUNTERS_NO_DOWN)
		return false;
	if (!number && (!known[0].enhanced || left_out & MAD_FABRIC_COUNTERS_NO_PORT0))
		return false;
	return !(left_out & MAD_FABRIC_COUNTERS_NO_SWITCHES);
}

/* A reading of a node that was found has the counters of this node, whoever is there now. */
static void judge_reading(struct real_node *node, const struct real_node *there,
			  unsigned number)
{
	const struct mad_fabric_counters_port *found =
		mad_fabric_counters_find(counters, node->guid, number);
	struct real_port *expected = &node->ports[number];

	if (found->error) {
		assert_true(found->error == -ETIMEDOUT || found->error == -ESTALE);
		return;
	}
	assert_ptr_equal(node, there);
	assert_int_equal(found->reading->rcv_bytes, 4 * expected->count);
	assert_int_equal(found->reading->symbol_errors, expected->count & 0xffff);
	assert_int_equal(mad_counters_tracker_add(expected->tracker, found->reading),
			 found->events);
	expected->reading = *found->reading;
}

static struct real_node *node_of(uint64_t guid)
{
	struct real_node *node = real_nodes;

	while (node->guid != guid)
		node++;
	return node;
}

static void read_and_judge(void)
{
	const struct mad_fabric_counters_options options = {
		.leave_out = roll(3) ? 0 : roll(16),
		.filter = roll(5) ? NULL : is_odd_port,
		.filter_arg = counters,
		.check_guid = true,
		.basic = !roll(6),
	};
	unsigned wanted = 0;

	assert_int_equal(read_with(&options), 0);
	for (unsigned i = 0; i < NODES; i++) {
		unsigned before = wanted;

		for (unsigned n = 0; n <= known[i].ports; n++) {
			bool is_read = is_wanted(&options, i, n);

			assert_int_equal(entry(i, n) && entry(i, n)->is_latest, is_read);
			wanted += is_read;
			if (is_read)
				judge_reading(node_of(known[i].guid), places[i], n);
		}
		assert_true(wanted != before || !asked(devices[i], 0));
	}
	assert_int_equal(counters->latest->wanted, wanted);
}

TEST(totals_follow_the_ports_through_random_histories)
{
	srandom(test_seed());
	for (unsigned round = 0; round < 6; round++) {
		const unsigned keep_s[] = {60, 0, UINT_MAX}; /* 0: a day */

		flags = round % 2 ? MAD_COUNTERS_FROM_DEVICE : 0;
		keep_us = (int64_t[]){60, 86400, 0}[round % 3] * SECOND;
		learn_nodes();
		use(SETTINGS(.flags = flags, .keep_s = keep_s[round % 3]));
		for (unsigned i = 0; i < NODES_KNOWN; i++) {
			places[i] = &real_nodes[i];
			places[i]->guid = i < NODES ? known[i].guid : 0x500000 + i;
			places[i]->in_fabric = i < NODES;
			forget(places[i]);
		}
		for (unsigned step = 0; step < 40; step++) {
			struct real_node *forgotten = &real_nodes[roll(NODES_KNOWN)];

			change_nodes();
			show_places();
			if (!roll(5) && !mad_fabric_counters_forget(counters, forgotten->guid))
				forget(forgotten);
			read_and_judge();
			for (unsigned i = 0; i < NODES_KNOWN; i++)
				for (unsigned n = 0; n < 6; n++)
					judge(&real_nodes[i], n);
		}
	}
	for (unsigned i = 0; i < NODES_KNOWN; i++)
		for (unsigned n = 0; n < 6; n++)
			mad_counters_tracker_free(real_nodes[i].ports[n].tracker);
}
