/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Which response completes a request. The device sends a response that differs from what the
 * request asks for, and then the right one: the data tells which of them was taken.
 */

#include "engine_fixture.h"
#include "fake.h"
#include "mad/layout.h"
#include "test.h"

#define FIRST  0x11
#define SECOND 0x22
#define HOPS   3

/* What a row changes in the first response. */
enum changed {
	METHOD,
	ATTRIBUTE,
	MODIFIER,
	OUI,
	HOP_COUNT,
	PATH,
	LID,
	GID,
	PREFIX,       /* asked with the default prefix */
	OTHER_PREFIX, /* asked with another one */
	NO_GRH
};

struct row {
	const char *behaviour;
	int mgmt_class, method;
	enum changed changed;
	unsigned value;
	bool accepted; /* the first response completes the request */
};

#define VENDOR_1 0x0a
#define VENDOR_2 0x33

static const struct row rows[] = {
	{"a Get is answered by GetResp", IB_SMI_CLASS, 0x01, METHOD, 0x81, true},
	{"a Get is not answered by another response", IB_SMI_CLASS, 0x01, METHOD, 0x92, false},
	{"a Set is answered by GetResp", IB_PERFORMANCE_CLASS, 0x02, METHOD, 0x81, true},
	{"a Set may be answered with the response bit", IB_SMI_CLASS, 0x02, METHOD, 0x82, true},
	{"a Set is not answered by a table", IB_SMI_CLASS, 0x02, METHOD, 0x92, false},
	{"a GetTable is answered by its response", IB_SA_CLASS, 0x12, METHOD, 0x92, true},
	{"a GetTable is not answered by GetResp", IB_SA_CLASS, 0x12, METHOD, 0x81, false},
	{"a GetTraceTable is answered by a table", IB_SA_CLASS, 0x13, METHOD, 0x92, true},
	{"a GetTraceTable may have its own response", IB_SA_CLASS, 0x13, METHOD, 0x93, true},
	{"a GetMulti is answered by its response", IB_SA_CLASS, 0x14, METHOD, 0x94, true},
	{"a GetMulti is answered by PathRecords", IB_SA_CLASS, 0x14, ATTRIBUTE, 0x35, true},
	{"a GetMulti is not answered by other records", IB_SA_CLASS, 0x14, ATTRIBUTE, 0x33,
	 false},
	{"a GetTraceTable is answered by TraceRecords", IB_SA_CLASS, 0x13, ATTRIBUTE, 0x39,
	 true},
	{"a Delete is answered by its response", IB_SA_CLASS, 0x15, METHOD, 0x95, true},
	{"a Trap is answered by TrapRepress", IB_SMI_CLASS, 0x05, METHOD, 0x07, true},
	{"a Get is not answered by TrapRepress", IB_SMI_CLASS, 0x01, METHOD, 0x07, false},
	{"a vendor's methods are its own", VENDOR_1, 0x20, METHOD, 0xd1, true},

	{"an SMP of another attribute is no answer", IB_SMI_CLASS, 0x01, ATTRIBUTE, 0x15,
	 false},
	{"a GMP of another attribute is no answer", IB_PERFORMANCE_CLASS, 0x01, ATTRIBUTE, 0x15,
	 false},
	{"a record of another attribute is no answer", IB_SA_CLASS, 0x12, ATTRIBUTE, 0x35,
	 false},
	{"a vendor's other attribute is no answer", VENDOR_1, 0x01, ATTRIBUTE, 0x15, false},

	{"another modifier is no answer", IB_SMI_CLASS, 0x01, MODIFIER, 7, false},
	{"a difference in the highest bits is no answer", IB_SMI_CLASS, 0x01, MODIFIER,
	 0x80000005, false},
	{"a vendor may change the modifier", VENDOR_1, 0x01, MODIFIER, 7, true},
	{"an application may change the modifier", 0x10, 0x01, MODIFIER, 7, true},
	{"a BMMAD has its response bit in the modifier", IB_BOARD_MGMT_CLASS, 0x03, MODIFIER, 5,
	 true},
	{"a BMMAD of another modifier is no answer", IB_BOARD_MGMT_CLASS, 0x03, MODIFIER, 7,
	 false},

	{"another OUI is no answer", VENDOR_2, 0x01, OUI, 0x123457, false},
	{"the OUI is an answer", VENDOR_2, 0x01, OUI, 0x123456, true},

	{"a route with another port is no answer", IB_SMI_DIRECT_CLASS, 0x01, PATH, 9, false},
	{"a shorter route is no answer", IB_SMI_DIRECT_CLASS, 0x01, HOP_COUNT, HOPS - 1, false},
	{"a longer route is no answer", IB_SMI_DIRECT_CLASS, 0x01, HOP_COUNT, HOPS + 1, false},
	{"a directed route has no LID", IB_SMI_DIRECT_CLASS, 0x01, LID, 77, true},

	/* the fabric of the fake machine has LMC 1 */
	{"an SMP of another LID is no answer", IB_SMI_CLASS, 0x01, LID, 6, false},
	{"a GMP of another LID is no answer", IB_PERFORMANCE_CLASS, 0x01, LID, 3, false},
	{"a GMP of a LID far away is no answer", IB_PERFORMANCE_CLASS, 0x01, LID, 4000, false},
	{"a port may answer from its other LID", IB_PERFORMANCE_CLASS, 0x01, LID, 5, true},

	{"with a GRH, the GID counts, not the LID", IB_SA_CLASS, 0x01, GID, 0, true},
	{"another GID is no answer", IB_SA_CLASS, 0x01, GID, 1, false},
	{"a port may answer with the prefix of its subnet", IB_SA_CLASS, 0x01, PREFIX, 0x12,
	 true},
	{"a GID of another subnet is no answer", IB_SA_CLASS, 0x01, OTHER_PREFIX, 0x12, false},
	{"without a GRH in the response, the LID counts", IB_SA_CLASS, 0x01, NO_GRH, 4, true},
	{"another LID without a GRH is no answer", IB_SA_CLASS, 0x01, NO_GRH, 6, false},
};

