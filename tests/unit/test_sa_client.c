/* SPDX-License-Identifier: BSD-2-Clause */

/* Requests to the SA, blocking and on an engine. The SA has one LID at a time. */

#include "sa/sa.h"
#include "mad_fixture.h"
#include "test.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_sa.h>
#include <infiniband/umad_ext.h>
#include <infiniband/mad_link.h>
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>

int64_t __real_clock_us(void);
int64_t __wrap_clock_us(void);

/* The offset of the clock, or the time at which it has stopped. */
static int64_t clock_ahead, clock_stopped;

int64_t __wrap_clock_us(void)
{
	return clock_stopped ? clock_stopped : __real_clock_us() + clock_ahead;
}

#define NOBODY       0
#define SHORT_MS     5
#define ONE_SECOND   1000000
#define STATUS_UNSUP IB_MAD_STS_METHOD_ATTR_NOT_SUPPORTED

/* The subnet. */
static struct {
	unsigned lid;                  /* the LID of the SA */
	unsigned told;                 /* the SA's LID in the PortInfo */
	bool shifts;                   /* the PortInfo has another LID each time */
	bool kernel_refuses;           /* nodes without SA respond with STATUS_UNSUP */
	unsigned physical_state;       /* PortPhysicalState of port 1; 0: of port 0 */
	bool port_info_silent;         /* PortInfo has no response */
	bool foreign;                  /* responses have the TID of another request */
	uint16_t port_info_status;     /* of the PortInfo */
	size_t port_info_length;       /* of its MAD; 0: all of it */
	uint16_t status;               /* of the SA's responses */
	size_t records;                /* of a table */
	unsigned offset;               /* AttributeOffset */
	unsigned port_infos, requests; /* the received requests */
} subnet;

static void respond_port_info(const struct device_packet *packet)
{
	uint8_t data[IB_SMP_DATA_SIZE] = {0}, mad[IB_MAD_SIZE];

	subnet.port_infos++;
	if (subnet.port_info_silent)
		return;
	if (subnet.shifts)
		subnet.told++;
	mad_set_field(data, 0, IB_PORT_SMLID_F, subnet.told);
	mad_set_field(data, 0, IB_PORT_SMSL_F, 3);
	mad_set_field(data, 0, IB_PORT_LID_F, 9);
	mad_set_field(data, 0, IB_PORT_LOCAL_PORT_F, subnet.physical_state ? 1 : 0);
	mad_set_field(data, 0, IB_PORT_PHYS_STATE_F, subnet.physical_state);
	mad_set_field(data, 0, IB_PORT_STATE_F, 4);
	mad_set_field64(data, 0, IB_PORT_GID_PREFIX_F, 0xfe80000000000000);
	if (subnet.port_info_length) {
		device_copy_mad(packet, mad);
		mad[3] |= IB_MAD_RESPONSE;
		memcpy(mad + IB_SMP_DATA_OFFS, data, sizeof(data));
		device_reply(packet, mad, subnet.port_info_length);
		return;
	}
	device_respond(packet, subnet.port_info_status, IB_SMP_DATA_OFFS, data, sizeof(data));
}

static void respond_node_info(const struct device_packet *packet)
{
	uint8_t data[IB_SMP_DATA_SIZE] = {0};

	mad_set_field64(data, 0, IB_NODE_PORT_GUID_F, 0x1122334455667788);
	device_respond(packet, 0, IB_SMP_DATA_OFFS, data, sizeof(data));
}

static void respond_table(const struct device_packet *packet)
{
	static uint8_t reply[IB_SA_DATA_OFFS + 4000];
	size_t data = subnet.records * subnet.offset * 8;

	device_copy_mad(packet, reply);
	reply[3] |= IB_MAD_RESPONSE;
	reply[24] = 1;
	reply[25] = IB_RMPP_TYPE_DATA;
	reply[26] = IB_RMPP_FLAG_ACTIVE | IB_RMPP_FLAG_FIRST | IB_RMPP_FLAG_LAST;
	reply[45] = (uint8_t)subnet.offset;
	fill(reply + IB_SA_DATA_OFFS, data, 1);
	device_reply(packet, reply, IB_SA_DATA_OFFS + data);
}

static void respond_sa(const struct device_packet *packet)
{
	uint8_t mad[IB_MAD_SIZE], method = packet->mad[3];

	subnet.requests++;
	if (be16toh(packet->header.addr.lid) != subnet.lid) {
		if (subnet.kernel_refuses)
			device_respond(packet, STATUS_UNSUP, 0, NULL, 0);
		return;
	}
	if (subnet.foreign) {
		device_copy_mad(packet, mad);
		mad[3] |= IB_MAD_RESPONSE;
		mad[15] ^= 0x55;
		device_reply(packet, mad, sizeof(mad));
		return;
	}
	if (!subnet.status &&
	    (method == IB_MAD_METHOD_GET_TABLE || method == IB_MAD_METHOD_GETMULTI))
		respond_table(packet);
	else
		device_respond(packet, subnet.status, 0, NULL, 0);
}

static int respond(const struct device_packet *packet, void *arg)
{
	(void)arg;
	if (packet->mad[3] & IB_MAD_RESPONSE)
		return 0;
	if (packet->mad[1] == IB_SA_CLASS)
		respond_sa(packet);
	else if (packet->mad[17] == IB_ATTR_PORT_INFO)
		respond_port_info(packet);
	else
		respond_node_info(packet);
	return 0;
}

static struct mad_async *async;

static int setup(void)
{
	int ret = fixture_setup();

	memset(&subnet, 0, sizeof(subnet));
	subnet.lid = subnet.told = 0x42;
	subnet.offset = 8;
	clock_ahead = 0;
	device_on_write(respond, NULL);
	async = mad_async_create(fixture.port);
	return ret || !async ? -1 : 0;
}

static void reopen(int *classes, int count)
{
	mad_async_free(async);
	mad_rpc_close_port(fixture.port);
	fixture.port = mad_rpc_open_port(NULL, 0, classes, count);
	async = mad_async_create(fixture.port);
}

static int teardown(void)
{
	mad_async_free(async);
	return fixture_teardown();
}

FIXTURE(setup, teardown);

static void be_quick(void)
{
	mad_rpc_set_timeout(fixture.port, SHORT_MS);
	mad_rpc_set_retries(fixture.port, 1);
}

static struct mad_sa_query nodes = {.attribute = IB_SA_ATTR_NODERECORD};
static struct mad_sa_query paths = {.attribute = IB_SA_ATTR_PATHRECORD};

/* A blocking request with another method; its response is freed. */
static int request(int method, const struct mad_sa_query *query)
{
	struct mad_sa_query with = *query;

	with.method = method;
	return mad_sa_request(fixture.port, &with, NULL);
}

static int get(void)
{
	return request(IB_MAD_METHOD_GET, &nodes);
}

static unsigned last_status(void)
{
	return mad_last_failure()->status;
}

/* --- blocking ------------------------------------------------------------------- */

