/* SPDX-License-Identifier: BSD-2-Clause */

/* The client of the SA: requests, tables, its address, cancelling; paths; addresses by text. */

#include "arrivals.h"
#include "sa_layouts.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_link.h>
#include <infiniband/mad_sa.h>
#include <infiniband/umad_ext.h>
#include <endian.h>
#include <pthread.h>

#define MS         INT64_C(1000)
#define S          (1000 * MS)
#define UNSUP      IB_MAD_STS_METHOD_ATTR_NOT_SUPPORTED
#define NO_RECORDS (UMAD_SA_STATUS_NO_RECORDS << 8)
#define INVALID    (UMAD_SA_STATUS_REQ_INVALID << 8)
#define MANY       100
#define COUNT(a)   (sizeof(a) / sizeof(*(a)))
#define HOST_GID   "fe800000000000000000000000001001"

static struct ibmad_port *port;
static struct mad_async *async;

/* --- the subnet ------------------------------------------------------------------- */

static struct {
	const char *sa;   /* the node of the SA; NULL: none responds */
	uint16_t told;    /* the LID of the SA in the PortInfo; 0: its own */
	bool shifts;      /* it is another one each time */
	uint16_t refuses; /* the status of other nodes; 0: no response */
	bool port_silent; /* the PortInfo has no response */
	bool no_sm;       /* the PortInfo has no SM */
	uint16_t status;  /* of the SA's responses */
	uint16_t port_status;
	bool scripted;       /* the SA responds with a table of these bytes */
	unsigned offset;     /* AttributeOffset */
	size_t size, zeros;  /* at most 200; the last ones are 0 */
	uint8_t type, flags; /* of RMPP */
	unsigned requests, port_infos;
} subnet;

static void fill(uint8_t *data, size_t size, uint8_t first)
{
	while (size--)
		*data++ = first++;
}

static enum machine_verdict reply_table(struct machine_mad *mad)
{
	const uint8_t rmpp[] = {1, subnet.type, subnet.flags, 0, 0, 0, 0, 1, 0, 0, 0};

	machine_reply(mad, 0, 24, rmpp, sizeof(rmpp));
	mad->bytes[35] = (uint8_t)(20 + subnet.size);
	mad->bytes[44] = (uint8_t)(subnet.offset >> 8);
	mad->bytes[45] = (uint8_t)subnet.offset;
	memset(mad->bytes + 56, 0, 200);
	fill(mad->bytes + 56, subnet.size - subnet.zeros, 1);
	return MACHINE_REPLY;
}

static enum machine_verdict at_local_port(struct machine_mad *mad)
{
	uint8_t *data = mad->bytes + IB_SMP_DATA_OFFS;

	if (mad->bytes[17] != IB_ATTR_PORT_INFO)
		return MACHINE_PASS;
	if (!(mad->bytes[3] & IB_MAD_RESPONSE)) {
		subnet.port_infos++;
		return subnet.port_silent ? MACHINE_DROP : MACHINE_PASS;
	}
	subnet.told = (uint16_t)(subnet.told + subnet.shifts);
	if (subnet.told || subnet.no_sm)
		mad_set_field(data, 0, IB_PORT_SMLID_F, subnet.no_sm ? 0 : subnet.told);
	mad_set_field(data, 0, IB_PORT_SMSL_F, 3);
	if (subnet.port_status)
		mad->bytes[5] = (uint8_t)subnet.port_status;
	return MACHINE_PASS;
}

static enum machine_verdict at_sa(struct machine_mad *mad)
{
	if (subnet.status)
		return machine_reply(mad, subnet.status, 0, NULL, 0);
	if (mad->bytes[3] == IB_MAD_METHOD_GETMULTI ||
	    (!subnet.scripted && !strcmp(mad->node, "sm")))
		return MACHINE_PASS;
	if (mad->bytes[3] == IB_MAD_METHOD_GET_TABLE)
		return reply_table(mad);
	/* the record of the request, with an AttributeOffset */
	return machine_reply(mad, 0, 44, (const uint8_t[]){0, 14}, 2);
}

static enum machine_verdict at_node(struct machine_mad *mad, void *arg)
{
	uint8_t mgmt_class = mad->bytes[1], method = mad->bytes[3];

	(void)arg;
	if (mad->at_host && mgmt_class == IB_SMI_DIRECT_CLASS)
		return at_local_port(mad);
	if (mad->at_host && method == (IB_MAD_METHOD_GETMULTI | IB_MAD_RESPONSE) &&
	    subnet.scripted)
		mad->bytes[45] = (uint8_t)subnet.offset;
	if (mad->at_host || mgmt_class != IB_SA_CLASS || method & IB_MAD_RESPONSE ||
	    mad->bytes[25] == IB_RMPP_TYPE_ACK)
		return MACHINE_PASS;
	subnet.requests++;
	if (subnet.sa && !strcmp(mad->node, subnet.sa))
		return at_sa(mad);
	return subnet.refuses ? machine_reply(mad, subnet.refuses, 0, NULL, 0) : MACHINE_DROP;
}

/* From now on the SA is on this node, and the PortInfo says so. */
static void move_sa(const char *node)
{
	subnet.sa = node;
	if (node)
		subnet.told = machine_lid(node);
}

static void open_with(int *classes, int count)
{
	port = mad_rpc_open_port(NULL, 0, classes, count);
	async = mad_async_create(port);
}

static void close_port(void)
{
	mad_async_free(async);
	mad_rpc_close_port(port);
}

static int setup(void)
{
	machine_setup();
	arrivals_begin();
	memset(&subnet, 0, sizeof(subnet));
	subnet.sa = "sm";
	subnet.type = IB_RMPP_TYPE_DATA;
	subnet.flags = 7;
	subnet.offset = 14;
	handle_mads(at_node, NULL);
	open_with((int[]){IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_SA_CLASS}, 3);
	mad_rpc_set_timeout(port, 50);
	mad_rpc_set_retries(port, 1);
	return async ? 0 : -1;
}

static int teardown(void)
{
	close_port();
	return machine_teardown();
}

FIXTURE(setup, teardown);

static const struct mad_sa_query nodes = {.attribute = IB_SA_ATTR_NODERECORD};
static const struct mad_sa_query one_node = {
	.method = IB_MAD_METHOD_GET,
	.attribute = IB_SA_ATTR_NODERECORD,
	.component_mask = 1, /* LID */
	.record = "\0\2",
	.record_size = 2,
};

static int call(struct mad_sa_query query)
{
	return mad_sa_request(port, &query, NULL);
}

/* The number of records, or the error, which comes without a table. */
static int records_of(struct mad_sa_query query)
{
	struct mad_sa_table *table;
	int error = mad_sa_request(port, &query, &table);
	int result = error ? error : (int)table->count;

	assert_int_equal(!error, table != NULL);
	mad_sa_table_free(table);
	return result;
}

static int get(void)
{
	return call(one_node);
}

