/* SPDX-License-Identifier: BSD-2-Clause */

#include "mad_fixture.h"
#include "test.h"

#include <infiniband/mad_async.h>
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

static int setup(void)
{
	int ret = fixture_setup();

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

FIXTURE(setup, fixture_teardown);

static ib_portid_t sa_address = {.lid = 3, .sl = 1};

/* --- any attribute -------------------------------------------------------------- */

TEST(a_query_has_the_components_that_it_looks_for)
{
	static const uint8_t record[] = {0xab, 0xcd, 0xef};
	struct mad_sa_query query = {
		.attribute = 0x1234,
		.modifier = 0x55667788,
		.component_mask = 0x8000000000000001,
		.record = record,
		.record_size = sizeof(record),
		.sa = &sa_address,
		.status = 77,
	};
	struct mad_sa_table *table;

	sa_key_set(fixture.port, 0x1122334455667788);
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), 0);
	assert_int_equal(device_written(), 1);
	expect_mad(0, "0:01030212 16:1234 20:55667788 36:1122334455667788"
		      " 48:8000000000000001 56:abcdef");
	expect_address(0, 1, 0x80010000, 3, 1);
	expect_agent(0);
	assert_int_equal(query.status, 0);
	assert_int_equal(sa_address.qp, 0);
	mad_sa_table_free(table);
}

TEST(the_subnet_manager_is_asked_unless_another_is_named)
{
	struct mad_sa_query query = {.attribute = IB_SA_ATTR_NODERECORD};
	struct mad_sa_table *table;

	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), 0);
	mad_sa_table_free(table);
	assert_int_equal(device_written(), 2);
	expect_mad(0, "0:01810101 17:15 32:ffffffff");
	expect_mad(1, "0:01030212 17:11");
	expect_address(1, 1, 0x80010000, SA_LID, 5);
}

TEST(without_a_subnet_manager_there_is_no_table)
{
	struct mad_sa_query query = {.attribute = IB_SA_ATTR_NODERECORD};
	struct mad_sa_table *table;

	mad_set_field(port_info, 0, IB_PORT_SMLID_F, 0);
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), -ENXIO);
	assert_null(table);
}

TEST(a_table_has_all_its_records)
{
	struct mad_sa_query query = {.attribute = IB_SA_ATTR_NODERECORD, .sa = &sa_address};
	struct mad_sa_table *table;

	sa.attribute_offset = 14;
	sa.data_size = 500 * 112;
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), 0);
	assert_int_equal(mad_sa_table_count(table), 500);
	assert_int_equal(mad_sa_table_record_size(table), 112);
	for (size_t i = 0; i < 500; i++) {
		assert_memory_equal(mad_sa_table_record(table, i), records + i * 112, 112);
		assert_int_equal((uintptr_t)mad_sa_table_record(table, i) % 8, 0);
	}
	assert_null(mad_sa_table_record(table, 500));
	assert_null(mad_sa_table_record(table, SIZE_MAX));
	mad_sa_table_free(table);
	mad_sa_table_free(NULL);
}

TEST(a_short_table_fits_into_less_than_a_mad)
{
	struct mad_sa_query query = {.attribute = IB_SA_ATTR_LINKRECORD, .sa = &sa_address};
	struct mad_sa_table *table;

	sa.rmpp_flags |= IB_RMPP_FLAG_LAST;
	sa.attribute_offset = 1;
	sa.data_size = 8;
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), 0);
	assert_int_equal(mad_sa_table_count(table), 1);
	assert_memory_equal(mad_sa_table_record(table, 0), records, 8);
	mad_sa_table_free(table);
}

TEST(a_table_may_be_empty)
{
	struct mad_sa_query query = {.attribute = IB_SA_ATTR_NODERECORD, .sa = &sa_address};
	struct mad_sa_table *table;

	for (unsigned offset = 0; offset < 15; offset += 14) {
		sa.attribute_offset = offset;
		assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), 0);
		assert_int_equal(mad_sa_table_count(table), 0);
		assert_null(mad_sa_table_record(table, 0));
		mad_sa_table_free(table);
	}
	assert_int_equal(mad_sa_table_count(NULL), 0);
	assert_int_equal(mad_sa_table_record_size(NULL), 0);
	assert_null(mad_sa_table_record(NULL, 0));
	/* or the status may say that there are no records */
	sa.status = 0x0300;
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), 0);
	assert_int_equal(mad_sa_table_count(table), 0);
	assert_int_equal(query.status, 0x0300);
	mad_sa_table_free(table);
}