TEST(set_and_delete_send_a_record_and_return_one)
{
	uint8_t record[201];
	struct mad_sa_query query = {.method = IB_MAD_METHOD_SET,
				     .attribute = 0x77,
				     .component_mask = 5,
				     .record = record,
				     .record_size = 200};
	struct mad_sa_table *table;

	fill(record, sizeof(record), 7);
	assert_int_equal(mad_sa_request(fixture.port, &query, &table), 0);
	expect_mad(0, "0:01810101 17:15 32:ffffffff");
	assert_int_equal(device_packet(1)->mad[3], IB_MAD_METHOD_SET);
	assert_memory_equal(device_packet(1)->mad + IB_SA_DATA_OFFS, record, 200);
	expect_address(1, 1, 0x80010000, 0x42, 3);
	assert_int_equal(table->count, 1);
	assert_int_equal(table->record_size, 200);
	assert_memory_equal(mad_sa_table_record(table, 0), record, 200);
	assert_null(mad_sa_table_record(table, 1));
	mad_sa_table_free(table);
	query.record_size = 201;
	assert_int_equal(mad_sa_request(fixture.port, &query, NULL), -EINVAL);
	query.record = NULL;
	query.record_size = 0;
	assert_int_equal(request(IB_MAD_METHOD_DELETE, &query), 0);
	expect_mad(2, "0:01030215 17:77 55:05");
	assert_int_equal(mad_sa_request(NULL, &query, NULL), -EINVAL);
	assert_int_equal(mad_sa_request(fixture.port, NULL, NULL), -EINVAL);
}

TEST(a_refusal_keeps_the_status)
{
	struct mad_sa_query query = {.attribute = IB_SA_ATTR_MCRECORD};

	subnet.status = UMAD_SA_STATUS_INSUF_COMPS << 8;
	assert_int_equal(request(IB_MAD_METHOD_SET, &query), -EIO);
	assert_int_equal(last_status(), 0x0600);
	assert_int_equal(request(IB_MAD_METHOD_DELETE, &query), -EIO);
	assert_int_equal(last_status(), 0x0600);
}

TEST(many_gids_are_sent_by_rmpp_and_paths_come_back)
{
	uint8_t record[24 + 20 * 16];
	struct mad_sa_query query = {.method = IB_MAD_METHOD_GETMULTI,
				     .attribute = IB_SA_ATTR_MULTIPATH,
				     .record = record,
				     .record_size = sizeof(record)};
	const struct device_packet *packet;
	struct mad_sa_table *table;

	fill(record, sizeof(record), 1);
	subnet.records = 3;
	assert_int_equal(mad_sa_request(fixture.port, &query, &table), 0);
	assert_int_equal(table->count, 3);
	mad_sa_table_free(table);
	packet = device_packet(1);
	assert_int_equal(packet->length, IB_SA_DATA_OFFS + sizeof(record));
	assert_int_equal(packet->mad[3], 0x14);
	assert_int_equal(packet->mad[26], 31 << 3 | IB_RMPP_FLAG_ACTIVE); /* no response time */
	assert_memory_equal(packet->mad + IB_SA_DATA_OFFS, record, sizeof(record));
	subnet.offset = 7;
	assert_int_equal(mad_sa_request(fixture.port, &query, &table), -EPROTO);
	assert_null(table);
	/* a short request, too */
	subnet.offset = 8;
	query.record_size = 24 + 2 * 16;
	assert_int_equal(mad_sa_request(fixture.port, &query, &table), 0);
	mad_sa_table_free(table);
	packet = device_packet(device_written() - 1);
	assert_int_equal(packet->length, IB_SA_DATA_OFFS + 24 + 2 * 16);
	assert_int_equal(packet->mad[24], 1);
	assert_int_equal(packet->mad[25], IB_RMPP_TYPE_DATA);
	assert_int_equal(packet->mad[26] & 7, IB_RMPP_FLAG_ACTIVE);
	query.record_size = sizeof(record);
	/* requests with other methods have one MAD */
	assert_int_equal(request(IB_MAD_METHOD_GET_TABLE, &query), -EINVAL);
	assert_int_equal(request(IB_MAD_METHOD_SET, &query), -EINVAL);
}

TEST(an_sa_that_is_busy_for_ever_is_asked_a_bounded_number_of_times)
{
	subnet.status = IB_MAD_STS_BUSY;
	mad_rpc_set_timeout(fixture.port, 500); /* a thread may not run for a while */
	mad_rpc_set_retries(fixture.port, 3);
	assert_int_equal(get(), -EIO);
	assert_int_equal(last_status(), IB_MAD_STS_BUSY);
	assert_in_range(subnet.requests, 2, 20);
}

TEST(the_response_to_another_request_is_none)
{
	be_quick();
	subnet.foreign = true;
	assert_int_equal(get(), -ETIMEDOUT);
	assert_int_equal(last_status(), 0);
}

/* --- the address ---------------------------------------------------------------- */

TEST(no_address_is_trusted_when_the_clock_starts)
{
	ib_portid_t sa;
	bool known;

	for (int64_t half = 0; half < 10; half++) {
		clock_ahead = half * ONE_SECOND / 2 - __real_clock_us();
		known = sa_address_known(fixture.port, &sa);
		clock_ahead = 0;
		assert_false(known);
	}
}

TEST(the_address_is_trusted_for_a_second)
{
	for (int i = 0; i < 10; i++)
		assert_int_equal(get(), 0);
	assert_int_equal(subnet.port_infos, 1);
	clock_ahead += ONE_SECOND + 10000;
	subnet.lid = subnet.told = 0x51;
	assert_int_equal(get(), 0);
	assert_int_equal(subnet.port_infos, 2);
	expect_address(device_written() - 1, 1, 0x80010000, 0x51, 3);
}

TEST(an_address_is_trusted_for_a_whole_second)
{
	uint8_t port_info[IB_SMP_DATA_SIZE] = {0};
	ib_portid_t sa;
	bool before, after;

	mad_set_field(port_info, 0, IB_PORT_SMLID_F, 0x42);
	clock_stopped = 10000500;
	assert_int_equal(sa_address_learn(fixture.port, port_info, &sa), 0);
	clock_stopped = 10000500 + 1000000;
	before = sa_address_known(fixture.port, &sa);
	clock_stopped = 10000500 + 1001000;
	after = sa_address_known(fixture.port, &sa);
	clock_stopped = 0;
	assert_true(before && !after);
}

TEST(an_address_is_doubted_if_nobody_or_no_sa_responds)
{
	assert_true(sa_address_is_doubtful(-ETIMEDOUT, 0));
	assert_true(sa_address_is_doubtful(-EIO, IB_MAD_STS_METHOD_NOT_SUPPORTED));
	assert_true(sa_address_is_doubtful(-EIO, STATUS_UNSUP));
	assert_false(sa_address_is_doubtful(-EIO, 0x0300));
	assert_false(sa_address_is_doubtful(-ENODEV, STATUS_UNSUP));
	assert_false(sa_address_is_doubtful(0, 0));
}

TEST(a_request_follows_the_sa_to_another_lid)
{
	unsigned before;

	assert_int_equal(get(), 0);
	be_quick();
	subnet.lid = subnet.told = 0x43;
	assert_int_equal(get(), 0);
	before = subnet.port_infos;
	/* a kernel may respond that no agent serves the class at the old LID */
	subnet.lid = subnet.told = 0x44;
	subnet.kernel_refuses = true;
	mad_rpc_set_timeout(fixture.port, 60000);
	assert_int_equal(get(), 0);
	assert_int_equal(subnet.port_infos, before + 1);
}

TEST(an_sa_that_has_not_moved_is_asked_once)
{
	be_quick();
	subnet.lid = NOBODY;
	assert_int_equal(get(), -ETIMEDOUT);
	assert_int_equal(subnet.requests, 1);
	subnet.kernel_refuses = true;
	assert_int_equal(get(), -EIO);
	assert_int_equal(last_status(), STATUS_UNSUP);
	assert_int_equal(subnet.requests, 2);
}

