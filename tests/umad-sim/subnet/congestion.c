/* SPDX-License-Identifier: BSD-2-Clause */

/* The congestion control agent (IBA A10.4). It marks no packets, it only stores what a
 * congestion manager sets. */
#include "gmp_agents.h"

#define CC_VERSION        2
#define DATA              IB_CC_DATA_OFFS
#define LOG_DATA          IB_CC_LOG_DATA_OFFS
#define TIMESTAMP_TICK    1024 /* nanoseconds */
#define TABLE_BLOCKS      2    /* of a CA's table: ControlTableCap */
#define PORT_BLOCKS       8    /* of 32 ports each: up to 255 ports */
#define LOG_OF_SWITCH     1    /* CongestionLog: LogType */
#define LOG_OF_CA         2
#define CREDIT_STARVATION 1 /* CongestionInfo: what a switch supports */

/* The attributes that can be set, with their number of blocks (by attribute modifier). */
static const struct setting {
	uint16_t attribute;
	bool of_switch;
	uint8_t blocks;
} settings[] = {
	{IB_CC_ATTR_SWITCH_CONGESTION_SETTING, true, 1},
	{IB_CC_ATTR_SWITCH_PORT_CONGESTION_SETTING, true, PORT_BLOCKS},
	{IB_CC_ATTR_CA_CONGESTION_SETTING, false, 1},
	{IB_CC_ATTR_CONGESTION_CONTROL_TABLE, false, TABLE_BLOCKS},
};

static bool is_switch(const struct query *query)
{
	return hardware(query->fabric, query->node)->type == NODE_SWITCH;
}

static void clear_from(struct query *query, int offset)
{
	memset(query->mad + offset, 0, (size_t)(MAD_BYTES - offset));
}

static uint32_t timestamp(const struct query *query)
{
	return (uint32_t)(query->fabric->now / TIMESTAMP_TICK);
}

static void info(struct query *query)
{
	uint8_t *mad = query->mad;

	clear_from(query, DATA);
	if (is_switch(query))
		mad_set_field(mad, DATA, IB_CC_CONGESTION_INFO_F, CREDIT_STARVATION);
	else
		mad_set_field(mad, DATA, IB_CC_CONGESTION_INFO_CONTROL_TABLE_CAP_F,
			      TABLE_BLOCKS);
}

/* There is no congestion, so the log is empty. */
static void congestion_log(struct query *query)
{
	uint8_t *mad = query->mad;
	bool of_switch = is_switch(query);

	clear_from(query, LOG_DATA);
	mad_set_field(mad, LOG_DATA, IB_CC_CONGESTION_LOG_LOGTYPE_F,
		      of_switch ? LOG_OF_SWITCH : LOG_OF_CA);
	mad_set_field(mad, LOG_DATA,
		      of_switch ? IB_CC_CONGESTION_LOG_SWITCH_CURRENT_TIME_STAMP_F
				: IB_CC_CONGESTION_LOG_CA_CURRENT_TIMESTAMP_F,
		      timestamp(query));
}

static void time_stamp(struct query *query)
{
	clear_from(query, DATA);
	mad_set_field(query->mad, DATA, IB_CC_TIMESTAMP_F, timestamp(query));
}

static void key_info(struct query *query, bool set)
{
	uint8_t *data = query->mad + DATA;

	if (set) {
		/* the response has the values just set, whatever key the request had */
		key_write(query, IB_CC_ATTR_CONGESTION_KEY_INFO, data);
		memset(data + KEY_INFO_SIZE, 0, (size_t)(MAD_BYTES - DATA - KEY_INFO_SIZE));
		return;
	}
	clear_from(query, DATA);
	key_read(query, IB_CC_ATTR_CONGESTION_KEY_INFO, data);
}

static unsigned int keep_setting(struct query *query, unsigned int attribute, bool set)
{
	struct gmp_place place = {.node = query->node,
				  .class = IB_CC_CLASS,
				  .attribute = (uint16_t)attribute,
				  .modifier = mad_modifier(query->mad)};
	const struct setting *setting = NULL;

	for (unsigned int i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if (settings[i].attribute == attribute)
			setting = &settings[i];
	if (!setting || setting->of_switch != is_switch(query))
		return STATUS_BAD_ATTRIBUTE;
	if (place.modifier >= setting->blocks)
		return STATUS_BAD_VALUE;
	if (set && gmp_keep(query->fabric, &place, query->mad + DATA, IB_CC_DATA_SZ))
		return STATUS_BUSY;
	if (!gmp_recall(query->fabric, &place, query->mad + DATA, IB_CC_DATA_SZ))
		clear_from(query, DATA);
	return STATUS_OK;
}

static unsigned int respond_to_get(struct query *query, unsigned int attribute)
{
	switch (attribute) {
	case IB_CC_ATTR_CONGESTION_INFO:
		info(query);
		return STATUS_OK;
	case IB_CC_ATTR_CONGESTION_KEY_INFO:
		key_info(query, false);
		return STATUS_OK;
	case IB_CC_ATTR_CONGESTION_LOG:
		congestion_log(query);
		return STATUS_OK;
	case IB_CC_ATTR_TIMESTAMP:
		time_stamp(query);
		return STATUS_OK;
	default:
		return keep_setting(query, attribute, false);
	}
}

static unsigned int respond_to_set(struct query *query, unsigned int attribute)
{
	if (attribute == IB_CC_ATTR_CONGESTION_KEY_INFO) {
		key_info(query, true);
		return STATUS_OK;
	}
	return keep_setting(query, attribute, true);
}

bool congestion_respond(struct query *query)
{
	static const struct class_info class_info = {.version = CC_VERSION};
	unsigned int method = mad_method(query->mad);
	unsigned int attribute = mad_attribute(query->mad);

	if (mad_is_response(query->mad))
		return false;
	if (query->mad[0] != 1 || mad_version(query->mad) != CC_VERSION) {
		respond(query->mad, STATUS_BAD_VERSION);
		return true;
	}
	if (method != METHOD_GET && method != METHOD_SET) {
		respond(query->mad, STATUS_BAD_METHOD);
		return true;
	}
	if (method == METHOD_SET && !key_admits(query, IB_CC_ATTR_CONGESTION_KEY_INFO))
		return false;
	if (attribute == CLASS_PORT_INFO)
		class_port_info(query, &class_info, DATA);
	else
		respond(query->mad, method == METHOD_SET ? respond_to_set(query, attribute)
							 : respond_to_get(query, attribute));
	return true;
}