FIXTURE(port_setup, port_teardown);

static const struct row *row;

/* Where the data begins, of which the first byte is the mark. */
static int data_offset(int mgmt_class)
{
	if (mgmt_class == IB_SA_CLASS)
		return IB_SA_DATA_OFFS;
	return mgmt_class == VENDOR_2 ? IB_VENDOR_RANGE2_DATA_OFFS : IB_SMP_DATA_OFFS;
}

static uint8_t method_of_response(void)
{
	switch (row->method) {
	case IB_MAD_METHOD_SET:
		return IB_MAD_METHOD_GET_RESPONSE;
	case IB_MAD_METHOD_TRAP:
		return IB_MAD_METHOD_TRAP_REPRESS;
	default:
		return (uint8_t)(row->method | IB_MAD_RESPONSE);
	}
}

static void change(struct ib_user_mad *header, uint8_t *mad)
{
	switch (row->changed) {
	case METHOD:
		mad[3] = (uint8_t)row->value;
		break;
	case ATTRIBUTE:
		put16(mad, ATTRIBUTE_OFFS, (uint16_t)row->value);
		break;
	case MODIFIER:
		put32(mad, MODIFIER_OFFS, row->value);
		break;
	case OUI:
		put32(mad, 36, row->value);
		break;
	case HOP_COUNT:
		mad[HOP_COUNT_OFFS] = (uint8_t)row->value;
		break;
	case PATH:
		mad[INITIAL_PATH_OFFS + HOPS] = (uint8_t)row->value;
		break;
	case GID:
		header->addr.lid = htobe16(77);
		header->addr.gid[15] ^= (uint8_t)row->value;
		break;
	case PREFIX:
	case OTHER_PREFIX:
		header->addr.lid = htobe16(77);
		header->addr.gid[0] = (uint8_t)row->value;
		break;
	case NO_GRH:
		header->addr.grh_present = 0;
		/* fall through */
	case LID:
		header->addr.lid = htobe16((uint16_t)row->value);
		break;
	}
}

static int answer_twice(const struct device_packet *packet, void *arg)
{
	struct ib_user_mad header = packet->header;
	uint8_t mad[IB_MAD_SIZE];

	(void)arg;
	header.length = 0;
	device_copy_mad(packet, mad);
	mad[3] = method_of_response();
	mad[data_offset(row->mgmt_class)] = FIRST;
	change(&header, mad);
	device_queue(packet->fd, &header, mad, sizeof(mad));
	device_copy_mad(packet, mad);
	mad[3] = method_of_response();
	mad[data_offset(row->mgmt_class)] = SECOND;
	device_reply(packet, mad, sizeof(mad));
	return 0;
}

static ib_portid_t destination(void)
{
	ib_portid_t to = to_lid(4);

	to.grh_present = row->changed >= GID;
	to.gid[0] = row->changed == OTHER_PREFIX ? 0x20 : 0xfe;
	to.gid[1] = row->changed == OTHER_PREFIX ? 0x01 : 0x80;
	to.gid[15] = 0x40;
	if (row->mgmt_class == IB_SMI_DIRECT_CLASS)
		to = (ib_portid_t){.drpath = {.cnt = HOPS, .p = {0, 1, 2, 3}}};
	return to;
}

static void take_the_right_one(const void *arg)
{
	struct mad_async *async = mad_async_create(port);
	struct mad_async_stats stats;
	uint8_t data[IB_MAD_SIZE] = {0};
	ib_portid_t to;
	ib_rpc_t rpc;

	row = arg;
	to = destination();
	rpc = (ib_rpc_t){.mgtclass = row->mgmt_class,
			 .method = row->method,
			 .attr = {.id = 0x11, .mod = 4},
			 .dataoffs = data_offset(row->mgmt_class),
			 .datasz = 1,
			 .oui = 0x123456};
	mad_register_client_via(row->mgmt_class, 0, port);
	device_on_write(answer_twice, NULL);
	assert_non_null(mad_rpc(port, &rpc, &to, NULL, data));
	assert_int_equal(data[0], row->accepted ? FIRST : SECOND);
	assert_int_equal(mad_async_get_stats(async, &stats, sizeof(stats)), 0);
	assert_int_equal(stats.mismatched, !row->accepted);
	mad_async_free(async);
}

TEST_ROWS(take_the_right_one, rows);

/* What cannot be compared drops no response. */
TEST(a_port_may_answer_from_its_other_lid_when_the_lmc_cannot_be_read)
{
	static const struct row other_lid = {NULL, IB_PERFORMANCE_CLASS, 0x01, LID, 5, true};

	fake_remove("/sys/class/infiniband/mlx5_0/ports/1/lid_mask_count");
	take_the_right_one(&other_lid);
}