static int get_with(const ib_portid_t *sa)
{
	struct mad_sa_query query = one_node;

	query.sa = sa;
	return call(query);
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

static void gid_of(const char *node, uint8_t *gid)
{
	mad_set_field64(gid, 0, IB_GID_PREFIX_F, UINT64_C(0xfe80) << 48);
	mad_set_field64(gid, 0, IB_GID_GUID_F, machine_guid(node));
}

/* --- requests and tables ---------------------------------------------------------- */

TEST(records_that_are_too_short_for_their_type_are_refused)
{
	static const struct {
		unsigned attribute, least; /* of the AttributeOffset */
		int count;                 /* records of "star:8"; -1: the SA is not asked */
	} types[] = {
		{IB_SA_ATTR_NODERECORD, 14, 11},       {IB_SA_ATTR_PORTINFORECORD, 9, 21},
		{IB_SA_ATTR_LINKRECORD, 1, 20},        {IB_SA_ATTR_GUIDINFORECORD, 9, 11},
		{IB_SA_ATTR_SERVICERECORD, 22, 0},     {IB_SA_ATTR_PATHRECORD, 8, -1},
		{IB_SA_ATTR_MCRECORD, 7, 1},           {IB_SA_ATTR_INFORMINFORECORD, 8, 0},
		{IB_SA_ATTR_SL2VLTABLERECORD, 2, 131}, {IB_SA_ATTR_SWITCHINFORECORD, 3, 1},
		{IB_SA_ATTR_LFTRECORD, 9, 1},          {IB_SA_ATTR_MFTRECORD, 9, 0},
		{IB_SA_ATTR_PKEYTABLERECORD, 9, 84},   {IB_SA_ATTR_VLARBTABLERECORD, 9, 84},
		{IB_SA_ATTR_SMINFORECORD, 4, 1},       {IB_SA_ATTR_RFTRECORD, 1, -1}};

	for (size_t i = 0; i < COUNT(types); i++) {
		struct mad_sa_query query = {.attribute = types[i].attribute};
		unsigned least = types[i].least;

		subnet.scripted = false;
		if (types[i].count >= 0)
			assert_int_equal(records_of(query), types[i].count);
		subnet.scripted = true;
		subnet.offset = least - 1;
		subnet.size = least > 1 ? 8 * (least - 1) : 8;
		assert_int_equal(records_of(query), -EPROTO);
		expect_failure(-EPROTO, 0, "the records of the response are too short");
		subnet.offset = least;
		subnet.size = (size_t)8 * least;
		assert_int_equal(records_of(query), 1);
	}
}

/* An MCMemberRecord has 52 bytes, and 4 of padding; a LinkRecord has 6. */
static const struct padding_row {
	const char *behaviour;
	unsigned attribute, offset;
	size_t size, zeros;
	int result; /* the number of records, or the error */
} paddings[] = {
	{"no_record_of_any_size", IB_SA_ATTR_MCRECORD, 0, 0, 0, 0},
	{"less_than_a_mad", IB_SA_ATTR_LINKRECORD, 1, 8, 0, 1},
	{"padding_after_three", IB_SA_ATTR_MCRECORD, 7, 200, 32, 3},
	{"padding_alone", IB_SA_ATTR_MCRECORD, 7, 55, 55, 0},
	{"the_last_one_lacks_its_padding", IB_SA_ATTR_MCRECORD, 7, 2 * 56 + 52, 0, 3},
	{"seven_bytes_are_padding", IB_SA_ATTR_MCRECORD, 8, 64 + 57, 0, 2},
	{"eight_bytes_are_none", IB_SA_ATTR_MCRECORD, 8, 64 + 56, 0, -EPROTO},
	{"one_byte_is_left", IB_SA_ATTR_MCRECORD, 7, 2 * 56 + 1, 0, -EPROTO},
	{"a_byte_is_cut_off", IB_SA_ATTR_MCRECORD, 7, 2 * 56 + 51, 0, -EPROTO},
	{"one_record_that_was_cut", IB_SA_ATTR_MCRECORD, 0xffff, 200, 0, -EPROTO},
};

static void read_padded(const struct padding_row *row)
{
	struct mad_sa_query query = {.attribute = row->attribute};
	uint8_t expected[256] = {0}; /* the library adds zeros */
	struct mad_sa_table *table;
	int error;

	subnet.scripted = true;
	subnet.offset = row->offset;
	subnet.size = row->size;
	subnet.zeros = row->zeros;
	error = mad_sa_request(port, &query, &table);
	assert_int_equal(error ? error : (int)table->count, row->result);
	fill(expected, row->size - row->zeros, 1);
	if (row->result > 0)
		assert_memory_equal(mad_sa_table_record(table, 0), expected,
				    table->count * 8 * row->offset);
	mad_sa_table_free(table);
}

TEST_ROWS(read_padded, paddings);

TEST(a_table_of_many_segments_has_all_records_of_the_sa)
{
	struct mad_sa_table *table;
	uint8_t *record;

	teardown();
	machine_start("fat-tree:8,2", "host-1");
	open_with((int[]){IB_SA_CLASS, IB_SMI_DIRECT_CLASS}, 2);
	machine_rule("loss 1%%");
	assert_int_equal(mad_sa_request(port, &nodes, &table), 0);
	assert_int_equal(table->count, 32 + 12);
	for (size_t i = 0; i < table->count; i++) {
		record = mad_sa_table_record(table, i);
		assert_int_equal((uintptr_t)record % 8, 0);
		assert_true(mad_get_field(record, 0, IB_SA_NR_LID_F) > 0);
	}
	mad_sa_table_free(table);
	assert_int_equal(call(nodes), 0); /* a table need not be taken */
	assert_int_equal(mad_port_set(port, MAD_PORT_MAX_RESPONSE, 4096), 0);
	assert_int_equal(records_of(nodes), -EMSGSIZE);
}

TEST(a_request_has_its_components_and_the_key_and_gives_a_record)
{
	uint8_t record[200];
	ib_portid_t given = {.lid = machine_lid("sm"), .sl = 1};
	struct mad_sa_query query = {.attribute = 0x1234,
				     .modifier = 0x55667788,
				     .component_mask = 0x8000000000000001,
				     .record = "\xab\xcd\xef",
				     .record_size = 3,
				     .sa = &given};
	struct mad_sa_table *table;

	subnet.scripted = true;
	mad_port_set(port, MAD_PORT_SA_KEY, 0x1122334455667788);
	assert_int_equal(call(query), 0);
	assert_int_equal(arrival_count, 2); /* and the ACK */
	expect_mad(arrivals[0].mad, "0:01030212 16:1234 20:55667788 36:1122334455667788"
				    " 48:8000000000000001 56:abcdef");
	assert_int_equal(arrivals[0].sl, 1);
	assert_int_equal(given.qp, 0);
	mad_port_set(port, MAD_PORT_SA_KEY, 0);
	fill(record, sizeof(record), 7);
	query = (struct mad_sa_query){
		.method = IB_MAD_METHOD_SET, .record = record, .record_size = sizeof(record)};
	assert_int_equal(mad_sa_request(port, &query, &table), 0);
	assert_memory_equal(last_arrival()->mad + 56, record, 200);
	assert_int_equal(last_arrival()->sl, 3); /* the PortInfo's */
	assert_int_equal(table->count, 1);
	assert_int_equal(table->record_size, 200);
	assert_memory_equal(mad_sa_table_record(table, 0), record, 200);
	assert_null(mad_sa_table_record(table, 1));
	assert_null(mad_sa_table_record(NULL, 0));
	mad_sa_table_free(table);
	assert_int_equal(call((struct mad_sa_query){.method = IB_MAD_METHOD_DELETE}), 0);
	expect_mad(last_arrival()->mad, "0:01030215");
}

TEST(many_gids_are_sent_by_rmpp_and_paths_come_back)
{
	uint8_t record[24 + 20 * 16] = {0};
	struct mad_sa_multi_path_record *multi = (void *)record;
	struct mad_sa_query query = {.method = IB_MAD_METHOD_GETMULTI,
				     .attribute = IB_SA_ATTR_MULTIPATH,
				     .component_mask = MAD_SA_MULTI_PATH_SGID_COUNT |
						       MAD_SA_MULTI_PATH_DGID_COUNT,
				     .record = record,
				     .record_size = sizeof(record)};

	multi->sgid_count = 1;
	multi->dgid_count = 19;
	for (unsigned i = 0; i < 20; i++)
		gid_of((char[]){'n', (char)('1' + i % 8), '\0'}, record + 24 + (size_t)16 * i);
	assert_int_equal(records_of(query), 19);
	assert_int_equal(arrivals[0].mad[3], IB_MAD_METHOD_GETMULTI);
	assert_int_equal(arrivals[0].mad[25], IB_RMPP_TYPE_DATA);
	assert_int_equal(arrivals[0].mad[26] & 7, IB_RMPP_FLAG_FIRST | IB_RMPP_FLAG_ACTIVE);
	/* 7 PathRecords have the size of 8 that are too short */
	subnet.scripted = true;
	subnet.offset = 7;
	multi->dgid_count = 7;
	query.record_size = 24 + 8 * 16;
	assert_int_equal(records_of(query), -EPROTO);
}

TEST(malformed_responses_are_errors)
{
	struct mad_sa_query query = {.attribute = 0x7777};

	assert_int_equal(get(), 0);
	subnet.scripted = true;
	subnet.flags = 0;
	assert_int_equal(records_of(nodes), -EBADMSG);
	subnet.type = IB_RMPP_TYPE_ACK;
	assert_int_equal(records_of(nodes), -EBADMSG);
	subnet.type = IB_RMPP_TYPE_DATA;
	subnet.flags = 7;
	subnet.size = 112;
	for (unsigned i = 0; i < 3; i++) {
		query.method = i ? IB_MAD_METHOD_GET_TABLE : IB_MAD_METHOD_SET;
		machine_deform(i == 2 ? 55 : 53, 0);
		assert_int_equal(call(query), -EBADMSG);
		expect_failure(-EBADMSG, 0, "the response is malformed");
	}
	assert_int_equal(call(nodes), 0);
	machine_pass(2 * S);
	machine_deform(IB_SMP_DATA_OFFS + IB_SMP_DATA_SIZE - 1, 0); /* the PortInfo */
	assert_int_equal(get(), -EBADMSG);
}

static void never_called(struct mad_async *engine, const struct mad_sa_response *response,
			 void *arg)
{
	(void)engine, (void)response, (void)arg;
	fail();
}

static int refused(const struct mad_sa_query *query)
{
	return mad_sa_submit(async, query, never_called, NULL, NULL);
}

TEST(wrong_arguments_are_refused)
{
	const struct mad_cancel odd = {.reserved = {[2] = 1}};
	struct mad_cancel none = {0};
	const ib_portid_t nowhere = {.lid = 0}, beyond = {.lid = 0x10042};
	static const uint8_t bytes[400];
	const struct mad_sa_query wrong[] = {
		{.method = IB_MAD_METHOD_SEND, .attribute = 1},
		{.attribute = 0x10000},
		{.attribute = 1, .sa = &nowhere},
		{.attribute = 1, .sa = &beyond},
		{.attribute = 1, .record_size = 1},
		{.attribute = 1, .record = bytes},
		{.attribute = 1, .record = bytes, .record_size = 201},
		{.attribute = 1, .cancel = &odd},
		{.attribute = 1, .reserved = {1}},
		{.attribute = 1, .reserved = {[3] = UINT64_C(1) << 40}},
		{.method = IB_MAD_METHOD_SET, .record = bytes, .record_size = 201},
		/* limits are for mad_sa_request() */
		{.attribute = 1, .time_limit_ms = 1},
		{.attribute = 1, .cancel = &none},
	};

	for (size_t i = 0; i < COUNT(wrong); i++) {
		assert_int_equal(refused(&wrong[i]), -EINVAL);
		expect_failure(-EINVAL, 0, "an argument is wrong");
		if (i < COUNT(wrong) - 2)
			assert_int_equal(records_of(wrong[i]), -EINVAL);
	}
	assert_int_equal(mad_sa_request(NULL, &nodes, NULL), -EINVAL);
	assert_int_equal(mad_sa_request(port, NULL, NULL), -EINVAL);
	assert_int_equal(mad_sa_submit(NULL, &nodes, never_called, NULL, NULL), -EINVAL);
	assert_int_equal(mad_sa_submit(async, &nodes, NULL, NULL, NULL), -EINVAL);
	assert_int_equal(refused(NULL), -EINVAL);
	assert_int_equal(arrival_count, 0);
	/* a call that succeeds leaves the last failure */
	assert_int_equal(get(), 0);
	assert_int_equal(mad_last_failure()->error, -EINVAL);
}

TEST(a_status_comes_back_with_its_text)
{
	subnet.status = INVALID;
	assert_int_equal(records_of(nodes), -EIO);
	expect_failure(-EIO, INVALID, "SA: invalid request");
	assert_int_equal(mad_last_failure()->attribute, IB_SA_ATTR_NODERECORD);
	assert_int_equal(mad_last_failure()->method, IB_MAD_METHOD_GET_TABLE);
	subnet.status = NO_RECORDS; /* for a table, that is none */
	assert_int_equal(records_of(nodes), 0);
	assert_int_equal(get(), -EIO);
	expect_failure(-EIO, NO_RECORDS, "SA: no records");
	assert_int_equal(call((struct mad_sa_query){.method = IB_MAD_METHOD_DELETE,
						    .attribute = IB_SA_ATTR_MCRECORD}),
			 -EIO);
	/* an SA that is busy is asked a bounded number of times */
	subnet.status = IB_MAD_STS_BUSY;
	subnet.requests = 0;
	assert_int_equal(get(), -EIO);
	expect_failure(-EIO, IB_MAD_STS_BUSY, "busy");
	assert_in_range(subnet.requests, 2, 20);
}

/* --- groups, services and paths ----------------------------------------------------- */

static int call_member(int method, struct umad_sa_mcmember_record *member, unsigned join_state)
{
	struct mad_sa_query query = {.timeout_ms = 1000};

	arrival_count = 0;
	mad_sa_member_query(&query, method, member, join_state);
	assert_int_equal(query.timeout_ms, 1000);
	return call(query);
}

TEST(a_join_has_the_group_the_port_and_the_join_state)
{
	struct umad_sa_mcmember_record member = {
		.mgid = {0xff, 0x12, 1, 2}, .scope_state = 0x20, .qkey = htobe32(0x0b1b)};
	struct mad_sa_query query = {.component_mask = UMAD_SA_MCM_COMP_MASK_QKEY};

	subnet.scripted = true;
	mad_sa_member_query(&query, IB_MAD_METHOD_SET, &member, 1);
	assert_int_equal(call(query), 0);
	expect_mad(last_arrival()->mad,
		   "0:01030202 17:38 53:010007 56:ff120102 72:" HOST_GID " 88:00000b1b 104:21");
	assert_int_equal(member.portgid[0], 0); /* the caller's record stays as it is */
	member = (struct umad_sa_mcmember_record){.mgid = {0xff}, .portgid = {[15] = 1}};
	assert_int_equal(call_member(IB_MAD_METHOD_DELETE, &member, 4), 0);
	expect_mad(arrivals[0].mad, "0:01030215 17:38 53:010003 56:ff 87:01 104:04");
	/* members are asked for by what is not 0 */
	member = (struct umad_sa_mcmember_record){.mgid = {0xff}};
	assert_int_equal(call_member(IB_MAD_METHOD_GET_TABLE, &member, 0), 0);
	expect_mad(arrivals[0].mad, "0:01030212 17:38 55:01 56:ff");
	member.mgid[0] = 0;
	assert_int_equal(call_member(IB_MAD_METHOD_GET_TABLE, &member, 0), 0);
	expect_mad(arrivals[0].mad, "0:01030212 17:38");
}

static int call_service(int method, struct mad_sa_service_record *service)
{
	struct mad_sa_query query = {0};

	arrival_count = 0;
	mad_sa_service_query(&query, method, service);
	return records_of(query);
}

TEST(a_service_that_is_registered_is_completed_and_found)
{
	struct mad_sa_service_record service = {.id = htobe64(0x1234), .name = "abc"};
	struct mad_sa_service_record wanted = {.name = "abc"};

	assert_int_equal(call_service(IB_MAD_METHOD_SET, &service), 1);
	expect_mad(last_arrival()->mad,
		   "0:01030202 17:31 48:0000001fffffffd7 62:1234 64:" HOST_GID
		   " 80:ffff 84:ffffffff 104:616263");
	assert_int_equal(call_service(IB_MAD_METHOD_GET_TABLE, &wanted), 1);
	expect_mad(arrivals[0].mad, "0:01030212 17:31 55:40 104:616263");
	assert_int_equal(call_service(IB_MAD_METHOD_DELETE, &service), 1);
	assert_int_equal(call_service(IB_MAD_METHOD_GET_TABLE, &wanted), 0);
	service.key[0] = 7;
	assert_int_equal(call_service(IB_MAD_METHOD_DELETE, &service), -EIO);
	expect_mad(last_arrival()->mad, "0:01030215 17:31 55:67 62:1234 64:" HOST_GID
					" 80:ffff 84:ffffffff 88:07 104:616263");
}

TEST(paths_are_found_by_either_end)
{
	const struct mad_sa_path_record *path;
	struct mad_sa_table *table;
	ibmad_gid_t host, other;

	gid_of("host", host);
	gid_of("n4", other);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(mad_sa_path_records(port, i == 1 ? NULL : host,
						     i == 2 ? NULL : other, &table),
				 0);
		assert_in_range(table->count, i ? 10 : 1, i ? 20 : 1);
		path = mad_sa_table_record(table, 0);
		assert_true(i == 2 || be16toh(path->dlid) == machine_lid("n4"));
		assert_true(mad_sa_rate_gbps(path->rate) == 100);
		mad_sa_table_free(table);
	}
	subnet.scripted = true;
	arrival_count = 0;
	assert_int_equal(mad_sa_path_records(port, NULL, NULL, NULL), 0);
	expect_mad(arrivals[0].mad, "0:01030212 17:35 54:10 105:7f");
}