TEST(an_sa_that_moves_all_the_time_is_not_followed_for_ever)
{
	be_quick();
	subnet.lid = NOBODY;
	subnet.shifts = true;
	assert_int_equal(get(), -ETIMEDOUT);
	assert_int_equal(subnet.requests, 4);
}

static int get_with(const ib_portid_t *sa)
{
	const struct mad_sa_query query = {.attribute = IB_SA_ATTR_NODERECORD, .sa = sa};

	return request(IB_MAD_METHOD_GET, &query);
}

TEST(a_given_address_is_not_doubted)
{
	ib_portid_t given = {.lid = 0x50};

	be_quick();
	assert_int_equal(get_with(&given), -ETIMEDOUT);
	assert_int_equal(subnet.port_infos, 0);
	given.lid = 0;
	assert_int_equal(get_with(&given), -EINVAL);
	given.lid = 0x10042; /* not 0x42 */
	assert_int_equal(get_with(&given), -EINVAL);
}

static void never_called(struct mad_async *engine, const struct mad_sa_response *response,
			 void *arg)
{
	(void)engine, (void)response, (void)arg;
	fail();
}

static void free_response(struct mad_async *engine, const struct mad_sa_response *response,
			  void *arg)
{
	(void)engine, (void)arg;
	mad_sa_table_free(response->table);
}

static void store_message(enum umad_log_level level, const char *text, void *user)
{
	(void)level;
	snprintf(user, 100, "%s", text);
}

/* The message of a request that cannot be sent. */
static void expect_message(const char *message)
{
	char text[100] = "";

	umad_set_log_hook(store_message, text);
	madrpc_show_errors(1);
	assert_int_equal(mad_sa_submit(async, &nodes, never_called, NULL, NULL),
			 -EPROTONOSUPPORT);
	madrpc_show_errors(0);
	umad_set_log_hook(NULL, NULL);
	assert_non_null(strstr(text, message));
}

TEST(a_class_that_is_not_registered_says_so_unless_it_is_not_needed)
{
	struct umad_sa_mcmember_record member = {.mgid = {0xff, 0x12}};
	ib_portid_t given = {.lid = 0x42};
	struct mad_sa_query join = {.sa = &given};
	struct mad_sa_table *table;

	reopen(&(int){IB_SMI_DIRECT_CLASS}, 1);
	expect_message("mad_sa_submit: class 0x03 is not registered");
	reopen(&(int){IB_SA_CLASS}, 1);
	assert_int_equal(get_with(NULL), -EPROTONOSUPPORT);
	assert_int_equal(mad_last_failure()->error, -EPROTONOSUPPORT);
	assert_int_equal(mad_sa_request(fixture.port, &nodes, &table), -EPROTONOSUPPORT);
	assert_null(table);
	expect_message("mad_sa_submit: class 0x81 is not registered");
	mad_sa_member_query(&join, IB_MAD_METHOD_SET, &member, 1);
	assert_int_equal(mad_sa_request(fixture.port, &join, NULL), -EPROTONOSUPPORT);
	member.portgid[0] = 0xfe;
	assert_int_equal(mad_sa_request(fixture.port, &join, NULL), 0);
	assert_int_equal(get_with(&given), 0);
}

static void expect_failure(int error, unsigned status, const char *text)
{
	const struct mad_failure *failure = mad_last_failure();
	char buffer[MAD_ERROR_TEXT_SIZE];

	assert_int_equal(failure->error, error);
	assert_int_equal(failure->mgmt_class, IB_SA_CLASS);
	assert_int_equal(failure->status, status);
	assert_string_equal(mad_failure_text(NULL, buffer, sizeof(buffer)), text);
}

TEST(a_call_that_fails_says_why)
{
	const struct mad_sa_query bad = {.attribute = 0x10000};

	subnet.told = 0;
	assert_int_equal(get(), -ENXIO);
	expect_failure(-ENXIO, 0, "no SM is known");
	subnet.told = 0x42;
	assert_int_equal(mad_sa_request(fixture.port, &bad, NULL), -EINVAL);
	expect_failure(-EINVAL, 0, "an argument is wrong");
	subnet.status = UMAD_SA_STATUS_REQ_INVALID << 8;
	assert_int_equal(get(), -EIO);
	expect_failure(-EIO, 0x0200, "SA: invalid request");
	/* the status of the request before tells nothing */
	assert_int_equal(mad_sa_request(fixture.port, &bad, NULL), -EINVAL);
	expect_failure(-EINVAL, 0, "an argument is wrong");
	subnet.status = 0;
	subnet.records = 5;
	subnet.offset = 7;
	assert_int_equal(mad_sa_request(fixture.port, &paths, NULL), -EPROTO);
	expect_failure(-EPROTO, 0, "the records of the response are too short");
	assert_int_equal(mad_last_failure()->attribute, IB_SA_ATTR_PATHRECORD);
	assert_int_equal(mad_last_failure()->method, IB_MAD_METHOD_GET_TABLE);
	assert_int_equal(mad_sa_submit(async, &bad, never_called, NULL, NULL), -EINVAL);
	expect_failure(-EINVAL, 0, "an argument is wrong");
}

TEST(a_call_that_succeeds_leaves_the_last_failure)
{
	assert_int_equal(mad_sa_request(fixture.port, NULL, NULL), -EINVAL);
	subnet.status = 0x0300;
	assert_int_equal(mad_sa_request(fixture.port, &paths, NULL), 0);
	assert_int_equal(mad_last_failure()->error, -EINVAL);
	subnet.status = 0;
	subnet.lid = subnet.told = 0x43;
	be_quick();
	assert_int_equal(get(), 0); /* after a timeout */
	assert_int_equal(subnet.requests, 3);
	assert_int_equal(mad_last_failure()->error, -EINVAL);
}

/* --- limits ---------------------------------------------------------------------- */

/* The SA does not respond for a minute: the calls end otherwise, within a second. */
static void expect_end(const struct mad_sa_query *limits, int error, const char *text)
{
	struct mad_sa_query query = *limits;
	struct mad_sa_table *table;
	int64_t begin;

	query.attribute = IB_SA_ATTR_NODERECORD;
	mad_rpc_set_timeout(fixture.port, 60000);
	subnet.lid = NOBODY;
	for (int i = 0; i < 2; i++) {
		begin = __real_clock_us();
		query.method = i ? IB_MAD_METHOD_GET_TABLE : IB_MAD_METHOD_GET;
		assert_int_equal(mad_sa_request(fixture.port, &query, &table), error);
		assert_true(__real_clock_us() - begin < ONE_SECOND);
		expect_failure(error, 0, text);
		assert_int_equal(mad_last_failure()->attribute, query.attribute);
		assert_null(table);
	}
}

TEST(a_request_has_a_time_limit)
{
	const struct mad_sa_query limits = {.time_limit_ms = 30};

	expect_end(&limits, -ETIME, "the time limit is over");
}

TEST(the_time_limit_includes_the_address_of_the_sa)
{
	const struct mad_sa_query limits = {.time_limit_ms = 30};

	subnet.port_info_silent = true;
	expect_end(&limits, -ETIME, "the time limit is over");
	assert_int_equal(subnet.requests, 0);
}

static struct mad_cancel cancel;

static void *cancel_soon(void *arg)
{
	(void)arg;
	usleep(60000);
	mad_cancel_set(&cancel);
	return NULL;
}

TEST(another_thread_cancels_a_request)
{
	const struct mad_sa_query limits = {.cancel = &cancel};
	pthread_t thread;

	cancel = (struct mad_cancel){0};
	assert_int_equal(pthread_create(&thread, NULL, cancel_soon, NULL), 0);
	expect_end(&limits, -ECANCELED, "cancelled");
	pthread_join(thread, NULL);
}

