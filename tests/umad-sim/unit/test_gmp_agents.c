/* SPDX-License-Identifier: BSD-2-Clause */

/* Congestion control, baseboard management and vendor specific agents, and their storage. */

#include "gmp_fixture.h"
#include "test.h"

#include <errno.h>

#define KEY_AT 24
#define DATA   64
#define PARMS  68
#define OUI_AT 37

/* --- congestion control --------------------------------------------------------- */

static bool cc(struct star *star, uint32_t node, unsigned int method, unsigned int attribute,
	       uint64_t key)
{
	struct query query = query_of(star, node);

	put64(star->mad + KEY_AT, key);
	star->mad[3] = (uint8_t)method;
	put16(star->mad + 16, attribute);
	return congestion_respond(&query);
}

static void cc_new(struct star *star, uint32_t modifier)
{
	request(star, IB_CC_CLASS, 2, 0, 0, modifier);
}

static bool cc_get(struct star *star, uint32_t node, unsigned int attribute, uint64_t key)
{
	cc_new(star, 0);
	return cc(star, node, METHOD_GET, attribute, key);
}

static bool cc_set_key(struct star *star, uint64_t with, uint64_t key, bool protect,
		       unsigned int lease)
{
	cc_new(star, 0);
	mad_set_field64(star->mad, DATA, IB_CC_CONGESTION_KEY_INFO_CC_KEY_F, key);
	mad_set_field(star->mad, DATA, IB_CC_CONGESTION_KEY_INFO_CC_KEY_PROTECT_BIT_F, protect);
	mad_set_field(star->mad, DATA, IB_CC_CONGESTION_KEY_INFO_CC_KEY_LEASE_PERIOD_F, lease);
	return cc(star, ALPHA, METHOD_SET, IB_CC_ATTR_CONGESTION_KEY_INFO, with);
}

static uint64_t cc_key(struct star *star, uint64_t with)
{
	assert_true(cc_get(star, ALPHA, IB_CC_ATTR_CONGESTION_KEY_INFO, with));
	return mad_get_field64(star->mad, DATA, IB_CC_CONGESTION_KEY_INFO_CC_KEY_F);
}

static unsigned int cc_violations(struct star *star)
{
	assert_true(cc_get(star, ALPHA, IB_CC_ATTR_CONGESTION_KEY_INFO, 0));
	return mad_get_field(star->mad, DATA, IB_CC_CONGESTION_KEY_INFO_CC_KEY_VIOLATIONS_F);
}

STAR_TEST(a_wrong_cc_key_gets_no_response_and_is_counted)
{
	assert_true(cc_set_key(star, 0, 0x1122334455667788, true, 0));
	assert_int_equal(status_of_response(star), STATUS_OK);
	assert_true(mad_get_field64(star->mad, DATA, IB_CC_CONGESTION_KEY_INFO_CC_KEY_F) ==
		    0x1122334455667788);
	assert_int_equal(cc_violations(star), 0);
	assert_false(cc_set_key(star, 1, 2, false, 0));
	assert_false(cc_set_key(star, 0, 2, false, 0));
	cc_new(star, 0);
	assert_false(cc(star, ALPHA, METHOD_SET, IB_CC_ATTR_CA_CONGESTION_SETTING, 3));
	assert_int_equal(cc_violations(star), 3);
	assert_true(cc_set_key(star, 0x1122334455667788, 2, false, 0));
	assert_true(cc_key(star, 0) == 2);
	/* another node has its own values */
	cc_new(star, 0);
	assert_true(cc(star, BETA, METHOD_SET, IB_CC_ATTR_CA_CONGESTION_SETTING, 3));
}

STAR_TEST(a_protected_cc_key_is_shown_to_who_has_it)
{
	assert_true(cc_set_key(star, 0, 42, true, 0));
	assert_true(cc_key(star, 0) == 0);
	assert_true(cc_key(star, 41) == 0);
	assert_true(cc_key(star, 42) == 42);
	assert_true(cc_set_key(star, 42, 42, false, 0));
	assert_true(cc_key(star, 0) == 42);
}