TEST(codes_of_rates_and_lifetimes_are_read_without_their_selector)
{
	static const double rates[26] = {0,   0,   2.5, 10,  30,  5,   20,  40,  60,
					 80,  120, 14,  56,  112, 168, 25,  100, 200,
					 300, 28,  50,  400, 600, 800, 1200};

	for (unsigned i = 0; i < COUNT(rates); i++)
		for (unsigned selector = 0; selector < 4; selector++)
			assert_true(mad_sa_rate_gbps((uint8_t)(i | selector << 6)) == rates[i]);
	assert_true(mad_sa_rate_gbps(0x3f) == 0);
	assert_true(mad_sa_lifetime_us(0x80) == 4.096);
	assert_true(mad_sa_lifetime_us(0x8a) == 4.096 * 1024);
	assert_true(mad_sa_lifetime_us(0xff) > 1e18);
}

/* --- on an engine ---------------------------------------------------------------------- */

static struct outcome {
	size_t count;
	uint64_t id;
	unsigned calls, status, transmissions;
	int error;
	bool cancelled; /* by a call that returned 0 */
	char text[MAD_ERROR_TEXT_SIZE];
} outcomes[MANY];

static void came(struct mad_async *engine, const struct mad_sa_response *response, void *arg)
{
	struct outcome *outcome = arg;

	(void)engine;
	outcome->calls++;
	outcome->error = response->error;
	outcome->status = response->status;
	outcome->transmissions = response->reply->transmissions;
	outcome->count = response->table ? response->table->count : 0;
	assert_int_equal(response->reply->error, response->error);
	assert_true(!response->error == (response->table != NULL));
	if (response->error)
		assert_int_equal(mad_last_failure()->error, response->error);
	mad_failure_text(NULL, outcome->text, sizeof(outcome->text));
	mad_sa_table_free(response->table);
}