TEST(a_request_ends_when_the_link_of_the_local_port_goes_down)
{
	const struct mad_sa_query limits = {.time_limit_ms = 60000};

	subnet.physical_state = MAD_PHYSICAL_POLLING;
	expect_end(&limits, -ENETDOWN, "the link of the local port is down");
}

TEST(a_request_that_ends_in_time_has_its_response)
{
	struct mad_sa_query query = {.attribute = IB_SA_ATTR_NODERECORD,
				     .time_limit_ms = 60000};
	struct mad_sa_table *table;

	subnet.records = 3;
	subnet.offset = 14;
	assert_int_equal(mad_sa_request(fixture.port, &query, &table), 0);
	assert_int_equal(table->count, 3);
	mad_sa_table_free(table);
	query.method = IB_MAD_METHOD_GET;
	assert_int_equal(mad_sa_request(fixture.port, &query, &table), 0);
	assert_int_equal(table->count, 1);
	assert_memory_equal(mad_sa_table_record(table, 0),
			    device_packet(device_written() - 1)->mad + IB_SA_DATA_OFFS,
			    IB_SA_NR_RECSZ);
	mad_sa_table_free(table);
	query.method = 0;
	subnet.status = SA_NO_RECORDS;
	assert_int_equal(mad_sa_request(fixture.port, &query, &table), 0);
	assert_int_equal(table->count, 0);
	mad_sa_table_free(table);
	subnet.status = UMAD_SA_STATUS_REQ_INVALID << 8;
	assert_int_equal(mad_sa_request(fixture.port, &query, &table), -EIO);
	assert_null(table);
	expect_failure(-EIO, 0x0200, "SA: invalid request");
}

TEST(each_allocation_of_a_request_may_fail)
{
	struct mad_sa_table *table;
	int error = -ENOMEM;

	subnet.records = 3;
	subnet.offset = 14;
	for (unsigned n = 1; error; n++) {
		device_fail_malloc(n);
		error = mad_sa_request(fixture.port, &nodes, &table);
		device_fail_malloc(0);
		assert_true(error == 0 || error == -ENOMEM);
		assert_true(!error == (table != NULL));
	}
	mad_sa_table_free(table);
}

TEST(reserved_words_must_be_0)
{
	struct mad_sa_query query;

	for (unsigned i = 0; i < 4; i++) {
		query = nodes;
		query.reserved[i] = UINT64_C(1) << 40;
		assert_int_equal(mad_sa_request(fixture.port, &query, NULL), -EINVAL);
		expect_failure(-EINVAL, 0, "an argument is wrong");
		assert_int_equal(mad_sa_submit(async, &query, never_called, NULL, NULL),
				 -EINVAL);
	}
	assert_int_equal(device_written(), 0);
}

TEST(a_query_that_is_all_zero_but_for_its_attribute_asks_for_a_table)
{
	assert_int_equal(mad_sa_request(fixture.port, &nodes, NULL), 0);
	expect_mad(device_written() - 1, "0:01030212 17:11");
}

TEST(a_request_without_an_sa_fails_as_the_request_did)
{
	assert_int_equal(get(), 0);
	be_quick();
	subnet.lid = NOBODY;
	subnet.port_info_silent = true;
	assert_int_equal(get(), -ETIMEDOUT);
	assert_int_equal(mad_last_failure()->mgmt_class, IB_SA_CLASS);
}

/* --- groups and services -------------------------------------------------------- */

#define OWN_GID "fe800000000000001122334455667788"

TEST(a_join_has_the_group_the_port_and_the_join_state)
{
	struct umad_sa_mcmember_record member = {.mgid = {0xff, 0x12, 1, 2},
						 .scope_state = 0x20};
	struct mad_sa_query query = {.component_mask = UMAD_SA_MCM_COMP_MASK_QKEY};

	member.qkey = htobe32(0x0b1b);
	mad_sa_member_query(&query, IB_MAD_METHOD_SET, &member, 1);
	assert_int_equal(mad_sa_request(fixture.port, &query, NULL), 0);
	expect_mad(device_written() - 1,
		   "0:01030202 17:38 53:010007 56:ff120102 72:" OWN_GID " 88:00000b1b 104:21");
	assert_int_equal(member.portgid[0], 0); /* the caller's record stays as it is */
	memset(&member, 0, sizeof(member));
	member.mgid[0] = 0xff;
	member.portgid[15] = 1;
	query = (struct mad_sa_query){.timeout_ms = 1000};
	mad_sa_member_query(&query, IB_MAD_METHOD_DELETE, &member, 4);
	assert_int_equal(mad_sa_request(fixture.port, &query, NULL), 0);
	expect_mad(device_written() - 1, "0:01030215 17:38 53:010003 56:ff 87:01 104:04");
	assert_int_equal(query.timeout_ms, 1000);
	subnet.status = 0x0700;
	assert_int_equal(mad_sa_request(fixture.port, &query, NULL), -EIO);
	assert_int_equal(last_status(), 0x0700);
}

TEST(members_are_asked_for_by_what_is_not_0)
{
	struct umad_sa_mcmember_record member = {.mgid = {0}};
	struct mad_sa_query query = {0};

	subnet.offset = 7;
	mad_sa_member_query(&query, IB_MAD_METHOD_GET_TABLE, &member, 0);
	assert_int_equal(mad_sa_request(fixture.port, &query, NULL), 0);
	expect_mad(device_written() - 1, "0:01030212 17:38");
	assert_int_equal(query.component_mask, 0);
	member.mgid[0] = 0xff;
	mad_sa_member_query(&query, IB_MAD_METHOD_GET_TABLE, &member, 0);
	assert_int_equal(mad_sa_request(fixture.port, &query, NULL), 0);
	expect_mad(device_written() - 1, "0:01030212 17:38 55:01 56:ff");
	assert_int_equal(query.component_mask, UMAD_SA_MCM_COMP_MASK_MGID);
}

TEST(a_service_that_is_registered_is_completed)
{
	struct mad_sa_service_record service = {.id = htobe64(0x1234), .name = "abc"};
	struct mad_sa_query query = {0};

	mad_sa_service_query(&query, IB_MAD_METHOD_SET, &service);
	assert_int_equal(mad_sa_request(fixture.port, &query, NULL), 0);
	expect_mad(device_written() - 1,
		   "0:01030202 17:31 48:0000001fffffffd7 62:1234 64:" OWN_GID
		   " 80:ffff 84:ffffffff 104:616263");
	service.key[0] = 7;
	query = (struct mad_sa_query){0};
	mad_sa_service_query(&query, IB_MAD_METHOD_DELETE, &service);
	assert_int_equal(mad_sa_request(fixture.port, &query, NULL), 0);
	expect_mad(device_written() - 1, "0:01030215 17:31 55:67 62:1234 64:" OWN_GID
					 " 80:ffff 84:ffffffff 88:07 104:616263");
}

TEST(services_are_asked_for_by_what_is_not_0)
{
	struct mad_sa_service_record service = {.name = "abc"};
	struct mad_sa_query query = {0};

	subnet.offset = 22;
	mad_sa_service_query(&query, IB_MAD_METHOD_GET_TABLE, &service);
	assert_int_equal(mad_sa_request(fixture.port, &query, NULL), 0);
	expect_mad(device_written() - 1, "0:01030212 17:31 55:40 104:616263");
	assert_int_equal(query.component_mask, MAD_SA_SERVICE_NAME);
}