STAR_TEST(a_lease_ends_the_protection_but_not_while_the_manager_lives)
{
	assert_true(cc_set_key(star, 0, 42, true, 5));
	star->fabric.now = 100 * SECOND;
	assert_true(cc_key(star, 0) == 0);
	assert_false(cc_set_key(star, 1, 1, true, 0));
	star->fabric.now += 4 * SECOND;
	assert_true(cc_key(star, 0) == 0);
	cc_new(star, 0);
	assert_true(cc(star, ALPHA, METHOD_SET, IB_CC_ATTR_CA_CONGESTION_SETTING, 42));
	star->fabric.now += 4 * SECOND;
	assert_true(cc_key(star, 0) == 0);
	assert_false(cc_set_key(star, 1, 1, true, 0));
	star->fabric.now += 5 * SECOND;
	assert_true(cc_key(star, 0) == 42);
}

STAR_TEST(congestion_info_depends_on_the_node_type)
{
	assert_true(cc_get(star, ALPHA, IB_CC_ATTR_CONGESTION_INFO, 0));
	assert_int_equal(
		mad_get_field(star->mad, DATA, IB_CC_CONGESTION_INFO_CONTROL_TABLE_CAP_F), 2);
	assert_true(cc_get(star, SWITCH, IB_CC_ATTR_CONGESTION_INFO, 0));
	assert_int_equal(
		mad_get_field(star->mad, DATA, IB_CC_CONGESTION_INFO_CONTROL_TABLE_CAP_F), 0);
	assert_true(cc_get(star, ALPHA, CLASS_PORT_INFO, 0));
	assert_int_equal(mad_get_field(star->mad, DATA, IB_CPI_CLASSVER_F), 2);
	cc_new(star, 0);
	assert_true(cc(star, ALPHA, METHOD_SET, IB_CC_ATTR_CONGESTION_INFO, 0));
	assert_int_equal(status_of_response(star), STATUS_BAD_ATTRIBUTE);
}

STAR_TEST(the_congestion_log_begins_at_byte_32_and_is_empty)
{
	star->fabric.now = 2048000;
	assert_true(cc_get(star, SWITCH, IB_CC_ATTR_CONGESTION_LOG, 0));
	assert_int_equal(mad_get_field(star->mad, 32, IB_CC_CONGESTION_LOG_LOGTYPE_F), 1);
	assert_int_equal(
		mad_get_field(star->mad, 32, IB_CC_CONGESTION_LOG_SWITCH_CURRENT_TIME_STAMP_F),
		2000);
	assert_true(cc_get(star, BETA, IB_CC_ATTR_CONGESTION_LOG, 0));
	assert_int_equal(mad_get_field(star->mad, 32, IB_CC_CONGESTION_LOG_LOGTYPE_F), 2);
	assert_int_equal(
		mad_get_field(star->mad, 32, IB_CC_CONGESTION_LOG_CA_CURRENT_TIMESTAMP_F),
		2000);
	assert_true(cc_get(star, BETA, IB_CC_ATTR_TIMESTAMP, 0));
	assert_int_equal(mad_get_field(star->mad, DATA, IB_CC_TIMESTAMP_F), 2000);
}

STAR_TEST(a_congestion_setting_comes_back_as_it_was_set)
{
	static const struct {
		unsigned int attribute;
		uint32_t node, other;
		uint32_t blocks;
	} settings[] = {
		{IB_CC_ATTR_SWITCH_CONGESTION_SETTING, SWITCH, ALPHA, 1},
		{IB_CC_ATTR_SWITCH_PORT_CONGESTION_SETTING, SWITCH, ALPHA, 8},
		{IB_CC_ATTR_CA_CONGESTION_SETTING, BETA, SWITCH, 1},
		{IB_CC_ATTR_CONGESTION_CONTROL_TABLE, BETA, SWITCH, 2},
	};
	uint8_t sent[192];

	for (unsigned int i = 0; i < COUNT_OF(settings); i++) {
		for (uint32_t block = 0; block < settings[i].blocks; block++) {
			memset(sent, (int)(i * 16 + block + 1), sizeof(sent));
			cc_new(star, block);
			memcpy(star->mad + DATA, sent, sizeof(sent));
			assert_true(cc(star, settings[i].node, METHOD_SET,
				       settings[i].attribute, 0));
			assert_int_equal(status_of_response(star), STATUS_OK);
		}
		for (uint32_t block = 0; block < settings[i].blocks; block++) {
			memset(sent, (int)(i * 16 + block + 1), sizeof(sent));
			cc_new(star, block);
			assert_true(cc(star, settings[i].node, METHOD_GET,
				       settings[i].attribute, 0));
			assert_memory_equal(star->mad + DATA, sent, sizeof(sent));
		}
		cc_new(star, settings[i].blocks);
		assert_true(cc(star, settings[i].node, METHOD_GET, settings[i].attribute, 0));
		assert_int_equal(status_of_response(star), STATUS_BAD_VALUE);
		assert_true(cc_get(star, settings[i].other, settings[i].attribute, 0));
		assert_int_equal(status_of_response(star), STATUS_BAD_ATTRIBUTE);
	}
}