static void submit(unsigned first, unsigned end, const struct mad_sa_query *query)
{
	memset(outcomes + first, 0, (end - first) * sizeof(*outcomes));
	for (; first < end; first++)
		assert_int_equal(mad_sa_submit(async, query, came, &outcomes[first],
					       &outcomes[first].id),
				 0);
}

static void expect(unsigned first, unsigned end, int error)
{
	for (; first < end; first++) {
		assert_int_equal(outcomes[first].calls, 1);
		assert_int_equal(outcomes[first].error, error);
	}
}

/* The first requests, from their submission to their completion. */
static void complete(unsigned count, const struct mad_sa_query *query, int error)
{
	submit(0, count, query);
	mad_async_wait(async, -1);
	expect(0, count, error);
}

TEST(requests_of_an_engine_share_one_port_info_which_lasts_a_second)
{
	unsigned first;

	submit(0, MANY, &one_node);
	assert_int_equal(subnet.requests, 0);
	mad_async_wait(async, -1);
	expect(0, MANY, 0);
	assert_int_equal(subnet.port_infos, 1);
	assert_int_equal(subnet.requests, MANY);
	assert_int_equal(outcomes[0].transmissions, 1);
	/* requests one by one need no more memory each */
	complete(1, &one_node, 0);
	first = machine_calls(MACHINE_MALLOC);
	for (unsigned i = 0; i < 100; i++)
		complete(1, &one_node, 0);
	assert_in_range(machine_calls(MACHINE_MALLOC) - first, 100, 300);
	machine_pass(S);
	assert_int_equal(get(), 0);
	assert_int_equal(subnet.port_infos, 1);
	machine_pass(2 * MS);
	assert_int_equal(get(), 0);
	assert_int_equal(subnet.port_infos, 2);
	machine_pass(2 * S);
	complete(MANY, &nodes, 0);
	assert_int_equal(outcomes[MANY - 1].count, 11);
	assert_int_equal(subnet.port_infos, 3);
	subnet.status = NO_RECORDS;
	outcomes[0] = (struct outcome){0};
	assert_int_equal(mad_sa_submit(async, &nodes, came, &outcomes[0], NULL), 0);
	mad_async_wait(async, -1);
	expect(0, 1, 0); /* without an ID */
	assert_int_equal(outcomes[0].status, NO_RECORDS);
	assert_int_equal(outcomes[0].count, 0);
}

