/* SPDX-License-Identifier: BSD-2-Clause */

#include "mad_fixture.h"
#include "test.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_sa.h>

#define SA_LID 0x42

/* The SA's response to a GetTable. */
static struct {
	uint16_t status;
	unsigned attribute_offset;
	size_t data_size, message_size; /* 0: computed from the data */
	uint8_t rmpp_type, rmpp_flags;
} sa;

static uint8_t records[100000];
static uint8_t reply[IB_SA_DATA_OFFS + sizeof(records)];

static void respond_table(const struct device_packet *packet)
{
	size_t length = sa.message_size ? sa.message_size : IB_SA_DATA_OFFS + sa.data_size;
	size_t segments = sa.data_size ? (sa.data_size + 199) / 200 : 1;
	uint32_t payload = htobe32((uint32_t)(sa.data_size + 20 * segments));

	device_copy_mad(packet, reply);
	reply[3] = IB_MAD_METHOD_GET_TABLE_RESPONSE;
	reply[4] = (uint8_t)(sa.status >> 8);
	reply[5] = (uint8_t)sa.status;
	reply[24] = 1;
	reply[25] = sa.rmpp_type;
	reply[26] = sa.rmpp_flags;
	reply[31] = 1;
	memcpy(reply + 32, &payload, sizeof(payload));
	reply[44] = (uint8_t)(sa.attribute_offset >> 8);
	reply[45] = (uint8_t)sa.attribute_offset;
	memcpy(reply + IB_SA_DATA_OFFS, records,
	       length < IB_SA_DATA_OFFS ? 0 : length - IB_SA_DATA_OFFS);
	device_reply(packet, reply, length);
}

static int respond(const struct device_packet *packet, void *arg)
{
	if (fixture.silent || packet->mad[3] != IB_MAD_METHOD_GET_TABLE)
		return respond_to_request(packet, arg);
	respond_table(packet);
	return 0;
}

static uint8_t port_info[IB_SMP_DATA_SIZE];
static ib_portid_t sa_address = {.lid = 3, .sl = 1};
static struct mad_sa_query query;
static struct mad_sa_table *table;

static int setup(void)
{
	int ret = fixture_setup();

	query = (struct mad_sa_query){.attribute = IB_SA_ATTR_NODERECORD, .sa = &sa_address};

	memset(&sa, 0, sizeof(sa));
	sa.rmpp_type = IB_RMPP_TYPE_DATA;
	sa.rmpp_flags = IB_RMPP_FLAG_ACTIVE | IB_RMPP_FLAG_FIRST;
	fill(records, sizeof(records), 1);
	memset(port_info, 0, sizeof(port_info));
	mad_set_field(port_info, 0, IB_PORT_SMLID_F, SA_LID);
	mad_set_field(port_info, 0, IB_PORT_SMSL_F, 5);
	respond_with(IB_SMI_DIRECT_CLASS, IB_ATTR_PORT_INFO, 0, port_info, sizeof(port_info));
	device_on_write(respond, NULL);
	return ret;
}

static int teardown(void)
{
	mad_sa_table_free(table);
	table = NULL;
	return fixture_teardown();
}

FIXTURE(setup, teardown);

/* Reads a table, which lasts until the next one. */
static void get_table(int error)
{
	mad_sa_table_free(table);
	assert_int_equal(mad_sa_request(fixture.port, &query, &table), error);
	assert_true(!error == (table != NULL));
}

static size_t count(void)
{
	return table ? table->count : 0;
}

/* --- any attribute -------------------------------------------------------------- */

TEST(a_query_has_the_components_that_it_looks_for)
{
	static const uint8_t record[] = {0xab, 0xcd, 0xef};

	query = (struct mad_sa_query){
		.attribute = 0x1234,
		.modifier = 0x55667788,
		.component_mask = 0x8000000000000001,
		.record = record,
		.record_size = sizeof(record),
		.sa = &sa_address,
	};
	mad_port_set(fixture.port, MAD_PORT_SA_KEY, 0x1122334455667788);
	get_table(0);
	assert_int_equal(device_written(), 1);
	expect_mad(0, "0:01030212 16:1234 20:55667788 36:1122334455667788"
		      " 48:8000000000000001 56:abcdef");
	expect_address(0, 1, 0x80010000, 3, 1);
	expect_agent(0);
	assert_int_equal(sa_address.qp, 0);
}