STAR_TEST(congestion_control_has_class_version_2)
{
	struct query query = query_of(star, ALPHA);

	request(star, IB_CC_CLASS, 1, METHOD_GET, IB_CC_ATTR_CONGESTION_INFO, 0);
	assert_true(congestion_respond(&query));
	assert_int_equal(status_of_response(star), STATUS_BAD_VERSION);
	request(star, IB_CC_CLASS, 2, METHOD_GET_TABLE, IB_CC_ATTR_CONGESTION_INFO, 0);
	assert_true(congestion_respond(&query));
	assert_int_equal(status_of_response(star), STATUS_BAD_METHOD);
	request(star, IB_CC_CLASS, 2, 0x81, IB_CC_ATTR_CONGESTION_INFO, 0);
	assert_false(congestion_respond(&query));
}

/* --- baseboard management ------------------------------------------------------- */

static bool bm(struct star *star, unsigned int method, unsigned int attribute, uint64_t key,
	       const uint8_t *parms, size_t length)
{
	struct query query = query_of(star, BETA);

	request(star, IB_BOARD_MGMT_CLASS, 1, method, attribute, 0);
	put64(star->mad + KEY_AT, key);
	if (length)
		memcpy(star->mad + (attribute == IB_BM_ATTR_BKEYINFO ? DATA : PARMS), parms,
		       length);
	return baseboard_respond(&query);
}

STAR_TEST(a_board_knows_its_guid_and_its_name)
{
	static const uint8_t all[4] = {0, 64, 0, 0};

	assert_true(bm(star, METHOD_GET, IB_BM_ATTR_READ_VPD, 0, all, sizeof(all)));
	assert_int_equal(mad_method(star->mad), 0x81);
	assert_int_equal(star->mad[PARMS], 0);
	assert_int_equal(star->mad[PARMS + 1], 64);
	assert_true(get64(star->mad + PARMS + 2) == 0x300);
	assert_string_equal((const char *)star->mad + PARMS + 10, "beta");
}

STAR_TEST(written_vpd_can_be_read)
{
	static const uint8_t write[8] = {0, 4, 0, 252, 'l', 'a', 's', 't'};
	static const uint8_t read[4] = {0, 4, 0, 252};
	static const uint8_t beyond[4] = {0, 5, 0, 252};
	static const uint8_t elsewhere[4] = {1, 4, 0, 0};

	assert_true(bm(star, METHOD_SET, IB_BM_ATTR_WRITE_VPD, 0, write, sizeof(write)));
	assert_int_equal(star->mad[PARMS], 0);
	assert_true(bm(star, METHOD_GET, IB_BM_ATTR_READ_VPD, 0, read, sizeof(read)));
	assert_memory_equal(star->mad + PARMS + 2, "last", 5);
	assert_true(bm(star, METHOD_GET, IB_BM_ATTR_READ_VPD, 0, beyond, sizeof(beyond)));
	assert_int_not_equal(star->mad[PARMS], 0);
	assert_true(bm(star, METHOD_GET, IB_BM_ATTR_READ_VPD, 0, elsewhere, sizeof(elsewhere)));
	assert_int_not_equal(star->mad[PARMS], 0);
	assert_true(bm(star, METHOD_GET, IB_BM_ATTR_OEM, 0, NULL, 0));
	assert_int_equal(status_of_response(star), STATUS_OK);
	assert_int_not_equal(star->mad[PARMS], 0);
}

STAR_TEST(the_response_to_a_send_is_a_send_that_gets_no_response)
{
	static const uint8_t read[4] = {0, 8, 0, 0};
	struct query query = query_of(star, ALPHA);

	assert_true(bm(star, METHOD_SEND, IB_BM_ATTR_READ_VPD, 0, read, sizeof(read)));
	assert_int_equal(mad_method(star->mad), METHOD_SEND);
	assert_int_equal(mad_modifier(star->mad), 1);
	assert_true(get64(star->mad + PARMS + 2) == 0x300);
	assert_false(baseboard_respond(&query));
	assert_false(bm(star, METHOD_SEND, 0x7777, 0, NULL, 0));
}