TEST(a_gid_of_zeros_is_that_of_the_port)
{
	struct umad_sa_mcmember_record member = {.mgid = {0xff}};
	const char *join = "0:01030202 17:38 53:010003 56:ff 72:" HOST_GID " 104:01";
	ib_portid_t given = {.lid = machine_lid("sm")};
	struct mad_sa_query query = {0};

	subnet.scripted = true;
	mad_sa_member_query(&query, IB_MAD_METHOD_SET, &member, 1);
	submit(0, 1, &one_node); /* the join follows one that waits for the address */
	submit(1, 10, &query);
	member.mgid[0] = 0; /* the record was copied */
	mad_async_wait(async, -1);
	expect(0, 10, 0);
	assert_int_equal(subnet.requests, 10);
	assert_in_range(subnet.port_infos, 1, 2);
	expect_mad(last_arrival()->mad, join);
	member.mgid[0] = 0xff;
	assert_int_equal(call(query), 0); /* the address is known */
	expect_mad(last_arrival()->mad, join);
	query.sa = &given;
	subnet.no_sm = true;
	assert_int_equal(call(query), 0);
	expect_mad(last_arrival()->mad, join);
	query.method = IB_MAD_METHOD_GET_TABLE; /* a table may be asked for by zeros */
	arrival_count = 0;
	assert_int_equal(call(query), 0);
	expect_mad(arrivals[0].mad, "0:01030212 17:38 53:010003 56:ff 104:01");
}

/* --- the address of the SA ------------------------------------------------------------- */

TEST(requests_follow_the_sa_to_another_node)
{
	const ib_portid_t given = {.lid = machine_lid("n7")};
	struct mad_sa_query patient = one_node;

	assert_int_equal(get(), 0);
	move_sa("n1");
	assert_int_equal(get(), 0); /* after a timeout */
	assert_int_equal(subnet.requests, 3);
	/* a kernel may respond that no agent serves the class at the old LID */
	subnet.refuses = IB_MAD_STS_METHOD_NOT_SUPPORTED;
	patient.timeout_ms = 60000;
	move_sa("n2");
	subnet.port_infos = 0;
	assert_int_equal(call(patient), 0);
	assert_int_equal(subnet.port_infos, 1);
	/* other errors do not make the address doubtful */
	subnet.status = NO_RECORDS;
	assert_int_equal(get(), -EIO);
	assert_int_equal(subnet.port_infos, 1);
	subnet.status = 0;
	/* one that has not moved is asked once */
	subnet.sa = NULL;
	subnet.requests = 0;
	subnet.refuses = UNSUP;
	assert_int_equal(get(), -EIO);
	assert_int_equal(mad_last_failure()->status, UNSUP);
	subnet.refuses = 0;
	assert_int_equal(get(), -ETIMEDOUT);
	assert_int_equal(subnet.requests, 2);
	/* on an engine; each request that was sent to the old LID may time out separately */
	move_sa("n3");
	mad_port_set(port, MAD_PORT_GMP_WINDOW, 1);
	subnet.requests = 0;
	complete(MANY, &one_node, 0);
	assert_in_range(subnet.requests, MANY, MANY + 10);
	/* one that moves all the time is not followed for ever */
	subnet.sa = NULL;
	subnet.shifts = true;
	complete(2, &one_node, -ETIMEDOUT);
	assert_int_equal(get(), -ETIMEDOUT);
	assert_int_equal(mad_last_failure()->mgmt_class, IB_SA_CLASS);
	subnet.port_infos = 0; /* a given address is not doubted */
	assert_int_equal(get_with(&given), -ETIMEDOUT);
	assert_int_equal(subnet.port_infos, 0);
}

TEST(without_an_sa_requests_fail_as_the_port_says)
{
	assert_int_equal(get(), 0);
	subnet.sa = NULL;
	subnet.port_silent = true;
	assert_int_equal(get(), -ETIMEDOUT); /* as the request did */
	assert_int_equal(mad_last_failure()->mgmt_class, IB_SA_CLASS);
	machine_pass(2 * S);
	subnet.requests = 0;
	complete(3, &one_node, -ETIMEDOUT);
	subnet.port_silent = false;
	subnet.no_sm = true;
	assert_int_equal(get(), -ENXIO);
	expect_failure(-ENXIO, 0, "no SM is known");
	complete(3, &one_node, -ENXIO);
	assert_string_equal(outcomes[0].text, "no SM is known");
	assert_int_equal(outcomes[0].status, 0);
	subnet.port_status = 0x1c;
	complete(3, &one_node, -EIO);
	assert_int_equal(outcomes[0].status, 0x1c);
	assert_int_equal(subnet.requests, 0);
}

static void store_message(enum umad_log_level level, const char *text, void *user)
{
	(void)level;
	snprintf(user, 100, "%s", text);
}

TEST(a_class_that_is_not_registered_says_so_unless_it_is_not_needed)
{
	struct umad_sa_mcmember_record member = {.mgid = {0xff, 0x12}};
	ib_portid_t given = {.lid = machine_lid("sm")};
	struct mad_sa_query join = {.sa = &given};
	char text[100];

	umad_set_log_hook(store_message, text);
	for (unsigned i = 0; i < 2; i++) {
		close_port();
		open_with(&(int){i ? IB_SA_CLASS : IB_SMI_DIRECT_CLASS}, 1);
		madrpc_show_errors(1);
		assert_int_equal(refused(&nodes), -EPROTONOSUPPORT);
		madrpc_show_errors(0);
		assert_non_null(strstr(text, i ? "class 0x81 is not registered"
					       : "class 0x03 is not registered"));
		assert_int_equal(records_of(nodes), -EPROTONOSUPPORT);
		assert_int_equal(mad_last_failure()->error, -EPROTONOSUPPORT);
	}
	umad_set_log_hook(NULL, NULL);
	subnet.scripted = true;
	mad_sa_member_query(&join, IB_MAD_METHOD_SET, &member, 1);
	assert_int_equal(call(join), -EPROTONOSUPPORT);
	member.portgid[0] = 0xfe;
	assert_int_equal(call(join), 0);
	assert_int_equal(get_with(&given), 0);
}

/* --- limits and cancelling ---------------------------------------------------------------- */

static struct mad_cancel cancel;

static void *cancel_soon(void *arg)
{
	machine_pass(30 * MS);
	mad_cancel_set(&cancel);
	return arg;
}