TEST(padding_is_no_record)
{
	struct mad_sa_query query = {.attribute = IB_SA_ATTR_NODERECORD, .sa = &sa_address};
	struct mad_sa_table *table;

	sa.attribute_offset = 14;
	sa.data_size = 3 * 112 + 111;
	memset(records + 3 * 112, 0, 111);
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), 0);
	assert_int_equal(mad_sa_table_count(table), 3);
	mad_sa_table_free(table);
	sa.data_size = 111;
	memset(records, 0, 111);
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), 0);
	assert_int_equal(mad_sa_table_count(table), 0);
	mad_sa_table_free(table);
}

/* A NodeRecord has 108 bytes, and 4 of padding. */
TEST(the_last_record_may_lack_its_padding)
{
	static const uint8_t zeros[4];
	struct mad_sa_query query = {.attribute = IB_SA_ATTR_NODERECORD, .sa = &sa_address};
	struct mad_sa_table *table;

	sa.attribute_offset = 14;
	sa.data_size = 3 * 112 + 108;
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), 0);
	assert_int_equal(mad_sa_table_count(table), 4);
	assert_memory_equal((uint8_t *)mad_sa_table_record(table, 3) + 108, zeros, 4);
	mad_sa_table_free(table);
	sa.data_size = 108;
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), 0);
	assert_int_equal(mad_sa_table_count(table), 1);
	mad_sa_table_free(table);
	/* no padding has eight bytes */
	sa.attribute_offset = 15;
	sa.data_size = 120 + 113;
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), 0);
	assert_int_equal(mad_sa_table_count(table), 2);
	mad_sa_table_free(table);
	sa.data_size = 120 + 112;
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), -EPROTO);
}

TEST(a_table_whose_last_record_was_cut_is_an_error)
{
	static const unsigned cut[] = {1, 8, 56, 107};
	struct mad_sa_query query = {.attribute = IB_SA_ATTR_NODERECORD, .sa = &sa_address};
	struct mad_sa_table *table;

	sa.attribute_offset = 14;
	for (size_t i = 0; i < sizeof(cut) / sizeof(*cut); i++) {
		sa.data_size = 3 * 112 + cut[i];
		assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), -EPROTO);
		assert_null(table);
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
	struct mad_sa_query query = {.sa = &sa_address};
	struct mad_sa_table *table;

	for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++) {
		query.attribute = attributes[i].attribute;
		/* whole records of either size */
		sa.data_size = 8 * attributes[i].least *
			       (attributes[i].least > 1 ? attributes[i].least - 1 : 5);
		sa.attribute_offset = attributes[i].least - 1;
		assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), -EPROTO);
		assert_null(table);
		sa.attribute_offset = attributes[i].least;
		assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), 0);
		assert_int_equal(mad_sa_table_record_size(table), 8 * attributes[i].least);
		mad_sa_table_free(table);
	}
	/* what is looked for is of the record's size, too */
	sa.data_size = 1000;
	query.record = records;
	query.record_size = 200;
	sa.attribute_offset = 24;
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), -EPROTO);
	sa.attribute_offset = 0xffff; /* one record, which was cut */
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), -EPROTO);
}

TEST(what_is_no_table_is_not_believed)
{
	struct mad_sa_query query = {.attribute = IB_SA_ATTR_NODERECORD, .sa = &sa_address};
	struct mad_sa_table *table;

	sa.attribute_offset = 14;
	sa.data_size = 112;
	sa.rmpp_flags = 0;
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), -EBADMSG);
	assert_null(table);
	sa.rmpp_flags = IB_RMPP_FLAG_ACTIVE;
	sa.rmpp_type = IB_RMPP_TYPE_ACK;
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), -EBADMSG);
	sa.rmpp_type = IB_RMPP_TYPE_DATA;
	sa.message_size = 55;
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), -EBADMSG);
}

TEST(a_status_comes_back)
{
	struct mad_sa_query query = {.attribute = IB_SA_ATTR_NODERECORD, .sa = &sa_address};
	struct mad_sa_table *table;

	sa.status = 0x0200;
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), -EIO);
	assert_int_equal(query.status, 0x0200);
	assert_null(table);
}