/* The GID of the port is read once for requests that are submitted together. */
TEST(a_gid_of_zeros_is_that_of_the_port_on_an_engine_too)
{
	struct umad_sa_mcmember_record member = {.mgid = {0xff}};
	struct mad_sa_query query = {0};
	ib_portid_t given = {.lid = 0x42};

	mad_sa_member_query(&query, IB_MAD_METHOD_SET, &member, 1);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(mad_sa_submit(async, &query, free_response, NULL, NULL), 0);
	mad_async_wait(async, -1);
	assert_int_equal(device_written(), 12);
	assert_int_equal(subnet.port_infos, 1);
	for (unsigned i = 2; i < 12; i++)
		expect_mad(i, "0:01030202 17:38 53:010003 56:ff 72:" OWN_GID " 104:01");
	/* also if the address is known, or given */
	assert_int_equal(mad_sa_request(fixture.port, &query, NULL), 0);
	expect_mad(device_written() - 1,
		   "0:01030202 17:38 53:010003 56:ff 72:" OWN_GID " 104:01");
	query.sa = &given;
	subnet.told = 0;
	assert_int_equal(mad_sa_request(fixture.port, &query, NULL), 0);
	expect_mad(device_written() - 1,
		   "0:01030202 17:38 53:010003 56:ff 72:" OWN_GID " 104:01");
	/* a table may be asked for by a GID of zeros */
	query.method = IB_MAD_METHOD_GET_TABLE;
	assert_int_equal(mad_sa_request(fixture.port, &query, NULL), 0);
	expect_mad(device_written() - 1, "0:01030212 17:38 53:010003 56:ff 104:01");
}

TEST(a_join_that_waits_for_the_gid_follows_a_request_that_waits_for_the_address)
{
	struct umad_sa_mcmember_record member = {.mgid = {0xff}};
	struct mad_sa_query query = {0};

	mad_sa_member_query(&query, IB_MAD_METHOD_SET, &member, 1);
	assert_int_equal(mad_sa_submit(async, &paths, free_response, NULL, NULL), 0);
	assert_int_equal(mad_sa_submit(async, &query, free_response, NULL, NULL), 0);
	mad_async_wait(async, -1);
	assert_int_equal(subnet.requests, 2);
	expect_mad(device_written() - 1,
		   "0:01030202 17:38 53:010003 56:ff 72:" OWN_GID " 104:01");
}

/* --- on an engine --------------------------------------------------------------- */

#define MANY 100

static struct outcome {
	unsigned calls;
	int error, reply_error;
	int stored; /* the last failure of the thread, in the callback */
	unsigned status, transmissions;
	size_t count, record_size;
	uint8_t first;
	uint64_t id;
	char text[MAD_ERROR_TEXT_SIZE]; /* of the reply */
} outcomes[MANY];

static void came(struct mad_async *engine, const struct mad_sa_response *response, void *arg)
{
	struct outcome *outcome = arg;

	assert_ptr_equal(engine, async);
	outcome->calls++;
	outcome->error = response->error;
	outcome->status = response->status;
	outcome->transmissions = response->reply->transmissions;
	outcome->count = response->table ? response->table->count : 0;
	outcome->record_size = response->table ? response->table->record_size : 0;
	mad_failure_text(NULL, outcome->text, sizeof(outcome->text));
	outcome->stored = mad_last_failure()->error;
	outcome->reply_error = response->reply->error;
	if (outcome->count)
		outcome->first = *(uint8_t *)mad_sa_table_record(response->table, 0);
	mad_sa_table_free(response->table);
}

static void submit(unsigned first, unsigned end, int method, const struct mad_sa_query *query,
		   uint64_t *ids)
{
	struct mad_sa_query with = *query;

	with.method = method;
	memset(outcomes + first, 0, (end - first) * sizeof(*outcomes));
	for (; first < end; first++)
		assert_int_equal(mad_sa_submit(async, &with, came, &outcomes[first],
					       ids ? &ids[first] : NULL),
				 0);
}

static void expect(unsigned first, unsigned end, int error)
{
	for (; first < end; first++) {
		assert_int_equal(outcomes[first].calls, 1);
		assert_int_equal(outcomes[first].error, error);
		assert_int_equal(outcomes[first].reply_error, error);
		if (error)
			assert_int_equal(outcomes[first].stored, error);
	}
}

static void run_and_expect(unsigned first, unsigned end, int error)
{
	mad_async_wait(async, -1);
	expect(first, end, error);
}

/* The first requests, from their submission to their completion. */
static void complete(unsigned count, int method, const struct mad_sa_query *query, int error)
{
	submit(0, count, method, query, NULL);
	run_and_expect(0, count, error);
}

TEST(requests_of_an_engine_share_one_port_info)
{
	submit(0, MANY, IB_MAD_METHOD_GET, &nodes, NULL);
	assert_int_equal(subnet.requests, 0);
	assert_true(mad_async_wait(async, -1) >= MANY);
	expect(0, MANY, 0);
	assert_int_equal(subnet.port_infos, 1);
	assert_int_equal(subnet.requests, MANY);
	/* it is the port's own */
	assert_int_equal(device_packet(0)->mad[1], IB_SMI_DIRECT_CLASS);
	assert_int_equal(be16toh(device_packet(0)->header.addr.lid), 0xffff);
	complete(MANY, IB_MAD_METHOD_SET, &nodes, 0);
	assert_int_equal(subnet.port_infos, 1);
	clock_ahead += ONE_SECOND + 10000;
	complete(MANY, IB_MAD_METHOD_DELETE, &nodes, 0);
	assert_int_equal(subnet.port_infos, 2);
}

TEST(a_port_info_that_was_cut_is_an_error)
{
	subnet.port_info_length = IB_SMP_DATA_OFFS + IB_SMP_DATA_SIZE - 1;
	complete(1, IB_MAD_METHOD_GET, &nodes, -EBADMSG);
	subnet.port_info_length++;
	complete(1, IB_MAD_METHOD_GET, &nodes, 0);
}

TEST(a_request_with_an_address_needs_no_port_info)
{
	ib_portid_t given = {.lid = 0x43};
	struct mad_sa_query query = {.attribute = IB_SA_ATTR_NODERECORD, .sa = &given};

	subnet.lid = 0x43;
	complete(1, IB_MAD_METHOD_GET, &query, 0);
	assert_int_equal(subnet.port_infos, 0);
	assert_int_equal(device_written(), 1);
	assert_int_equal(be16toh(device_packet(0)->header.addr.lid), 0x43);
}

TEST(requests_one_by_one_need_no_more_memory_each)
{
	unsigned allocations = 0;

	for (unsigned i = 0; i < 200; i++) {
		complete(1, IB_MAD_METHOD_GET, &nodes, 0);
		if (i == 2)
			allocations = device_allocations();
	}
	/* the request, and its table of two parts */
	assert_int_equal(device_allocations() - allocations, 3 * 197);
}

TEST(the_record_is_copied_and_one_comes_back)
{
	uint8_t record[200];
	struct mad_sa_query query = {.attribute = IB_SA_ATTR_PATHRECORD,
				     .component_mask = MAD_SA_PATH_DGID,
				     .record = record,
				     .record_size = sizeof(record)};

	memset(record, 0x99, sizeof(record));
	submit(0, 1, IB_MAD_METHOD_GET, &query, NULL);
	memset(record, 0, sizeof(record));
	run_and_expect(0, 1, 0);
	assert_int_equal(outcomes[0].first, 0x99);
	assert_int_equal(outcomes[0].record_size, 200);
	assert_int_equal(outcomes[0].transmissions, 1);
	assert_int_equal(device_packet(1)->mad[55], 4);
}

