/* SPDX-License-Identifier: BSD-2-Clause */

/* Prints labelled fields, whole attributes, and tables. */

#include "base/export.h"
#include "fields/field_table.h"
#include "fields/text.h"

/* Column of the values, after label, colon and dots. */
#define VALUE_COLUMN 33

static int value_size(const struct field *field)
{
	return (int)(field->info.bits + 7) / 8;
}

static void put_label(struct text *text, const char *label)
{
	static const char dots[] = "................................";
	size_t length = strlen(label);

	text_bytes(text, label, length);
	text_char(text, ':');
	if (length < VALUE_COLUMN)
		text_bytes(text, dots, VALUE_COLUMN - 1 - length);
}

/* The field's printer writes straight into the buffer. */
static void put_value(struct text *text, const struct field *field, void *val)
{
	if (!text_room(text))
		return;
	field->dump(text->at, (int)text_room(text) + 1, val, value_size(field));
	text->at += strlen(text->at);
}

EXPORT char *mad_dump_val(enum MAD_FIELDS id, char *buf, int bufsz, void *val)
{
	const struct field *field = find_field(id);

	if (!field)
		return NULL;
	field->dump(buf, bufsz, val, value_size(field));
	return buf;
}

EXPORT char *mad_dump_field(enum MAD_FIELDS id, char *buf, int bufsz, void *val)
{
	const struct field *field = find_field(id);
	struct text text;

	if (!field || bufsz < VALUE_COLUMN)
		return NULL;
	text = text_begin(buf, bufsz);
	put_label(&text, field->info.label);
	put_value(&text, field, val);
	text_end(&text);
	return buf;
}

EXPORT int mad_print_field(enum MAD_FIELDS id, const char *name, void *val)
{
	const struct field *field = find_field(id);
	char value[2048], heading[VALUE_COLUMN + 1];
	struct text text;

	if (!field)
		return -1;
	if (!name)
		name = field->info.label;
	field->dump(value, sizeof(value), val, value_size(field));
	if (strlen(name) >= VALUE_COLUMN)
		return printf("%s:%s\n", name, value);
	text = text_begin(heading, sizeof(heading));
	put_label(&text, name);
	text_end(&text);
	return printf("%s%s\n", heading, value);
}

/*
 * One line per field from first to last, inclusive. The last line may be truncated but still
 * ends with a newline; a line is omitted if its label does not fit.
 */
static void put_fields(struct text *text, uint8_t *data, unsigned first, unsigned last)
{
	uint64_t value[VALUE_SIZE_MAX / sizeof(uint64_t)];
	const struct field *field;
	unsigned id;

	for (id = first; id < last && text_room(text) >= VALUE_COLUMN; id++) {
		field = find_field((enum MAD_FIELDS)id);
		if (!field)
			continue;
		text->end--; /* there is room for the newline */
		put_label(text, field->info.label);
		mad_decode_field(data, (enum MAD_FIELDS)id, value);
		put_value(text, field, value);
		text->end++;
		text_char(text, '\n');
	}
}

EXPORT void mad_dump_fields(char *buf, int bufsz, void *val, int valsz, int start, int end)
{
	struct text text = text_begin(buf, bufsz);

	(void)valsz;
	if (start >= 0)
		put_fields(&text, val, (unsigned)start,
			   (unsigned)(end < 0               ? 0
				      : end < FIELD_NUMBERS ? end
							    : FIELD_NUMBERS));
	text_end(&text);
}

/* The fields from one constant up to, but excluding, another. */
struct run {
	enum MAD_FIELDS first, end;
};

static void dump_runs(char *buf, int bufsz, void *val, const struct run *runs, size_t count)
{
	struct text text = text_begin(buf, bufsz);
	size_t i;

	for (i = 0; i < count; i++)
		put_fields(&text, val, runs[i].first, runs[i].end);
	text_end(&text);
}