/* For a record, and for a table. */
static void reach_limit(struct mad_sa_query query, int error, const char *text)
{
	pthread_t thread;

	query.attribute = IB_SA_ATTR_NODERECORD;
	for (unsigned i = 0; i < 2; i++) {
		int64_t begin = machine_us();

		cancel = (struct mad_cancel){0};
		query.method = i ? IB_MAD_METHOD_GET_TABLE : IB_MAD_METHOD_GET;
		if (query.cancel)
			assert_int_equal(pthread_create(&thread, NULL, cancel_soon, NULL), 0);
		assert_int_equal(records_of(query), error);
		expect_failure(error, 0, text);
		assert_int_equal(mad_last_failure()->attribute, query.attribute);
		if (query.cancel)
			pthread_join(thread, NULL);
		assert_in_range(machine_us() - begin, error == -ENETDOWN ? 0 : 30 * MS, 2 * S);
	}
}

TEST(a_request_ends_by_a_time_limit_another_thread_or_a_link_that_goes_down)
{
	const struct mad_sa_query soon = {.time_limit_ms = 30}, late = {.time_limit_ms = 60000};

	mad_rpc_set_timeout(port, 60000);
	subnet.sa = NULL;
	subnet.port_silent = true; /* the limit includes the address of the SA */
	reach_limit(soon, -ETIME, "the time limit is over");
	assert_int_equal(subnet.requests, 0);
	subnet.port_silent = false;
	reach_limit(soon, -ETIME, "the time limit is over");
	reach_limit((struct mad_sa_query){.cancel = &cancel}, -ECANCELED, "cancelled");
	machine_rule("after 10ms link down on host");
	reach_limit(late, -ENETDOWN, "the link of the local port is down");
}

TEST(a_request_that_ends_in_time_has_its_response)
{
	for (unsigned i = 0; i < 2; i++) {
		struct mad_sa_query query = i ? nodes : one_node;
		int result = -ENOMEM;

		query.time_limit_ms = 60000;
		for (unsigned n = 1; result == -ENOMEM; n++) { /* each allocation may fail */
			machine_fail(MACHINE_MALLOC, n, ENOMEM);
			result = records_of(query);
			machine_fail(MACHINE_MALLOC, 0, 0);
		}
		assert_int_equal(result, i ? 11 : 1);
	}
}

static int cancel_one(unsigned i)
{
	int ret = mad_async_cancel(async, outcomes[i].id);

	outcomes[i].cancelled |= !ret;
	return ret;
}

TEST(requests_are_cancelled_wherever_they_are)
{
	mad_rpc_set_timeout(port, 60000);
	submit(0, 10, &one_node); /* they wait for the address */
	assert_int_equal(cancel_one(4), 0);
	assert_int_equal(cancel_one(4), -ENOENT);
	mad_async_wait(async, -1);
	expect(0, 4, 0);
	expect(4, 5, -ECANCELED);
	assert_string_equal(outcomes[4].text, "cancelled");
	expect(5, 10, 0);
	assert_int_equal(subnet.requests, 9);
	assert_int_equal(cancel_one(5), -ENOENT);
	machine_pass(2 * S);
	subnet.requests = 0;
	submit(0, 10, &one_node); /* with all others; later ones are not */
	assert_int_equal(mad_async_cancel(async, MAD_ASYNC_ALL), 0);
	assert_int_equal(cancel_one(3), -ENOENT);
	submit(10, 12, &one_node);
	mad_async_wait(async, -1);
	expect(0, 10, -ECANCELED);
	expect(10, 12, 0);
	assert_int_equal(subnet.requests, 2);
	subnet.sa = NULL;
	subnet.port_silent = true;
	for (unsigned i = 0; i < 2; i++) { /* in flight; then waiting for the address again */
		submit(0, 1, &one_node);
		mad_async_wait(async, 100);
		assert_int_equal(cancel_one(0), 0);
		assert_true(mad_async_wait(async, 10) >= 1);
		expect(0, 1, -ECANCELED);
		machine_pass(2 * S);
	}
	submit(0, 5, &one_node);
	mad_async_free(async);
	async = NULL;
	expect(0, 5, -ECANCELED);
}

static void cancel_in_callback(struct mad_async *engine, const struct mad_sa_response *response,
			       void *arg)
{
	const struct outcome *own = arg, *other = own + 1;

	assert_int_equal(response->error, 0);
	mad_sa_table_free(response->table);
	assert_int_equal(mad_async_cancel(engine, own->id), -ENOENT);
	assert_int_equal(mad_async_cancel(engine, other->id), 0);
	assert_int_equal(other->calls, 0); /* not within the call */
}

/* The PortInfo has come, and the request's first transmission is already cancelled. */
TEST(a_callback_cancels_a_request_that_moves)
{
	const ib_portid_t given = {.lid = machine_lid("n1")};
	struct mad_sa_query slow = one_node, to_given = one_node;

	assert_int_equal(get(), 0);
	slow.timeout_ms = 600000;
	to_given.sa = &given;
	subnet.sa = NULL;
	submit(1, 2, &slow);
	submit(2, 3, &one_node);
	mad_async_wait(async, 200);
	expect(2, 3, -ETIMEDOUT);
	assert_int_equal(subnet.requests, 3); /* the SA has not moved */
	move_sa("n1");
	machine_pass(2 * S);
	submit(2, 3, &one_node);
	assert_int_equal(mad_sa_submit(async, &to_given, cancel_in_callback, &outcomes[0],
				       &outcomes[0].id),
			 0);
	assert_int_equal(get_with(&given), 0); /* reads the responses */
	mad_async_wait(async, -1);
	expect(1, 2, -ECANCELED);
	expect(2, 3, 0);
	assert_int_equal(machine_requests("n1"), 3);
}

static void *cancel_randomly(void *arg)
{
	unsigned seed = *(unsigned *)arg;

	for (unsigned i = 0; i < 20; i++) {
		machine_pass(rand_r(&seed) % 20000);
		cancel_one((unsigned)rand_r(&seed) % MANY);
	}
	return NULL;
}

/* Whether all requests are cancelled. */
static bool disturb(unsigned *seed)
{
	static const char *const places[] = {"sm", "n1", "n2", NULL};
	bool all = !(rand_r(seed) % 40);

	if (!(rand_r(seed) % 3))
		move_sa(places[rand_r(seed) % 4]);
	subnet.refuses = rand_r(seed) % 2 ? UNSUP : 0;
	subnet.port_silent = !(rand_r(seed) % 8);
	subnet.status = rand_r(seed) % 6 ? 0 : INVALID;
	if (all)
		mad_async_cancel(async, MAD_ASYNC_ALL);
	mad_async_wait(async, (int)(rand_r(seed) % 30));
	return all;
}

/*
 * The SA moves, is silent or refuses, the PortInfo is lost, memory is short, and another thread
 * cancels requests.
 */