STAR_TEST(a_wrong_b_key_gets_no_response_and_is_counted)
{
	static const uint8_t info[16] = {0, 0, 0, 0, 0, 0, 0, 9, 0x80};
	static const uint8_t write[5] = {0, 1, 0, 0, 7};

	assert_true(bm(star, METHOD_SET, IB_BM_ATTR_BKEYINFO, 0, info, sizeof(info)));
	assert_int_equal(status_of_response(star), STATUS_OK);
	assert_false(bm(star, METHOD_SET, IB_BM_ATTR_BKEYINFO, 8, info, sizeof(info)));
	assert_false(bm(star, METHOD_SEND, IB_BM_ATTR_WRITE_VPD, 8, write, sizeof(write)));
	assert_false(bm(star, METHOD_GET, IB_BM_ATTR_WRITE_VPD, 8, write, sizeof(write)));
	assert_true(bm(star, METHOD_SET, IB_BM_ATTR_WRITE_VPD, 9, write, sizeof(write)));
	assert_true(bm(star, METHOD_GET, IB_BM_ATTR_BKEYINFO, 0, NULL, 0));
	assert_true(get64(star->mad + DATA) == 0);
	assert_int_equal(star->mad[DATA + 8], 0x80);
	assert_int_equal(get16(star->mad + DATA + 12), 3);
	assert_true(bm(star, METHOD_GET, IB_BM_ATTR_BKEYINFO, 9, NULL, 0));
	assert_true(get64(star->mad + DATA) == 9);
}

STAR_TEST(the_baseboard_agent_reports_unsupported_requests)
{
	assert_true(bm(star, METHOD_GET, CLASS_PORT_INFO, 0, NULL, 0));
	assert_int_equal(mad_get_field(star->mad, DATA, IB_CPI_CLASSVER_F), 1);
	assert_true(bm(star, METHOD_GET, NOTICE, 0, NULL, 0));
	assert_int_equal(status_of_response(star), STATUS_BAD_ATTRIBUTE);
	assert_true(bm(star, METHOD_DELETE, IB_BM_ATTR_BKEYINFO, 0, NULL, 0));
	assert_int_equal(status_of_response(star), STATUS_BAD_METHOD);
	assert_false(bm(star, 0x81, IB_BM_ATTR_BKEYINFO, 0, NULL, 0));
}

/* --- vendor classes ------------------------------------------------------------- */

static bool vendor(struct star *star, uint32_t node)
{
	struct query query = query_of(star, node);

	return vendor_respond(&query);
}

static uint32_t read_register(struct star *star, uint32_t node, unsigned int class,
			      unsigned int attribute, uint32_t modifier)
{
	request(star, class, 1, METHOD_GET, attribute, modifier);
	assert_true(vendor(star, node));
	assert_int_equal(status_of_response(star), STATUS_OK);
	return get32(star->mad + 24);
}

STAR_TEST(a_register_keeps_its_value)
{
	request(star, 0x0a, 1, METHOD_SET, 0x50, 0xdeadbeef);
	put32(star->mad + 24, 0x01020304);
	assert_true(vendor(star, ALPHA));
	assert_int_equal(get32(star->mad + 24), 0x01020304);
	assert_int_equal(read_register(star, ALPHA, 0x0a, 0x50, 0xdeadbeef), 0x01020304);
	assert_int_equal(read_register(star, ALPHA, 0x0a, 0x50, 0xdeadbeee), 0);
	assert_int_equal(read_register(star, ALPHA, 0x0a, 0x51, 0xdeadbeef), 0);
	assert_int_equal(read_register(star, ALPHA, 0x0f, 0x50, 0xdeadbeef), 0);
	assert_int_equal(read_register(star, BETA, 0x0a, 0x50, 0xdeadbeef), 0);
}

STAR_TEST(the_response_to_a_ping_has_the_name_of_the_node)
{
	request(star, IB_VENDOR_OPENIB_PING_CLASS, 1, METHOD_GET, 0, 0);
	put16(star->mad + OUI_AT, IB_OPENIB_OUI >> 8);
	star->mad[OUI_AT + 2] = IB_OPENIB_OUI & 0xff;
	assert_true(vendor(star, ALPHA));
	assert_int_equal(status_of_response(star), STATUS_OK);
	assert_string_equal((const char *)star->mad + 40, "alpha.fabric");
	assert_int_equal(star->mad[OUI_AT + 2], IB_OPENIB_OUI & 0xff);
}