TEST(a_table_belongs_to_the_callback)
{
	subnet.records = 5;
	complete(10, IB_MAD_METHOD_GET_TABLE, &paths, 0);
	assert_int_equal(outcomes[9].count, 5);
	assert_int_equal(outcomes[9].first, 1);
	subnet.status = 0x0300;
	complete(1, IB_MAD_METHOD_GET_TABLE, &paths, 0);
	assert_int_equal(outcomes[0].status, 0x0300);
	assert_int_equal(outcomes[0].count, 0);
	complete(1, IB_MAD_METHOD_GET, &paths, -EIO);
}

TEST(wrong_tables_are_errors)
{
	subnet.records = 5;
	for (unsigned offset = 0; offset < 8; offset++) {
		subnet.offset = offset;
		if (!offset)
			subnet.records = 0; /* nothing but a header */
		complete(1, IB_MAD_METHOD_GET_TABLE, &paths, offset ? -EPROTO : 0);
		if (offset)
			assert_string_equal(outcomes[0].text,
					    "the records of the response are too short");
		assert_int_equal(outcomes[0].count, 0);
		subnet.records = 5;
	}
}

static int respond_by_half_a_header(const struct device_packet *packet, void *arg)
{
	uint8_t mad[IB_MAD_SIZE];

	if (packet->mad[1] != IB_SA_CLASS)
		return respond(packet, arg);
	device_copy_mad(packet, mad);
	mad[3] |= IB_MAD_RESPONSE;
	device_reply(packet, mad, 53);
	return 0;
}

TEST(a_response_without_data_is_an_error)
{
	struct mad_sa_query query = {.attribute = 0x7777};

	device_on_write(respond_by_half_a_header, NULL);
	submit(0, 1, IB_MAD_METHOD_GET, &query, NULL);
	submit(1, 2, IB_MAD_METHOD_GET_TABLE, &query, NULL);
	run_and_expect(0, 2, -EBADMSG);
	assert_string_equal(outcomes[0].text, "the response is malformed");
	assert_int_equal(request(IB_MAD_METHOD_SET, &query), -EBADMSG);
}

TEST(a_request_that_waits_for_the_address_can_be_cancelled)
{
	uint64_t ids[10];

	mad_rpc_set_timeout(fixture.port, 60000);
	submit(0, 10, IB_MAD_METHOD_GET, &nodes, ids);
	assert_int_equal(mad_async_cancel(async, ids[4]), 0);
	assert_int_equal(mad_async_cancel(async, ids[4]), -ENOENT);
	run_and_expect(0, 4, 0);
	expect(4, 5, -ECANCELED);
	expect(5, 10, 0);
	assert_int_equal(subnet.requests, 9);
	assert_int_equal(mad_async_cancel(async, ids[5]), -ENOENT);
	assert_int_equal(mad_async_cancel(async, 0), -ENOENT);
	assert_int_equal(mad_async_cancel(NULL, ids[5]), -EINVAL);
}

TEST(a_request_that_waits_does_not_wait_on_when_it_is_cancelled)
{
	uint64_t id;

	subnet.port_info_silent = true;
	submit(0, 1, IB_MAD_METHOD_GET, &nodes, &id);
	assert_int_equal(mad_async_cancel(async, id), 0);
	run_and_expect(0, 1, -ECANCELED);
}

TEST(a_request_in_flight_can_be_cancelled)
{
	uint64_t ids[2];

	assert_int_equal(get(), 0);
	subnet.lid = NOBODY;
	submit(0, 2, IB_MAD_METHOD_GET, &nodes, ids);
	assert_int_equal(mad_async_cancel(async, ids[0]), 0);
	assert_int_equal(mad_async_cancel(async, ids[1]), 0);
	run_and_expect(0, 2, -ECANCELED);
}

TEST(a_request_that_has_waited_can_be_cancelled)
{
	uint64_t id;

	mad_rpc_set_timeout(fixture.port, 600000);
	subnet.lid = NOBODY;
	submit(0, 1, IB_MAD_METHOD_GET, &nodes, &id);
	while (!subnet.requests)
		mad_async_process(async);
	assert_int_equal(mad_async_cancel(async, id), 0);
	run_and_expect(0, 1, -ECANCELED);
}

static void cancel_oneself(struct mad_async *engine, const struct mad_sa_response *response,
			   void *arg)
{
	uint64_t *id = arg;

	assert_int_equal(response->error, 0);
	mad_sa_table_free(response->table);
	assert_int_equal(mad_async_cancel(engine, *id), -ENOENT);
	assert_int_equal(mad_async_cancel(engine, MAD_ASYNC_ALL), 0);
	*id = 0;
}

TEST(a_request_that_is_called_back_cannot_be_cancelled)
{
	uint64_t id;

	assert_int_equal(mad_sa_submit(async, &paths, cancel_oneself, &id, &id), 0);
	mad_async_wait(async, -1);
	assert_int_equal(id, 0);
}

/* Reads the responses to an engine's requests without calling them back. */
static void read_responses(void)
{
	ib_portid_t given = {.lid = (int)subnet.lid};

	assert_int_equal(get_with(&given), 0);
}

TEST(what_is_complete_and_not_called_back_is_cancelled_too)
{
	uint64_t id;

	assert_int_equal(get(), 0);
	subnet.kernel_refuses = true;
	submit(0, 1, IB_MAD_METHOD_GET, &nodes, &id);
	read_responses();
	subnet.lid = subnet.told = 0x43;
	submit(1, 2, IB_MAD_METHOD_GET, &nodes, NULL);
	read_responses();
	assert_int_equal(mad_async_cancel(async, id), 0);
	assert_int_equal(mad_async_cancel(async, MAD_ASYNC_ALL), 0);
	/* nor is it sent again */
	run_and_expect(0, 2, -ECANCELED);
	assert_int_equal(subnet.port_infos, 1);
}

TEST(requests_that_wait_for_the_address_are_cancelled_with_all_others)
{
	uint64_t ids[12];

	submit(0, 10, IB_MAD_METHOD_GET, &nodes, ids);
	assert_int_equal(mad_async_cancel(async, MAD_ASYNC_ALL), 0);
	assert_int_equal(mad_async_cancel(async, MAD_ASYNC_ALL), 0);
	assert_int_equal(mad_async_cancel(async, ids[3]), -ENOENT);
	submit(10, 12, IB_MAD_METHOD_GET, &nodes, ids); /* later requests are not */
	run_and_expect(0, 10, -ECANCELED);
	expect(10, 12, 0);
	assert_int_equal(subnet.requests, 2);
}

TEST(one_cancelled_request_does_not_save_the_others)
{
	uint64_t ids[10];

	submit(0, 10, IB_MAD_METHOD_GET, &nodes, ids);
	assert_int_equal(mad_async_cancel(async, ids[2]), 0);
	assert_int_equal(mad_async_cancel(async, MAD_ASYNC_ALL), 0);
	run_and_expect(0, 10, -ECANCELED);
	assert_int_equal(subnet.requests, 0);
}

TEST(requests_whose_address_has_just_come_are_cancelled_too)
{
	submit(0, 10, IB_MAD_METHOD_GET, &nodes, NULL);
	read_responses(); /* of the PortInfo, too */
	assert_int_equal(mad_async_cancel(async, MAD_ASYNC_ALL), 0);
	run_and_expect(0, 10, -ECANCELED);
	assert_int_equal(subnet.requests, 1);
}