TEST(whatever_happens_each_request_is_completed_once)
{
	unsigned seed = test_seed(), succeeded = 0;
	pthread_t thread;

	mad_rpc_set_retries(port, 2);
	machine_rule("slow 1ms");
	subnet.size = 112;
	for (unsigned round = 0; round < 60; round++) {
		bool all = false;

		for (unsigned i = 0; i < MANY; i++) {
			outcomes[i] = (struct outcome){0};
			if (i % 10 == 9)
				machine_fail(MACHINE_MALLOC, 1 + (unsigned)rand_r(&seed) % 4,
					     ENOMEM);
			if (mad_sa_submit(async, i % 2 ? &one_node : &nodes, came, &outcomes[i],
					  &outcomes[i].id))
				outcomes[i].calls = 1;
			machine_fail(MACHINE_MALLOC, 0, 0);
		}
		assert_int_equal(pthread_create(&thread, NULL, cancel_randomly, &seed), 0);
		for (unsigned event = 0; event < 10; event++)
			all |= disturb(&seed);
		subnet.port_silent = false;
		pthread_join(thread, NULL);
		mad_async_wait(async, -1);
		for (unsigned i = 0; i < MANY; i++) {
			int error = outcomes[i].error;

			assert_int_equal(outcomes[i].calls, 1);
			if (error == -ECANCELED || outcomes[i].cancelled)
				assert_true(error == -ECANCELED &&
					    (all || outcomes[i].cancelled));
			else
				assert_true(!error || error == -ETIMEDOUT || error == -EIO ||
					    error == -ENOMEM);
			succeeded += !error;
		}
	}
	assert_true(succeeded > 60);
}

static int run_child(void)
{
	mad_async_wait(async, -1);
	for (unsigned i = 0; i < 10; i++)
		EXPECT(outcomes[i].calls == 1 && outcomes[i].error == -ECANCELED);
	EXPECT(subnet.requests == 0);
	return 0;
}

TEST(the_parent_s_requests_are_cancelled_in_a_child)
{
	submit(0, 10, &one_node);
	run_in_child(run_child);
	mad_async_wait(async, -1);
	expect(0, 10, 0);
}

/* --- the calls of libibmad: sa_rpc_call() and queries ---------------------------------- */

TEST(a_call_has_mask_and_data_and_gives_a_record)
{
	uint8_t buf[256] = {[0] = 0xa1, [199] = 0xc3, [200] = 0xd4};
	ib_sa_call_t sa_call = {.method = IB_MAD_METHOD_GET,
				.attrid = IB_SA_ATTR_MCRECORD,
				.mod = 0xffffffff,
				.mask = 0x1122334455667788,
				.trid = 0x12345678};
	ib_portid_t to = {.lid = machine_lid("sm"), .qp = 77, .sl = 3}, nowhere = {.lid = -1};

	subnet.scripted = true;
	smp_mkey_set(port, 0x9999999999999999);
	mad_port_set(port, MAD_PORT_SA_KEY, 0x1122334455667788);
	assert_ptr_equal(sa_rpc_call(port, buf, &to, &sa_call, 0), buf);
	expect_mad(last_arrival()->mad, "0:01030201 17:38 20:ffffffff 36:1122334455667788"
					" 48:1122334455667788 56:a1 255:c3");
	assert_memory_equal(last_arrival()->mad + 12, "\x12\x34\x56\x78", 4);
	assert_int_equal(last_arrival()->sl, 3);
	assert_int_equal(to.qp, 1);
	assert_int_equal(buf[200], 0xd4);
	assert_int_equal(sa_call.recsz, 14);
	subnet.status = NO_RECORDS;
	assert_fails_null(sa_rpc_call(port, buf, &to, &sa_call, 0), EIO);
	assert_int_equal(sa_call.recsz, 0);
	subnet.sa = NULL;
	mad_rpc_set_timeout(port, 5000);
	assert_fails_null(sa_rpc_call(port, buf, &to, &sa_call, 5), ETIMEDOUT);
	assert_true(machine_us() < S);
	for (; nowhere.lid <= 0; nowhere.lid++)
		assert_fails_null(sa_rpc_call(port, buf, &nowhere, &sa_call, 0), EINVAL);
	assert_fails_null(sa_rpc_call(port, buf, NULL, &sa_call, 0), EINVAL);
	assert_fails_null(sa_rpc_call(port, buf, &to, NULL, 0), EINVAL);
	assert_fails_null(sa_rpc_call(NULL, buf, &to, &sa_call, 0), EINVAL);
}

TEST(paths_and_nodes_are_found_by_gid_and_guid)
{
	ib_portid_t sm = {.lid = machine_lid("sm"), .sl = 2};
	ibmad_gid_t host, other, nobody = {0xfe, 0x80, [15] = 9};
	uint8_t buf[256] = {[200] = 0xd4};

	gid_of("host", host);
	gid_of("n4", other);
	assert_int_equal(ib_path_query_via(port, host, other, &sm, buf), machine_lid("n4"));
	expect_mad(last_arrival()->mad, "0:01030201 17:35 55:0c 64:fe80000000000000000000000001"
					"0041 80:" HOST_GID);
	assert_int_equal(last_arrival()->sl, 2);
	assert_int_equal(mad_get_field(buf, 0, IB_SA_PR_DLID_F), machine_lid("n4"));
	assert_int_equal(buf[200], 0xd4);
	assert_fails_minus_1(ib_path_query_via(port, host, nobody, &sm, buf), EIO);
	assert_fails_minus_1(ib_path_query_via(port, NULL, other, &sm, buf), EINVAL);
	assert_fails_minus_1(ib_path_query_via(port, host, NULL, &sm, buf), EINVAL);
	assert_fails_minus_1(ib_path_query_via(port, host, other, NULL, buf), EINVAL);
	assert_fails_minus_1(ib_path_query_via(port, host, other, &sm, NULL), EINVAL);
	memset(buf, 0, sizeof(buf));
	assert_int_equal(ib_node_query_via(port, machine_guid("n4"), &sm, buf), 0);
	expect_mad(last_arrival()->mad, "0:01030201 17:11 54:01 80:0000000000010041");
	assert_int_equal(mad_get_field(buf, 0, IB_SA_NR_LID_F), machine_lid("n4"));
	assert_fails_minus_1(ib_node_query_via(port, 1, &sm, buf), EIO);
	assert_fails_minus_1(ib_node_query_via(port, 1, &sm, NULL), EINVAL);
}

/* --- addresses -------------------------------------------------------------------------- */

TEST(the_port_knows_itself_and_its_subnet_manager)
{
	static const uint16_t no_lids[] = {0, 0xc000, 0xffff};
	ib_portid_t sm, self, expected = {.lid = machine_lid("sm"), .sl = 3};
	ibmad_gid_t gid, own;
	int portnum = 0;

	memset(&sm, 0x44, sizeof(sm));
	assert_int_equal(ib_resolve_smlid_via(&sm, 0, port), 0);
	assert_int_equal(subnet.port_infos, 1);
	assert_memory_equal(&sm, &expected, sizeof(sm));
	memset(&self, 0x33, sizeof(self));
	expected = self; /* the rest is not changed */
	expected.lid = machine_lid("host");
	expected.sl = 3;
	gid_of("host", own);
	assert_int_equal(ib_resolve_self_via(&self, &portnum, &gid, port), 0);
	assert_memory_equal(&self, &expected, sizeof(self));
	assert_int_equal(portnum, 1);
	assert_memory_equal(gid, own, sizeof(own));
	assert_int_equal(ib_resolve_self_via(NULL, NULL, NULL, port), 0);
	assert_fails_minus_1(ib_resolve_smlid_via(NULL, 0, port), EINVAL);
	for (unsigned i = 0; i < COUNT(no_lids); i++) {
		subnet.told = no_lids[i];
		subnet.no_sm = !subnet.told;
		assert_fails_minus_1(ib_resolve_smlid_via(&sm, 0, port), ENXIO);
	}
	subnet.port_silent = true;
	assert_fails_minus_1(ib_resolve_self_via(&self, NULL, NULL, port), ETIMEDOUT);
	assert_memory_equal(&self, &expected, sizeof(self));
	mad_rpc_set_timeout(port, 100000);
	assert_fails_minus_1(ib_resolve_smlid_via(&sm, 5, port), ETIMEDOUT);
	assert_true(machine_us() < S);
}