/* Defines a printer of mad.h from its runs of fields. */
#define ATTRIBUTE_PRINTER(name, ...)                                            \
	EXPORT void mad_dump_##name(char *buf, int bufsz, void *val, int valsz) \
	{                                                                       \
		static const struct run runs[] = {__VA_ARGS__};                 \
                                                                                \
		(void)valsz;                                                    \
		dump_runs(buf, bufsz, val, runs, sizeof(runs) / sizeof(*runs)); \
	}

/* Most performance attributes begin with PortSelect and CounterSelect. */
#define PC_SELECT                                              \
	{                                                      \
		IB_PC_EXT_PORT_SELECT_F, IB_PC_EXT_XMT_BYTES_F \
	}

ATTRIBUTE_PRINTER(nodeinfo, {IB_NODE_FIRST_F, IB_NODE_LAST_F})
ATTRIBUTE_PRINTER(portinfo, {IB_PORT_FIRST_F, IB_PORT_LAST_F},
		  {IB_PORT_CAPMASK2_F, IB_PORT_LINK_SPEED_EXT_LAST_F})
ATTRIBUTE_PRINTER(portstates, {IB_PORT_STATE_F, IB_PORT_LINK_DOWN_DEF_F})
ATTRIBUTE_PRINTER(switchinfo, {IB_SW_FIRST_F, IB_SW_LAST_F})
ATTRIBUTE_PRINTER(perfcounters, {IB_PC_FIRST_F, IB_PC_VL15_DROPPED_F},
		  {IB_PC_QP1_DROP_F, IB_PC_QP1_DROP_F + 1},
		  {IB_PC_VL15_DROPPED_F, IB_PC_LAST_F})
ATTRIBUTE_PRINTER(perfcounters_ext, {IB_PC_EXT_FIRST_F, IB_PC_EXT_LAST_F},
		  {IB_PC_EXT_COUNTER_SELECT2_F, IB_PC_EXT_ERR_LAST_F})
ATTRIBUTE_PRINTER(perfcounters_xmt_sl, PC_SELECT,
		  {IB_PC_XMT_DATA_SL_FIRST_F, IB_PC_XMT_DATA_SL_LAST_F})
ATTRIBUTE_PRINTER(perfcounters_rcv_sl, PC_SELECT,
		  {IB_PC_RCV_DATA_SL_FIRST_F, IB_PC_RCV_DATA_SL_LAST_F})
ATTRIBUTE_PRINTER(perfcounters_xmt_disc, PC_SELECT,
		  {IB_PC_XMT_INACT_DISC_F, IB_PC_XMT_DISC_LAST_F})
ATTRIBUTE_PRINTER(perfcounters_rcv_err, PC_SELECT,
		  {IB_PC_RCV_LOCAL_PHY_ERR_F, IB_PC_RCV_ERR_LAST_F})
ATTRIBUTE_PRINTER(portsamples_control, {IB_PSC_OPCODE_F, IB_PSC_LAST_F})
ATTRIBUTE_PRINTER(portsamples_result, {IB_PSR_TAG_F, IB_PSR_LAST_F})
ATTRIBUTE_PRINTER(port_ext_speeds_counters_rsfec_active,
		  {IB_PESC_RSFEC_FIRST_F, IB_PESC_RSFEC_LAST_F})
ATTRIBUTE_PRINTER(port_ext_speeds_counters, {IB_PESC_PORT_SELECT_F, IB_PESC_LAST_F})
ATTRIBUTE_PRINTER(perfcounters_port_op_rcv_counters, PC_SELECT,
		  {IB_PC_PORT_OP_RCV_COUNTERS_FIRST_F, IB_PC_PORT_OP_RCV_COUNTERS_LAST_F})
ATTRIBUTE_PRINTER(perfcounters_port_flow_ctl_counters, PC_SELECT,
		  {IB_PC_PORT_FLOW_CTL_COUNTERS_FIRST_F, IB_PC_PORT_FLOW_CTL_COUNTERS_LAST_F})
ATTRIBUTE_PRINTER(perfcounters_port_vl_op_packet, PC_SELECT,
		  {IB_PC_PORT_VL_OP_PACKETS_FIRST_F, IB_PC_PORT_VL_OP_PACKETS_LAST_F})