/* Processes until so many PortInfos were read. */
static void process_until_port_infos(unsigned count)
{
	while (subnet.port_infos < count) {
		struct pollfd none = {.fd = -1};

		assert_true(mad_async_process(async) >= 0);
		poll(&none, 1, 1);
	}
}

TEST(requests_that_look_for_the_sa_again_are_cancelled)
{
	uint64_t id;

	assert_int_equal(get(), 0);
	be_quick();
	subnet.lid = NOBODY;
	submit(0, 1, IB_MAD_METHOD_GET, &nodes, NULL);
	subnet.port_info_silent = true;
	process_until_port_infos(2);
	assert_int_equal(mad_async_cancel(async, MAD_ASYNC_ALL), 0);
	run_and_expect(0, 1, -ECANCELED);
	subnet.port_info_silent = false;
	assert_int_equal(get(), -ETIMEDOUT);
	submit(0, 1, IB_MAD_METHOD_GET, &nodes, &id);
	subnet.port_info_silent = true;
	process_until_port_infos(subnet.port_infos + 1);
	mad_async_free(async);
	expect(0, 1, -ECANCELED);
	async = NULL;
}

static bool are_cancelled(unsigned first, unsigned end)
{
	bool right = true;

	for (; first < end; first++)
		right = right && outcomes[first].calls == 1 &&
			outcomes[first].error == -ECANCELED;
	return right;
}