TEST(the_subnet_manager_is_asked_unless_another_is_named)
{
	query.sa = NULL;
	get_table(0);
	assert_int_equal(device_written(), 2);
	expect_mad(0, "0:01810101 17:15 32:ffffffff");
	expect_mad(1, "0:01030212 17:11");
	expect_address(1, 1, 0x80010000, SA_LID, 5);
}

TEST(without_a_subnet_manager_there_is_no_table)
{
	query.sa = NULL;
	mad_set_field(port_info, 0, IB_PORT_SMLID_F, 0);
	get_table(-ENXIO);
}

TEST(a_table_has_all_its_records)
{
	sa.attribute_offset = 14;
	sa.data_size = 500 * 112;
	get_table(0);
	assert_int_equal(count(), 500);
	assert_int_equal(table->record_size, 112);
	for (size_t i = 0; i < 500; i++) {
		assert_memory_equal(mad_sa_table_record(table, i), records + i * 112, 112);
		assert_int_equal((uintptr_t)mad_sa_table_record(table, i) % 8, 0);
	}
	assert_null(mad_sa_table_record(table, 500));
	assert_null(mad_sa_table_record(table, SIZE_MAX));
	mad_sa_table_free(NULL);
}

TEST(a_table_may_be_empty)
{
	assert_null(mad_sa_table_record(NULL, 0));
	/* the status may say that there are no records */
	sa.status = 0x0300;
	get_table(0);
	assert_int_equal(count(), 0);
}

/* A NodeRecord has 108 bytes, and 4 of padding. */
TEST(padding_is_no_record)
{
	static const struct {
		const char *sentence;
		unsigned attribute, offset;
		size_t size, zeros, count;
		int error;
	} rows[] = {
		{"no record of any size", IB_SA_ATTR_NODERECORD, 0, 0, 0, 0, 0},
		{"no record of 112 bytes", IB_SA_ATTR_NODERECORD, 14, 0, 0, 0, 0},
		{"less than a MAD", IB_SA_ATTR_LINKRECORD, 1, 8, 0, 1, 0},
		{"padding after three", IB_SA_ATTR_NODERECORD, 14, 3 * 112 + 111, 111, 3, 0},
		{"padding alone", IB_SA_ATTR_NODERECORD, 14, 111, 111, 0, 0},
		{"the last one lacks its padding", IB_SA_ATTR_NODERECORD, 14, 3 * 112 + 108, 0,
		 4, 0},
		{"the only one lacks it", IB_SA_ATTR_NODERECORD, 14, 108, 0, 1, 0},
		{"7 bytes are padding", IB_SA_ATTR_NODERECORD, 15, 120 + 113, 0, 2, 0},
		{"8 bytes are none", IB_SA_ATTR_NODERECORD, 15, 120 + 112, 0, 0, -EPROTO},
		{"1 byte is left", IB_SA_ATTR_NODERECORD, 14, 3 * 112 + 1, 0, 0, -EPROTO},
		{"8 bytes are left", IB_SA_ATTR_NODERECORD, 14, 3 * 112 + 8, 0, 0, -EPROTO},
		{"half of it is left", IB_SA_ATTR_NODERECORD, 14, 3 * 112 + 56, 0, 0, -EPROTO},
		{"a byte is cut off", IB_SA_ATTR_NODERECORD, 14, 3 * 112 + 107, 0, 0, -EPROTO},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const size_t record_size = 8 * rows[i].offset;
		int err;

		query.attribute = rows[i].attribute;
		sa.attribute_offset = rows[i].offset;
		sa.data_size = rows[i].size;
		fill(records, sizeof(records), 1);
		memset(records + rows[i].size - rows[i].zeros, 0, rows[i].zeros);
		mad_sa_table_free(table);
		err = mad_sa_request(fixture.port, &query, &table);
		if (err != rows[i].error || count() != rows[i].count)
			fail_msg("%s: error %d, %zu records", rows[i].sentence, err, count());
		/* the library adds zeros */
		memset(records + rows[i].size, 0, record_size);
		if (rows[i].count && memcmp(mad_sa_table_record(table, 0), records,
					    rows[i].count * record_size) != 0)
			fail_msg("%s: wrong records", rows[i].sentence);
	}
}