ATTRIBUTE_PRINTER(perfcounters_port_vl_op_data, PC_SELECT,
		  {IB_PC_PORT_VL_OP_DATA_FIRST_F, IB_PC_PORT_VL_OP_DATA_LAST_F})
ATTRIBUTE_PRINTER(perfcounters_port_vl_xmit_flow_ctl_update_errors, PC_SELECT,
		  {IB_PC_PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS_FIRST_F,
		   IB_PC_PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS_LAST_F})
ATTRIBUTE_PRINTER(perfcounters_port_vl_xmit_wait_counters, PC_SELECT,
		  {IB_PC_PORT_VL_XMIT_WAIT_COUNTERS_FIRST_F,
		   IB_PC_PORT_VL_XMIT_WAIT_COUNTERS_LAST_F})
ATTRIBUTE_PRINTER(perfcounters_sw_port_vl_congestion, PC_SELECT,
		  {IB_PC_SW_PORT_VL_CONGESTION_FIRST_F, IB_PC_SW_PORT_VL_CONGESTION_LAST_F})
ATTRIBUTE_PRINTER(perfcounters_rcv_con_ctrl, PC_SELECT,
		  {IB_PC_RCV_CON_CTRL_FIRST_F, IB_PC_RCV_CON_CTRL_LAST_F})
ATTRIBUTE_PRINTER(perfcounters_sl_rcv_fecn, PC_SELECT,
		  {IB_PC_SL_RCV_FECN_FIRST_F, IB_PC_SL_RCV_FECN_LAST_F})
ATTRIBUTE_PRINTER(perfcounters_sl_rcv_becn, PC_SELECT,
		  {IB_PC_SL_RCV_BECN_FIRST_F, IB_PC_SL_RCV_BECN_LAST_F})
ATTRIBUTE_PRINTER(perfcounters_xmit_con_ctrl, PC_SELECT,
		  {IB_PC_XMIT_CON_CTRL_FIRST_F, IB_PC_XMIT_CON_CTRL_LAST_F})
ATTRIBUTE_PRINTER(perfcounters_vl_xmit_time_cong, PC_SELECT,
		  {IB_PC_VL_XMIT_TIME_CONG_FIRST_F, IB_PC_VL_XMIT_TIME_CONG_LAST_F})
ATTRIBUTE_PRINTER(mlnx_ext_port_info,
		  {IB_MLNX_EXT_PORT_STATE_CHG_ENABLE_F, IB_MLNX_EXT_PORT_LAST_F})
ATTRIBUTE_PRINTER(cc_congestioninfo,
		  {IB_CC_CONGESTION_INFO_FIRST_F, IB_CC_CONGESTION_INFO_LAST_F})
ATTRIBUTE_PRINTER(cc_congestionkeyinfo,
		  {IB_CC_CONGESTION_KEY_INFO_FIRST_F, IB_CC_CONGESTION_KEY_INFO_LAST_F})
ATTRIBUTE_PRINTER(cc_congestionlog, {IB_CC_CONGESTION_LOG_FIRST_F, IB_CC_CONGESTION_LOG_LAST_F})
ATTRIBUTE_PRINTER(cc_congestionlogswitch,
		  {IB_CC_CONGESTION_LOG_SWITCH_FIRST_F, IB_CC_CONGESTION_LOG_SWITCH_LAST_F})
ATTRIBUTE_PRINTER(cc_congestionlogentryswitch, {IB_CC_CONGESTION_LOG_ENTRY_SWITCH_FIRST_F,
						IB_CC_CONGESTION_LOG_ENTRY_SWITCH_LAST_F})
ATTRIBUTE_PRINTER(cc_congestionlogca,
		  {IB_CC_CONGESTION_LOG_CA_FIRST_F, IB_CC_CONGESTION_LOG_CA_LAST_F})
ATTRIBUTE_PRINTER(cc_congestionlogentryca,
		  {IB_CC_CONGESTION_LOG_ENTRY_CA_FIRST_F, IB_CC_CONGESTION_LOG_ENTRY_CA_LAST_F})