static void expect_success_of(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void child_of_requests(void)
{
	bool right;

	mad_async_wait(async, -1);
	right = !subnet.requests && !outcomes[0].calls && are_cancelled(1, 10);
	submit(0, 1, IB_MAD_METHOD_GET, &nodes, NULL);
	mad_async_wait(async, -1);
	_exit(!right || outcomes[0].calls != 1 || outcomes[0].error);
}

TEST(the_parent_s_requests_are_cancelled_in_a_child)
{
	uint64_t ids[10];
	pid_t child;

	submit(0, 10, IB_MAD_METHOD_GET, &nodes, ids);
	assert_int_equal(mad_async_cancel(async, ids[0]), 0);
	run_and_expect(0, 1, -ECANCELED);
	clock_ahead += ONE_SECOND + 10000;
	subnet.requests = 0;
	submit(1, 10, IB_MAD_METHOD_GET, &nodes, ids);
	assert_int_equal(mad_async_cancel(async, ids[4]), 0);
	outcomes[0].calls = 0;
	child = fork();
	if (!child)
		child_of_requests();
	expect_success_of(child);
	run_and_expect(1, 4, 0);
	expect(4, 5, -ECANCELED);
	expect(5, 10, 0);
}

TEST(the_parent_s_requests_to_the_sa_are_cancelled_once_in_a_child)
{
	pid_t child;

	assert_int_equal(get(), 0); /* the address of the SA is known */
	submit(0, 10, IB_MAD_METHOD_GET, &nodes, NULL);
	subnet.requests = 0;
	child = fork();
	if (!child) {
		bool right = mad_async_wait(async, -1) == 10 && !subnet.requests &&
			     are_cancelled(0, 10);

		for (unsigned i = 0; i < 10; i++)
			outcomes[i].calls = 0;
		clock_ahead += ONE_SECOND + 10000; /* a PortInfo is read */
		submit(0, 1, IB_MAD_METHOD_GET, &nodes, NULL);
		mad_async_wait(async, -1);
		right = right && outcomes[0].calls == 1 && !outcomes[0].error;
		for (unsigned i = 1; i < 10; i++)
			right = right && !outcomes[i].calls;
		_exit(!right);
	}
	expect_success_of(child);
	run_and_expect(0, 10, 0);
}

TEST(the_agent_of_the_sa_s_class_may_be_the_first_one)
{
	int classes[] = {IB_SA_CLASS, IB_SMI_DIRECT_CLASS};

	reopen(classes, 2);
	assert_int_equal(mad_rpc_class_agent(fixture.port, IB_SA_CLASS), 0);
	complete(1, IB_MAD_METHOD_GET, &nodes, 0);
}

TEST(no_request_outlives_its_engine)
{
	submit(0, 5, IB_MAD_METHOD_GET, &nodes, NULL);
	mad_async_free(async);
	expect(0, 5, -ECANCELED);
	async = mad_async_create(fixture.port);
	assert_int_equal(get(), 0);
	subnet.lid = NOBODY;
	submit(0, 5, IB_MAD_METHOD_GET, &nodes, NULL);
	mad_async_free(async);
	expect(0, 5, -ECANCELED);
	async = NULL;
}

TEST(requests_of_an_engine_follow_the_sa)
{
	assert_int_equal(get(), 0);
	be_quick();
	subnet.lid = subnet.told = 0x43;
	complete(20, IB_MAD_METHOD_GET, &nodes, 0);
	assert_in_range(subnet.port_infos, 2, 21);
	expect_address(device_written() - 1, 1, 0x80010000, 0x43, 3);
	subnet.lid = NOBODY;
	subnet.requests = 0;
	complete(5, IB_MAD_METHOD_GET, &nodes, -ETIMEDOUT);
	assert_int_equal(subnet.requests, 5);
	assert_int_equal(outcomes[0].transmissions, 1);
	subnet.requests = 0;
	subnet.shifts = true;
	complete(1, IB_MAD_METHOD_GET, &nodes, -ETIMEDOUT);
	assert_int_equal(subnet.requests, 4);
}

/* Each request that was sent to the old LID may time out separately. */
TEST(requests_are_not_sent_to_a_previous_address)
{
	assert_int_equal(get(), 0);
	be_quick();
	mad_port_set(fixture.port, MAD_PORT_GMP_WINDOW, 1);
	subnet.lid = subnet.told = 0x43;
	subnet.requests = 0;
	complete(MANY, IB_MAD_METHOD_GET, &nodes, 0);
	assert_in_range(subnet.requests, MANY, MANY + 10);
}

TEST(a_request_moves_as_soon_as_another_one_finds_the_sa)
{
	struct mad_sa_query quick = nodes, slow = nodes;

	quick.timeout_ms = SHORT_MS;
	slow.timeout_ms = 600000;
	for (unsigned i = 0; i < 2; i++) {
		subnet.lid = subnet.told = 0x42 + i;
		clock_ahead += ONE_SECOND + 10000;
		assert_int_equal(get(), 0);
		subnet.lid = subnet.told = 0x43 + i;
		submit(i, i + 1, IB_MAD_METHOD_GET, &slow, NULL);
		submit(1 - i, 2 - i, IB_MAD_METHOD_GET, &quick, NULL);
		run_and_expect(0, 2, 0);
	}
}

static void came_and_cancel(struct mad_async *engine, const struct mad_sa_response *response,
			    void *arg)
{
	assert_int_equal(response->error, 0);
	mad_sa_table_free(response->table);
	assert_int_equal(mad_async_cancel(engine, *(uint64_t *)arg), 0);
}

/* The PortInfo has come, and the request's first transmission is already cancelled. */
TEST(a_request_that_moves_can_be_cancelled)
{
	ib_portid_t given = {.lid = 0x43};
	struct mad_sa_query to_given = {
		.method = IB_MAD_METHOD_GET, .attribute = IB_SA_ATTR_NODERECORD, .sa = &given};
	struct mad_sa_query slow = nodes;
	unsigned to_new = 0;
	uint64_t id;

	assert_int_equal(get(), 0);
	slow.timeout_ms = 600000;
	subnet.lid = subnet.told = 0x43;
	submit(0, 1, IB_MAD_METHOD_GET, &slow, &id);
	clock_ahead += ONE_SECOND + 10000;
	submit(1, 2, IB_MAD_METHOD_GET, &nodes, NULL);
	assert_int_equal(mad_sa_submit(async, &to_given, came_and_cancel, &id, NULL), 0);
	read_responses();
	run_and_expect(0, 1, -ECANCELED);
	expect(1, 2, 0);
	/* two to the given address, and the one that waited */
	for (unsigned i = 0; i < device_written(); i++)
		to_new += be16toh(device_packet(i)->header.addr.lid) == 0x43;
	assert_int_equal(to_new, 3);
}

TEST(without_an_sa_requests_of_an_engine_fail)
{
	subnet.told = 0;
	complete(3, IB_MAD_METHOD_GET, &nodes, -ENXIO);
	assert_string_equal(outcomes[0].text, "no SM is known");
	assert_int_equal(outcomes[0].status, 0);
	subnet.port_info_status = 0x1c;
	complete(3, IB_MAD_METHOD_GET, &nodes, -EIO);
	assert_int_equal(outcomes[0].status, 0x1c);
	be_quick();
	subnet.port_info_silent = true;
	complete(3, IB_MAD_METHOD_GET, &nodes, -ETIMEDOUT);
	assert_int_equal(subnet.requests, 0);
}

TEST(wrong_arguments_are_refused)
{
	const struct mad_cancel odd = {.reserved = {[2] = 1}};
	const struct mad_sa_query with_odd = {.attribute = 1, .cancel = &odd};
	const ib_portid_t nowhere = {.lid = 0};
	const struct {
		const char *sentence;
		struct mad_sa_query query;
	} rows[] = {
		{"no request", {.method = IB_MAD_METHOD_SEND, .attribute = 1}},
		{"no attribute", {.attribute = 0x10000}},
		{"no address", {.attribute = 1, .sa = &nowhere}},
		{"a long record", {.attribute = 1, .record = rows, .record_size = 201}},
		{"a time limit", {.attribute = 1, .time_limit_ms = 1}},
		{"a struct mad_cancel", {.attribute = 1, .cancel = &cancel}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (mad_sa_submit(async, &rows[i].query, came, NULL, NULL) != -EINVAL)
			fail_msg("%s", rows[i].sentence);
		assert_int_equal(mad_last_failure()->error, -EINVAL);
	}
	assert_int_equal(mad_sa_request(fixture.port, &with_odd, NULL), -EINVAL);
	assert_int_equal(mad_sa_submit(NULL, &nodes, came, NULL, NULL), -EINVAL);
	assert_int_equal(mad_sa_submit(async, NULL, came, NULL, NULL), -EINVAL);
	assert_int_equal(mad_sa_submit(async, &nodes, NULL, NULL, NULL), -EINVAL);
	assert_int_equal(device_written(), 0);
}

/* Each allocation fails in turn: the result is an error or one callback, and no leak. */
TEST(without_memory_nothing_is_lost)
{
	static uint8_t record[24 + 20 * 16];
	struct mad_sa_query query = {.method = IB_MAD_METHOD_GETMULTI,
				     .attribute = IB_SA_ATTR_MULTIPATH,
				     .record = record,
				     .record_size = sizeof(record)};
	unsigned n, completed = 0;
	int ret;

	subnet.records = 3;
	for (n = 1; n < 20; n++) {
		memset(outcomes, 0, sizeof(*outcomes));
		device_fail_malloc(n);
		ret = mad_sa_submit(async, &query, came, outcomes, NULL);
		assert_true(ret == 0 || ret == -ENOMEM);
		mad_async_wait(async, -1);
		device_fail_malloc(0);
		assert_int_equal(outcomes[0].calls, ret == 0);
		if (!ret && !outcomes[0].error)
			completed++;
		mad_async_free(async);
		async = mad_async_create(fixture.port);
	}
	assert_in_range(completed, 1, 18);
}

TEST(a_request_without_memory_does_not_wait_with_the_next)
{
	const struct mad_sa_query get_nodes = {.method = IB_MAD_METHOD_GET,
					       .attribute = IB_SA_ATTR_NODERECORD};
	int ret, failed = 0;

	for (unsigned n = 1; n < 10; n++) {
		clock_ahead += ONE_SECOND + 10000;
		memset(outcomes, 0, sizeof(outcomes));
		device_fail_malloc(n);
		ret = mad_sa_submit(async, &get_nodes, came, outcomes, NULL);
		device_fail_malloc(0);
		failed += ret != 0;
		submit(1, 2, IB_MAD_METHOD_GET, &nodes, NULL);
		mad_async_wait(async, -1);
		assert_int_equal(outcomes[0].calls, ret == 0);
		expect(1, 2, 0);
		mad_async_free(async);
		async = mad_async_create(fixture.port);
	}
	assert_in_range(failed, 1, 8);
}

/* --- cancelled by another thread -------------------------------------------------- */

struct cancelling {
	uint64_t id;
	int first, second;
};

static void *cancel_twice(void *arg)
{
	struct cancelling *cancelling = arg;

	usleep(20000);
	cancelling->first = mad_async_cancel(async, cancelling->id);
	cancelling->second = mad_async_cancel(async, cancelling->id);
	return NULL;
}

static void expect_cancel_by_another_thread(void)
{
	struct mad_sa_query slow = nodes;
	struct cancelling cancelling = {.first = 1, .second = 1};
	int64_t begin = __real_clock_us();
	pthread_t thread;

	slow.timeout_ms = 60000;
	submit(0, 1, IB_MAD_METHOD_GET, &slow, &cancelling.id);
	assert_int_equal(outcomes[0].calls, 0);
	assert_int_equal(pthread_create(&thread, NULL, cancel_twice, &cancelling), 0);
	run_and_expect(0, 1, -ECANCELED);
	pthread_join(thread, NULL);
	assert_string_equal(outcomes[0].text, "cancelled");
	assert_true(__real_clock_us() - begin < ONE_SECOND);
	assert_int_equal(cancelling.first, 0);
	assert_int_equal(cancelling.second, -ENOENT);
	assert_int_equal(mad_async_cancel(async, cancelling.id), -ENOENT);
}

TEST(another_thread_cancels_a_request_in_flight)
{
	assert_int_equal(get(), 0);
	subnet.lid = NOBODY;
	expect_cancel_by_another_thread();
}

TEST(another_thread_cancels_a_request_that_was_not_sent)
{
	subnet.port_info_silent = true;
	expect_cancel_by_another_thread();
	assert_int_equal(subnet.requests, 0);
}

static void cancel_next(struct mad_async *engine, const struct mad_sa_response *response,
			void *arg)
{
	struct outcome *outcome = arg;

	assert_int_equal(outcome->calls, 0);
	assert_int_equal(mad_async_cancel(engine, outcome->id), 0);
	assert_int_equal(outcome->calls, 0); /* not within the call */
	mad_sa_table_free(response->table);
}

TEST(a_callback_cancels_another_request)
{
	struct mad_sa_query slow = nodes;

	assert_int_equal(get(), 0);
	submit(0, 1, IB_MAD_METHOD_GET, &nodes, &outcomes[0].id); /* clears it */
	run_and_expect(0, 1, 0);
	assert_int_equal(mad_sa_submit(async, &paths, cancel_next, outcomes, NULL), 0);
	subnet.lid = NOBODY;
	slow.timeout_ms = 60000;
	memset(outcomes, 0, sizeof(*outcomes));
	assert_int_equal(mad_sa_submit(async, &slow, came, outcomes, &outcomes[0].id), 0);
	run_and_expect(0, 1, -ECANCELED);
}