TEST(no_response_is_a_timeout)
{
	struct mad_sa_query query = {
		.attribute = IB_SA_ATTR_NODERECORD, .sa = &sa_address, .timeout_ms = 5};
	struct mad_sa_table *table;

	be_silent();
	mad_rpc_set_timeout(fixture.port, 100000000);
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), -ETIMEDOUT);
	assert_int_equal(query.status, 0);
	query.sa = NULL;
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), -ETIMEDOUT);
}

TEST(what_is_too_long_is_refused)
{
	struct mad_sa_query query = {.attribute = IB_SA_ATTR_NODERECORD, .sa = &sa_address};
	struct mad_sa_table *table;

	assert_int_equal(mad_port_set_max_reply(fixture.port, 4096), 0);
	sa.attribute_offset = 14;
	sa.data_size = 4096;
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), -EMSGSIZE);
	assert_null(table);
}

TEST(without_memory_there_is_no_table)
{
	/* the last record lacks its padding, so that memory is made larger */
	const unsigned sizes[] = {1120, 1116};
	struct mad_sa_query query = {.attribute = IB_SA_ATTR_NODERECORD, .sa = &sa_address};
	struct mad_sa_table *table = NULL;
	unsigned failed;
	int err;

	sa.attribute_offset = 14;
	for (unsigned i = 0; i < 2; i++) {
		sa.data_size = sizes[i];
		failed = 0;
		for (unsigned n = 1; n < 20; n++) {
			device_fail_malloc(n);
			err = mad_sa_get_table(fixture.port, &query, &table);
			device_fail_malloc(0);
			failed += err == -ENOMEM;
			assert_int_equal(err, table ? 0 : -ENOMEM);
			assert_int_equal(mad_sa_table_count(table), table ? 10 : 0);
			mad_sa_table_free(table);
		}
		assert_in_range(failed, 1 + i, 18);
	}
}

TEST(invalid_queries_are_rejected)
{
	struct mad_sa_query good = {.attribute = 0x11, .sa = &sa_address}, query = good;
	ib_portid_t nowhere = {0};
	struct mad_sa_table *table;
	uint8_t record[200];

	assert_int_equal(mad_sa_get_table(NULL, &query, &table), -EINVAL);
	assert_int_equal(mad_sa_get_table(fixture.port, NULL, &table), -EINVAL);
	assert_int_equal(mad_sa_get_table(fixture.port, &query, NULL), -EINVAL);
	assert_int_equal(mad_sa_get(fixture.port, &query, NULL, 0), -EINVAL);
	assert_int_equal(mad_sa_get(fixture.port, &query, record, 201), -EINVAL);
	query.record_size = 1;
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), -EINVAL);
	query.record = records;
	query.record_size = 0;
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), -EINVAL);
	query.record_size = 201;
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), -EINVAL);
	query = good;
	query.attribute = 0x10000;
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), -EINVAL);
	query = good;
	query.sa = &nowhere;
	assert_int_equal(mad_sa_get_table(fixture.port, &query, &table), -EINVAL);
	assert_int_equal(device_written(), 0);
}