STAR_TEST(any_other_vendors_data_come_back)
{
	uint8_t sent[216];

	memset(sent, 0x6b, sizeof(sent));
	for (unsigned int class = 0x30; class <= 0x4f; class ++) {
		request(star, class, 1, METHOD_GET, 0, 0);
		memset(star->mad + OUI_AT, 0xab, 3);
		memcpy(star->mad + 40, sent, sizeof(sent));
		assert_true(vendor(star, ALPHA));
		assert_int_equal(status_of_response(star), STATUS_OK);
		assert_memory_equal(star->mad + 40, sent, sizeof(sent));
	}
}

STAR_TEST(vendors_have_class_port_info_where_their_data_begin)
{
	request(star, 0x09, 1, METHOD_GET, CLASS_PORT_INFO, 0);
	assert_true(vendor(star, SWITCH));
	assert_int_equal(mad_get_field(star->mad, 24, IB_CPI_BASEVER_F), 1);
	request(star, 0x33, 1, METHOD_SET, CLASS_PORT_INFO, 0);
	memset(star->mad + 40, 0xff, 72);
	mad_set_field(star->mad, 40, IB_CPI_TRAP_LID_F, 0x1234);
	assert_true(vendor(star, SWITCH));
	request(star, 0x33, 1, METHOD_GET, CLASS_PORT_INFO, 0);
	assert_true(vendor(star, SWITCH));
	assert_int_equal(mad_get_field(star->mad, 40, IB_CPI_CLASSVER_F), 1);
	assert_int_equal(mad_get_field(star->mad, 40, IB_CPI_TRAP_LID_F), 0x1234);
	assert_int_equal(mad_get_field(star->mad, 40, IB_CPI_REDIRECT_LID_F), 0);
	request(star, 0x33, 1, METHOD_DELETE, CLASS_PORT_INFO, 0);
	assert_true(vendor(star, SWITCH));
	assert_int_equal(status_of_response(star), STATUS_BAD_METHOD);
	request(star, 0x33, 1, 0x81, CLASS_PORT_INFO, 0);
	assert_false(vendor(star, SWITCH));
}

/* --- the storage ---------------------------------------------------------------- */

STAR_TEST(the_memory_holds_many_places_and_forgets_a_node)
{
	uint32_t value;

	for (uint32_t i = 0; i < 20000; i++) {
		struct gmp_place place = {.node = i % 3, .class = 9, .modifier = i};

		assert_int_equal(gmp_keep(&star->fabric, &place, &i, sizeof(i)), 0);
	}
	gmp_forget(&star->fabric, BETA);
	for (uint32_t i = 0; i < 20000; i++) {
		struct gmp_place place = {.node = i % 3, .class = 9, .modifier = i};
		bool found = gmp_recall(&star->fabric, &place, &value, sizeof(value));

		assert_int_equal(found, i % 3 != BETA);
		if (found)
			assert_int_equal(value, i);
		assert_false(gmp_recall(&star->fabric, &place, &value, sizeof(value) - 1));
	}
}

STAR_TEST(the_memory_has_a_limit)
{
	struct gmp_place place = {.node = ALPHA};
	size_t size = 1 << 20;
	uint8_t *bytes = calloc(1, size);
	int error = 0;

	assert_non_null(bytes);
	for (place.modifier = 0; place.modifier < 1000 && !error; place.modifier++)
		error = gmp_keep(&star->fabric, &place, bytes, size);
	assert_int_equal(error, -ENOSPC);
	assert_in_range(place.modifier, 32, 64);
	/* existing values can still be replaced */
	place.modifier = 0;
	assert_int_equal(gmp_keep(&star->fabric, &place, bytes, size), 0);
	gmp_forget(&star->fabric, ALPHA);
	assert_int_equal(gmp_keep(&star->fabric, &place, bytes, 1), 0);
	free(bytes);
}

STAR_TEST(every_request_is_safe)
{
	ask_at_random(star, IB_CC_CLASS, 2, congestion_respond);
	ask_at_random(star, IB_BOARD_MGMT_CLASS, 1, baseboard_respond);
	ask_at_random(star, 0x0a, 1, vendor_respond);
	ask_at_random(star, IB_VENDOR_OPENIB_PING_CLASS, 1, vendor_respond);
}