TEST(records_that_are_too_short_are_not_believed)
{
	static const struct {
		unsigned attribute, least; /* of the offset */
	} attributes[] = {
		{IB_SA_ATTR_NODERECORD, 14},      {IB_SA_ATTR_PORTINFORECORD, 9},
		{IB_SA_ATTR_LINKRECORD, 1},       {IB_SA_ATTR_GUIDINFORECORD, 9},
		{IB_SA_ATTR_SERVICERECORD, 22},   {IB_SA_ATTR_PATHRECORD, 8},
		{IB_SA_ATTR_MCRECORD, 7},         {IB_SA_ATTR_INFORMINFORECORD, 8},
		{IB_SA_ATTR_SL2VLTABLERECORD, 2}, {IB_SA_ATTR_SWITCHINFORECORD, 3},
		{IB_SA_ATTR_LFTRECORD, 9},        {IB_SA_ATTR_MFTRECORD, 9},
		{IB_SA_ATTR_PKEYTABLERECORD, 9},  {IB_SA_ATTR_VLARBTABLERECORD, 9},
		{IB_SA_ATTR_SMINFORECORD, 4},     {IB_SA_ATTR_RFTRECORD, 1},
	};

	for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++) {
		query.attribute = attributes[i].attribute;
		/* whole records of either size */
		sa.data_size = 8 * attributes[i].least *
			       (attributes[i].least > 1 ? attributes[i].least - 1 : 5);
		sa.attribute_offset = attributes[i].least - 1;
		get_table(-EPROTO);
		sa.attribute_offset = attributes[i].least;
		get_table(0);
		assert_int_equal(table->record_size, 8 * attributes[i].least);
	}
	/* what is looked for is of the record's size, too */
	sa.data_size = 1000;
	query.record = records;
	query.record_size = 200;
	sa.attribute_offset = 24;
	get_table(-EPROTO);
	sa.attribute_offset = 0xffff; /* one record, which was cut */
	get_table(-EPROTO);
}

TEST(what_is_no_table_is_not_believed)
{
	sa.attribute_offset = 14;
	sa.data_size = 112;
	sa.rmpp_flags = 0;
	get_table(-EBADMSG);
	sa.rmpp_flags = IB_RMPP_FLAG_ACTIVE;
	sa.rmpp_type = IB_RMPP_TYPE_ACK;
	get_table(-EBADMSG);
	sa.rmpp_type = IB_RMPP_TYPE_DATA;
	sa.message_size = 55;
	get_table(-EBADMSG);
}

TEST(a_status_comes_back)
{
	sa.status = 0x0200;
	get_table(-EIO);
	assert_int_equal(mad_last_failure()->status, 0x0200);
	assert_null(table);
}

TEST(no_response_is_a_timeout)
{
	query.timeout_ms = 5;
	be_silent();
	mad_rpc_set_timeout(fixture.port, 100000000);
	get_table(-ETIMEDOUT);
	assert_int_equal(mad_last_failure()->status, 0);
	query.sa = NULL;
	get_table(-ETIMEDOUT);
}

TEST(what_is_too_long_is_refused)
{
	assert_int_equal(mad_port_set(fixture.port, MAD_PORT_MAX_RESPONSE, 4096), 0);
	sa.attribute_offset = 14;
	sa.data_size = 4096;
	get_table(-EMSGSIZE);
}

TEST(without_memory_there_is_no_table)
{
	unsigned failed = 0;
	int err;

	sa.attribute_offset = 14;
	sa.data_size = 1116; /* the last record lacks its padding */
	for (unsigned n = 1; n < 30; n++) {
		device_fail_malloc(n);
		err = mad_sa_request(fixture.port, &query, &table);
		device_fail_malloc(0);
		failed += err == -ENOMEM;
		assert_int_equal(err, table ? 0 : -ENOMEM);
		assert_int_equal(count(), table ? 10 : 0);
		mad_sa_table_free(table);
		table = NULL;
	}
	assert_in_range(failed, 2, 28);
}