TEST(one_record_comes_by_get)
{
	uint8_t record[IB_SA_DATA_SIZE + 1] = {0};
	struct mad_sa_query query = {
		.attribute = IB_SA_ATTR_PATHRECORD,
		.component_mask = 4,
		.record = "xyz",
		.record_size = 3,
		.sa = &sa_address,
	};

	respond_with(IB_SA_CLASS, IB_SA_ATTR_PATHRECORD, 0, records, IB_SA_DATA_SIZE);
	assert_int_equal(mad_sa_get(fixture.port, &query, record, 64), 0);
	expect_mad(0, "0:01030201 17:35 55:04 56:78797a");
	assert_memory_equal(record, records, 64);
	assert_int_equal(record[64], 0);
	assert_int_equal(mad_sa_get(fixture.port, &query, record, IB_SA_DATA_SIZE), 0);
	assert_memory_equal(record, records, IB_SA_DATA_SIZE);
	assert_int_equal(record[IB_SA_DATA_SIZE], 0);
	fixture.responses[1].status = 0x0300;
	assert_int_equal(mad_sa_get(fixture.port, &query, record, 64), -EIO);
	assert_int_equal(query.status, 0x0300);
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
static void expect_query(int err, struct mad_sa_table *table, size_t size, const char *mad)
{
	assert_int_equal(err, 0);
	expect_mad(device_written() - 1, mad);
	assert_int_equal(mad_sa_table_count(table), 2);
	assert_int_equal(mad_sa_table_record_size(table), size);
	assert_memory_equal(mad_sa_table_record(table, 1), records + size, size);
	mad_sa_table_free(table);
}

static void respond_to_two_of(size_t size)
{
	sa.attribute_offset = (unsigned)size / 8;
	sa.data_size = 2 * size;
}

TEST(paths_are_asked_for_by_either_end)
{
	struct mad_sa_table *t;
	int err;

	respond_to_two_of(64);
	err = mad_sa_path_records(fixture.port, one, two, &t);
	expect_query(err, t, 64, "0:01030212 17:35 54:100c 64:" TWO ONE " 105:7f");
	err = mad_sa_path_records(fixture.port, one, NULL, &t);
	expect_query(err, t, 64, "0:01030212 17:35 54:1008 80:" ONE " 105:7f");
	err = mad_sa_path_records(fixture.port, NULL, two, &t);
	expect_query(err, t, 64, "0:01030212 17:35 54:1004 64:" TWO " 105:7f");
	err = mad_sa_path_records(fixture.port, NULL, NULL, &t);
	expect_query(err, t, 64, "0:01030212 17:35 54:10 105:7f");
}

TEST(nodes_ports_and_links_are_asked_for_by_lid)
{
	struct mad_sa_table *t;
	int err;

	respond_to_two_of(112);
	err = mad_sa_node_records(fixture.port, 0x1234, &t);
	expect_query(err, t, 112, "0:01030212 17:11 55:01 56:1234");
	err = mad_sa_node_records(fixture.port, 0, &t);
	expect_query(err, t, 112, "0:01030212 17:11");
	respond_to_two_of(72);
	err = mad_sa_port_info_records(fixture.port, 0x1234, &t);
	expect_query(err, t, 72, "0:01030212 17:12 55:01 56:1234");
	err = mad_sa_port_info_records(fixture.port, 0, &t);
	expect_query(err, t, 72, "0:01030212 17:12");
	respond_to_two_of(8);
	err = mad_sa_link_records(fixture.port, 0x1234, &t);
	expect_query(err, t, 8, "0:01030212 17:20 55:01 56:1234");
	err = mad_sa_link_records(fixture.port, 0, &t);
	expect_query(err, t, 8, "0:01030212 17:20");
}

TEST(groups_and_subscriptions_are_asked_for_by_gid)
{
	struct mad_sa_table *t;
	int err;

	respond_to_two_of(56);
	err = mad_sa_mc_member_records(fixture.port, two, &t);
	expect_query(err, t, 56, "0:01030212 17:38 55:01 56:" TWO);
	err = mad_sa_mc_member_records(fixture.port, NULL, &t);
	expect_query(err, t, 56, "0:01030212 17:38");
	respond_to_two_of(64);
	err = mad_sa_inform_info_records(fixture.port, one, &t);
	expect_query(err, t, 64, "0:01030212 17:f3 55:01 56:" ONE);
	err = mad_sa_inform_info_records(fixture.port, NULL, &t);
	expect_query(err, t, 64, "0:01030212 17:f3");
}

TEST(services_are_asked_for_by_name)
{
	char name[66];
	struct mad_sa_table *t;
	int err;

	respond_to_two_of(176);
	err = mad_sa_service_records(fixture.port, "abc", &t);
	expect_query(err, t, 176, "0:01030212 17:31 55:40 104:616263");
	err = mad_sa_service_records(fixture.port, NULL, &t);
	expect_query(err, t, 176, "0:01030212 17:31");
	memset(name, 'x', sizeof(name) - 1);
	name[65] = '\0';
	assert_int_equal(mad_sa_service_records(fixture.port, name, &t), -EINVAL);
	assert_null(t);
	name[64] = '\0';
	err = mad_sa_service_records(fixture.port, name, &t);
	assert_int_equal(err, 0);
	assert_memory_equal(device_packet(device_written() - 1)->mad + 104, name, 64);
	mad_sa_table_free(t);
}

TEST(codes_of_rates_mtus_and_lifetimes_are_read_without_their_selector)
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
	assert_int_equal(mad_sa_mtu(0x84), 2048);
	assert_int_equal(mad_sa_mtu(0xc6), 0);
	assert_true(mad_sa_lifetime_us(0x80) == 4.096);
	assert_true(mad_sa_lifetime_us(0x8a) == 4.096 * 1024);
	assert_true(mad_sa_lifetime_us(0xff) > 1e18);
}
