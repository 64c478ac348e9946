/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The baseboard management agent (IBA 16.2): the B_Key, and a module whose VPD can be read and
 * written. A command to the module has parameters and gets a response; both are sent with the
 * method Send. Clients that match responses by TID use Set or Get instead.
 */
#include "gmp_agents.h"

#define BM_VERSION 1
#define DATA       IB_BM_DATA_OFFS
#define RESPONSE   1 /* AttributeModifier of a Send that is a response */

/* A command: BM_Sequence, BM_SourceDevice, BM_ParmCount, BM_ParmData. */
enum {
	PARM_COUNT_AT = DATA + 3,
	PARMS_AT = DATA + 4,
	PARMS_SIZE = MAD_BYTES - PARMS_AT
};

/* Parameters of WriteVPD and ReadVPD; in a response, the status precedes them. */
enum {
	VPD_DEVICE,
	VPD_COUNT,
	VPD_OFFSET,
	VPD_DATA = 4
};
enum {
	RESULT_STATUS,
	RESULT_COUNT,
	RESULT_DATA
};

enum {
	RESULT_OK = 0,
	RESULT_NO_DEVICE = 1,
	RESULT_BAD_RANGE = 2,
	RESULT_UNSUPPORTED = 3,
	RESULT_FAILED = 4
};

#define VPD_SIZE 256
#define VPD_MOST (PARMS_SIZE - VPD_DATA) /* bytes in one command */

static struct gmp_place vpd_place(const struct query *query)
{
	return (struct gmp_place){.node = query->node,
				  .class = IB_BOARD_MGMT_CLASS,
				  .attribute = IB_BM_ATTR_WRITE_VPD};
}

/* By default, the VPD has the board's GUID and name. */
static void load_vpd(const struct query *query, uint8_t vpd[VPD_SIZE])
{
	const struct graph_node *node = hardware(query->fabric, query->node);
	struct gmp_place place = vpd_place(query);

	if (gmp_recall(query->fabric, &place, vpd, VPD_SIZE))
		return;
	memset(vpd, 0, VPD_SIZE);
	put64(vpd, node->guid);
	memcpy(vpd + 8, node->name, strnlen(node->name, MAX_NAME));
}

static void result(struct query *query, unsigned int status, unsigned int count)
{
	uint8_t *parms = query->mad + PARMS_AT;

	if (status != RESULT_OK)
		count = 0;
	memset(parms + RESULT_DATA + count, 0, PARMS_SIZE - RESULT_DATA - count);
	parms[RESULT_STATUS] = (uint8_t)status;
	parms[RESULT_COUNT] = (uint8_t)count;
	query->mad[PARM_COUNT_AT] = (uint8_t)(RESULT_DATA + count);
}

/* Reads the range of a VPD command. False if the range does not exist; the response then says
 * so. */
static bool vpd_range(struct query *query, unsigned int *offset, unsigned int *count)
{
	const uint8_t *parms = query->mad + PARMS_AT;

	*count = parms[VPD_COUNT];
	*offset = get16(parms + VPD_OFFSET);
	if (parms[VPD_DEVICE] != 0) {
		result(query, RESULT_NO_DEVICE, 0);
		return false;
	}
	if (*count > VPD_MOST || *offset + *count > VPD_SIZE) {
		result(query, RESULT_BAD_RANGE, 0);
		return false;
	}
	return true;
}

static void read_vpd(struct query *query)
{
	uint8_t vpd[VPD_SIZE];
	unsigned int offset, count;

	if (!vpd_range(query, &offset, &count))
		return;
	load_vpd(query, vpd);
	memcpy(query->mad + PARMS_AT + RESULT_DATA, vpd + offset, count);
	result(query, RESULT_OK, count);
}

static void write_vpd(struct query *query)
{
	struct gmp_place place = vpd_place(query);
	uint8_t vpd[VPD_SIZE];
	unsigned int offset, count;

	if (!vpd_range(query, &offset, &count))
		return;
	load_vpd(query, vpd);
	memcpy(vpd + offset, query->mad + PARMS_AT + VPD_DATA, count);
	result(query,
	       gmp_keep(query->fabric, &place, vpd, VPD_SIZE) ? RESULT_FAILED : RESULT_OK, 0);
}

static void command(struct query *query, unsigned int attribute)
{
	if (attribute == IB_BM_ATTR_READ_VPD)
		read_vpd(query);
	else if (attribute == IB_BM_ATTR_WRITE_VPD)
		write_vpd(query);
	else
		result(query, RESULT_UNSUPPORTED, 0);
}

static bool is_command(unsigned int attribute)
{
	return attribute >= IB_BM_ATTR_WRITE_VPD && attribute < IB_BM_ATTR_LAST;
}

/* The response to a Send is another Send, to which nobody responds. */
static bool respond_to_send(struct query *query, unsigned int attribute)
{
	if (!is_command(attribute))
		return false;
	command(query, attribute);
	put16(query->mad + 4, STATUS_OK);
	put32(query->mad + 20, mad_modifier(query->mad) | RESPONSE);
	return true;
}

static unsigned int key_info(struct query *query, bool set)
{
	uint8_t *data = query->mad + DATA;

	if (set) {
		/* the response has the values just set, whatever key the request had */
		key_write(query, IB_BM_ATTR_BKEYINFO, data);
		memset(data + KEY_INFO_SIZE, 0, (size_t)(MAD_BYTES - DATA - KEY_INFO_SIZE));
		return STATUS_OK;
	}
	memset(data, 0, IB_BM_DATA_SZ);
	key_read(query, IB_BM_ATTR_BKEYINFO, data);
	return STATUS_OK;
}

bool baseboard_respond(struct query *query)
{
	static const struct class_info class_info = {.version = BM_VERSION};
	unsigned int method = mad_method(query->mad);
	unsigned int attribute = mad_attribute(query->mad);

	if (mad_is_response(query->mad) ||
	    (method == METHOD_SEND && mad_modifier(query->mad) & RESPONSE))
		return false;
	if (query->mad[0] != 1 || mad_version(query->mad) != BM_VERSION) {
		respond(query->mad, STATUS_BAD_VERSION);
		return true;
	}
	if (method != METHOD_GET && method != METHOD_SET && method != METHOD_SEND) {
		respond(query->mad, STATUS_BAD_METHOD);
		return true;
	}
	/* a command of any method may change something */
	if ((method != METHOD_GET || is_command(attribute)) &&
	    !key_admits(query, IB_BM_ATTR_BKEYINFO))
		return false;
	if (method == METHOD_SEND)
		return respond_to_send(query, attribute);
	if (attribute == CLASS_PORT_INFO) {
		class_port_info(query, &class_info, DATA);
	} else if (attribute == IB_BM_ATTR_BKEYINFO) {
		respond(query->mad, key_info(query, method == METHOD_SET));
	} else if (is_command(attribute)) {
		command(query, attribute);
		respond(query->mad, STATUS_OK);
	} else {
		respond(query->mad, STATUS_BAD_ATTRIBUTE);
	}
	return true;
}