ATTRIBUTE_PRINTER(cc_switchcongestionsetting, {IB_CC_SWITCH_CONGESTION_SETTING_FIRST_F,
					       IB_CC_SWITCH_CONGESTION_SETTING_LAST_F})
ATTRIBUTE_PRINTER(cc_switchportcongestionsettingelement,
		  {IB_CC_SWITCH_PORT_CONGESTION_SETTING_ELEMENT_FIRST_F,
		   IB_CC_SWITCH_PORT_CONGESTION_SETTING_ELEMENT_LAST_F})
ATTRIBUTE_PRINTER(cc_cacongestionsetting,
		  {IB_CC_CA_CONGESTION_SETTING_FIRST_F, IB_CC_CA_CONGESTION_SETTING_LAST_F})
ATTRIBUTE_PRINTER(cc_cacongestionentry,
		  {IB_CC_CA_CONGESTION_ENTRY_FIRST_F, IB_CC_CA_CONGESTION_ENTRY_LAST_F})
ATTRIBUTE_PRINTER(cc_congestioncontroltable, {IB_CC_CONGESTION_CONTROL_TABLE_FIRST_F,
					      IB_CC_CONGESTION_CONTROL_TABLE_LAST_F})
ATTRIBUTE_PRINTER(cc_congestioncontroltableentry, {IB_CC_CONGESTION_CONTROL_TABLE_ENTRY_FIRST_F,
						   IB_CC_CONGESTION_CONTROL_TABLE_ENTRY_LAST_F})
ATTRIBUTE_PRINTER(cc_timestamp, {IB_CC_TIMESTAMP_FIRST_F, IB_CC_TIMESTAMP_LAST_F})
ATTRIBUTE_PRINTER(classportinfo, {IB_CPI_BASEVER_F, IB_CPI_TRAP_QKEY_F + 1})
ATTRIBUTE_PRINTER(portinfo_ext, {IB_PORT_EXT_FIRST_F, IB_PORT_EXT_LAST_F},
		  {IB_PORT_EXT_HDR_FEC_MODE_SUPPORTED_F, IB_PORT_EXT_HDR_FEC_MODE_LAST_F},
		  {IB_PORT_EXT_NDR_FEC_MODE_SUPPORTED_F, IB_PORT_EXT_NDR_FEC_MODE_LAST_F})

/* --- tables --------------------------------------------------------------------- */

/* SLtoVLMappingTable (IBA 14.2.5.8): 16 VLs of 4 bits. */
EXPORT void mad_dump_sltovl(char *buf, int bufsz, void *val, int valsz)
{
	struct text text = text_begin(buf, bufsz);
	const uint8_t *bytes = val;
	int sl;

	(void)valsz;
	for (sl = 0; sl < 16; sl++) {
		unsigned vl = sl % 2 ? bytes[sl / 2] & 0xf : bytes[sl / 2] >> 4;

		text_char(&text, '|');
		if (vl < 10)
			text_char(&text, ' ');
		text_uint(&text, vl);
	}
	text_string(&text, "|\n");
	text_end(&text);
}

/* Two hex digits at most, upper-case, left-aligned. */
static void put_column(struct text *text, uint8_t value)
{
	static const char digits[] = "0123456789ABCDEF";

	text_string(text, "0x");
	if (value >= 0x10)
		text_char(text, digits[value >> 4]);
	text_char(text, digits[value & 0xf]);
	if (value < 0x10)
		text_char(text, ' ');
	text_char(text, '|');
}

/* VLArbitrationTable (IBA 14.2.5.9): entries of VL and weight. */
EXPORT void mad_dump_vlarbitration(char *buf, int bufsz, void *val, int valsz)
{
	struct text text = text_begin(buf, bufsz);
	const uint8_t(*entry)[2] = val;
	int i, count = valsz / 2;

	text_string(&text, "\nVL    : |");
	for (i = 0; i < count && text_room(&text); i++)
		put_column(&text, entry[i][0] & 0xf);
	text_string(&text, "\nWEIGHT: |");
	for (i = 0; i < count && text_room(&text); i++)
		put_column(&text, entry[i][1]);
	text_char(&text, '\n');
	text_end(&text);
}