TEST(gids_and_guids_are_looked_up_at_the_subnet_manager)
{
	ib_portid_t to, sm = {.lid = machine_lid("sm"), .sl = 1}, asked = {0};
	uint64_t guid = machine_guid("n4"), nobody = 1;
	ibmad_gid_t other, no_gid = {0xfe, 0x80, [15] = 1};

	gid_of("n4", other);
	memset(&to, 0x22, sizeof(to));
	assert_int_equal(ib_resolve_gid_via(&to, other, NULL, 0, port), 0);
	assert_int_equal(last_arrival()->sl, 3);
	assert_int_equal(to.lid, machine_lid("n4"));
	assert_int_equal(to.sl, 0x22); /* and nothing else is set */
	assert_int_equal(ib_resolve_gid_via(&to, other, &sm, 0, port), 0);
	assert_int_equal(subnet.port_infos, 1); /* one that is known is not looked for */
	assert_int_equal(last_arrival()->sl, 1);
	assert_int_equal(ib_resolve_gid_via(&to, other, &asked, 0, port), 0);
	assert_int_equal(asked.lid, sm.lid); /* one without LID is, and is told */
	assert_int_equal(asked.sl, 3);
	to = (ib_portid_t){0};
	assert_int_equal(ib_resolve_guid_via(&to, &guid, NULL, 0, port), 0);
	assert_int_equal(to.lid, machine_lid("n4"));
	assert_memory_equal(to.gid, other, sizeof(other));
	assert_int_equal(to.grh_present, 0);
	/* the subnet prefix of the port ID counts */
	subnet.scripted = true;
	to = (ib_portid_t){.gid = {0xfe, 0xc0, 0, 0, 0, 0, 0, 5}};
	assert_int_equal(ib_resolve_guid_via(&to, &guid, &sm, 0, port), 0);
	expect_mad(last_arrival()->mad,
		   "0:01030201 17:35 55:0c 64:fec00000000000050000000000010041 80:" HOST_GID);
	subnet.scripted = false;
	assert_fails_minus_1(ib_resolve_gid_via(&to, no_gid, &sm, 0, port), EIO);
	assert_int_equal(to.lid, -1);
	assert_fails_minus_1(ib_resolve_guid_via(&to, &nobody, &sm, 0, port), EIO);
	assert_fails_minus_1(ib_resolve_gid_via(NULL, other, &sm, 0, port), EINVAL);
	assert_fails_minus_1(ib_resolve_gid_via(&to, NULL, &sm, 0, port), EINVAL);
	assert_fails_minus_1(ib_resolve_guid_via(NULL, &guid, &sm, 0, port), EINVAL);
	assert_fails_minus_1(ib_resolve_guid_via(&to, NULL, &sm, 0, port), EINVAL);
	subnet.no_sm = true;
	assert_fails_minus_1(ib_resolve_gid_via(&to, other, NULL, 0, port), ENXIO);
	assert_fails_minus_1(ib_resolve_guid_via(&to, &guid, NULL, 0, port), ENXIO);
}

static ib_portid_t resolved;

static int resolve(enum MAD_DEST kind, const char *text)
{
	char copy[300];

	snprintf(copy, sizeof(copy), "%s", text);
	memset(&resolved, 0x44, sizeof(resolved));
	return ib_resolve_portid_str_via(&resolved, copy, kind, NULL, port);
}

TEST(addresses_are_resolved_by_text)
{
	static const struct {
		enum MAD_DEST kind;
		int lid;
		const char *texts[7];
	} right[] = {{IB_DEST_LID, 31, {"31", "0x1f", "037", " 31", "31 ", "\t0x1F\n"}},
		     {IB_DEST_LID, 49151, {"49151"}},
		     {IB_DEST_DRPATH, 0, {"0,1,6"}},
		     {IB_DEST_GUID, 14, {"0x10041", " 0x0000000000010041 \n"}},
		     {IB_DEST_GID, 14, {"fe80::1:41"}},
		     {IB_DEST_DRSLID,
		      2,
		      {"2,0,1", "2 0,1", "0x2;0,1", "2, 0, 1\n", " 2; 0 ,1\r\n", "2\t0,1"}}};
	const ib_dr_path_t *route = &resolved.drpath;

	for (size_t i = 0; i < COUNT(right); i++)
		for (const char *const *text = right[i].texts; *text; text++) {
			assert_int_equal(resolve(right[i].kind, *text), 0);
			assert_int_equal(resolved.lid, right[i].lid);
			assert_int_equal(resolved.qp, 0);
			if (right[i].kind == IB_DEST_DRPATH) {
				assert_int_equal(route->cnt, 2);
				assert_int_equal(route->p[2], 6);
				assert_int_equal(route->drslid, 0xffff);
				assert_int_equal(route->drdlid, 0xffff);
			} else if (right[i].kind == IB_DEST_DRSLID) { /* one's own LID */
				assert_int_equal(route->cnt, 1);
				assert_int_equal(route->p[1], 1);
				assert_int_equal(route->drslid, machine_lid("host"));
				assert_int_equal(route->drdlid, 0xffff);
			}
		}
}

TEST(what_is_no_address_is_refused)
{
	static const char *const bad[][16] = {
		[IB_DEST_LID] = {"", "0", "-1", "+1", "x", "8x", "8 9", " ", "08", "0x",
				 "49152", "65536", "4294967304", "18446744073709551624"},
		[IB_DEST_DRPATH] = {"", "x", "0,256"},
		[IB_DEST_GUID] = {"", "0", "0x", "0x1z", "0x1 z", "-1", "0x10000000000000000"},
		[IB_DEST_DRSLID] = {"", "2", "0,1", "x,1", "2x1", "70000,1", "2,", "2,x",
				    "2 ,0,1"},
		[IB_DEST_GID] = {"", "x", "fe80::1 ", "10.0.0.1"},
	};

	for (size_t kind = 0; kind < COUNT(bad); kind++)
		for (size_t i = 0; i < 16 && bad[kind][i]; i++)
			assert_fails_minus_1(resolve((enum MAD_DEST)kind, bad[kind][i]),
					     EINVAL);
	assert_fails_minus_1(resolve((enum MAD_DEST)5, "8"), EINVAL);
	assert_fails_minus_1(resolve((enum MAD_DEST)77, "8"), EINVAL);
	assert_fails_minus_1(
		ib_resolve_portid_str_via(&resolved, NULL, IB_DEST_LID, NULL, port), EINVAL);
	assert_int_equal(arrival_count, 0);
}