TEST(invalid_queries_are_rejected)
{
	const struct mad_sa_query good = query;
	ib_portid_t nowhere = {0};

	assert_int_equal(mad_sa_request(NULL, &query, &table), -EINVAL);
	assert_int_equal(mad_sa_request(fixture.port, NULL, &table), -EINVAL);
	query.record_size = 1;
	assert_int_equal(mad_sa_request(fixture.port, &query, &table), -EINVAL);
	query.record = records;
	query.record_size = 0;
	assert_int_equal(mad_sa_request(fixture.port, &query, &table), -EINVAL);
	query.record_size = 201;
	assert_int_equal(mad_sa_request(fixture.port, &query, &table), -EINVAL);
	query = good;
	query.attribute = 0x10000;
	assert_int_equal(mad_sa_request(fixture.port, &query, &table), -EINVAL);
	query = good;
	query.sa = &nowhere;
	assert_int_equal(mad_sa_request(fixture.port, &query, &table), -EINVAL);
	assert_int_equal(device_written(), 0);
}

TEST(one_record_comes_by_get)
{
	query = (struct mad_sa_query){
		.method = IB_MAD_METHOD_GET,
		.attribute = IB_SA_ATTR_PATHRECORD,
		.component_mask = 4,
		.record = "xyz",
		.record_size = 3,
		.sa = &sa_address,
	};
	respond_with(IB_SA_CLASS, IB_SA_ATTR_PATHRECORD, 0, records, IB_SA_DATA_SIZE);
	get_table(0);
	expect_mad(0, "0:01030201 17:35 55:04 56:78797a");
	assert_int_equal(count(), 1);
	assert_int_equal(table->record_size, IB_SA_DATA_SIZE);
	assert_memory_equal(mad_sa_table_record(table, 0), records, IB_SA_DATA_SIZE);
	fixture.responses[1].status = 0x0300;
	get_table(-EIO);
	assert_int_equal(mad_last_failure()->status, 0x0300);
}

TEST(a_table_need_not_be_taken)
{
	sa.attribute_offset = 14;
	sa.data_size = 112;
	assert_int_equal(mad_sa_request(fixture.port, &query, NULL), 0);
}

/* --- frequent queries ----------------------------------------------------------- */

static const ibmad_gid_t one = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
static const ibmad_gid_t two = {0xff, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0xee};

#define ONE "0102030405060708090a0b0c0d0e0f10"
#define TWO "ff02030405060708090a0b0c0d0e0fee"

/*
 * Sends one of the frequent queries, and returns its last MAD (the query reads the SA's LID
 * first).
 */
static void expect_query(int err, size_t size, const char *mad)
{
	assert_int_equal(err, 0);
	expect_mad(device_written() - 1, mad);
	assert_int_equal(count(), 2);
	assert_int_equal(table->record_size, size);
	assert_memory_equal(mad_sa_table_record(table, 1), records + size, size);
	mad_sa_table_free(table);
	table = NULL;
}

static void respond_to_two_of(size_t size)
{
	sa.attribute_offset = (unsigned)size / 8;
	sa.data_size = 2 * size;
}

TEST(paths_are_asked_for_by_either_end)
{
	respond_to_two_of(64);
	expect_query(mad_sa_path_records(fixture.port, one, two, &table), 64,
		     "0:01030212 17:35 54:100c 64:" TWO ONE " 105:7f");
	expect_query(mad_sa_path_records(fixture.port, one, NULL, &table), 64,
		     "0:01030212 17:35 54:1008 80:" ONE " 105:7f");
	expect_query(mad_sa_path_records(fixture.port, NULL, two, &table), 64,
		     "0:01030212 17:35 54:1004 64:" TWO " 105:7f");
	expect_query(mad_sa_path_records(fixture.port, NULL, NULL, &table), 64,
		     "0:01030212 17:35 54:10 105:7f");
}

TEST(codes_of_rates_and_lifetimes_are_read_without_their_selector)
{
	static const struct {
		uint8_t code;
		double gbps;
	} rates[] = {{2, 2.5}, {3, 10}, {7, 40}, {12, 56}, {16, 100}, {24, 1200}};

	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		assert_true(mad_sa_rate_gbps(rates[i].code) == rates[i].gbps);
		assert_true(mad_sa_rate_gbps(rates[i].code | 0x80) == rates[i].gbps);
	}
	assert_true(mad_sa_rate_gbps(0) == 0);
	assert_true(mad_sa_rate_gbps(1) == 0);
	assert_true(mad_sa_rate_gbps(25) == 0);
	assert_true(mad_sa_rate_gbps(0xff) == 0);
	assert_true(mad_sa_lifetime_us(0x80) == 4.096);
	assert_true(mad_sa_lifetime_us(0x8a) == 4.096 * 1024);
	assert_true(mad_sa_lifetime_us(0xff) > 1e18);
}
