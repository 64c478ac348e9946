/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Prints one value, in host order: uint32_t for up to 4 bytes, uint64_t for up to 8. Programs
 * parse these texts: don't change them.
 */

#include "base/export.h"
#include "base/report.h"
#include "fields/text.h"

#include <infiniband/mad.h>
#include <stdbool.h>

/* --- numbers -------------------------------------------------------------------- */

static uint32_t value32(const void *val)
{
	uint32_t value;

	memcpy(&value, val, sizeof(value));
	return value;
}

/*
 * Values of less than 4 bytes are in the lower bytes; those of 5 to 7 bytes are a whole
 * uint64_t.
 */
static uint64_t value64(const void *val, int valsz)
{
	uint64_t value;

	if (valsz <= 4)
		return value32(val);
	memcpy(&value, val, sizeof(value));
	return value;
}

static uint64_t lower_bytes(uint64_t value, int count)
{
	return count < 8 ? value & ((UINT64_C(1) << 8 * count) - 1) : value;
}

static bool is_number_size(const char *call, int valsz)
{
	if (valsz >= 1 && valsz <= 8)
		return true;
	report(call, "a number cannot have %d bytes", valsz);
	return false;
}

static void put_uint_value(struct text *text, const void *val, int valsz)
{
	text_uint(text, valsz < 3 ? lower_bytes(value32(val), valsz) : value64(val, valsz));
}

EXPORT void mad_dump_int(char *buf, int bufsz, void *val, int valsz)
{
	struct text text = text_begin(buf, bufsz);

	if (valsz == 3 || valsz == 4)
		text_int(&text, (int32_t)value32(val));
	else if (is_number_size("mad_dump_int", valsz))
		put_uint_value(&text, val, valsz);
	text_end(&text);
}

EXPORT void mad_dump_uint(char *buf, int bufsz, void *val, int valsz)
{
	struct text text = text_begin(buf, bufsz);

	if (is_number_size("mad_dump_uint", valsz))
		put_uint_value(&text, val, valsz);
	text_end(&text);
}

static void put_hex_value(struct text *text, void *val, int valsz)
{
	text_hex(text, lower_bytes(value64(val, valsz), valsz), 2 * valsz);
}

EXPORT void mad_dump_hex(char *buf, int bufsz, void *val, int valsz)
{
	struct text text = text_begin(buf, bufsz);

	if (is_number_size("mad_dump_hex", valsz)) {
		text_string(&text, "0x");
		put_hex_value(&text, val, valsz);
	}
	text_end(&text);
}

EXPORT void mad_dump_rhex(char *buf, int bufsz, void *val, int valsz)
{
	struct text text = text_begin(buf, bufsz);

	if (is_number_size("mad_dump_rhex", valsz))
		put_hex_value(&text, val, valsz);
	text_end(&text);
}

static void put_plain_hex(struct text *text, uint32_t value)
{
	text_string(text, "0x");
	text_hex(text, value, 1);
}

EXPORT void mad_dump_bitfield(char *buf, int bufsz, void *val, int valsz)
{
	struct text text = text_begin(buf, bufsz);

	(void)valsz;
	put_plain_hex(&text, value32(val));
	text_end(&text);
}

/* --- bytes ---------------------------------------------------------------------- */

EXPORT void mad_dump_array(char *buf, int bufsz, void *val, int valsz)
{
	struct text text = text_begin(buf, bufsz);
	const uint8_t *bytes = val;
	int i;

	for (i = 0; i < valsz && text_room(&text); i++)
		text_hex(&text, bytes[i], 2);
	text_end(&text);
}

/* Prints the quoted text, one character shorter than the field. */
EXPORT void mad_dump_string(char *buf, int bufsz, void *val, int valsz)
{
	int room = valsz < 1 ? 1 : valsz;
	struct text text = text_begin(buf, room < bufsz ? room : bufsz);

	text_char(&text, '\'');
	if (valsz > 0)
		text_bytes(&text, val, strnlen(val, (size_t)valsz));
	text_char(&text, '\'');
	text_end(&text);
}

EXPORT void mad_dump_nodedesc(char *buf, int bufsz, void *val, int valsz)
{
	struct text text = text_begin(buf, bufsz);

	if (valsz > 0)
		text_bytes(&text, val, strnlen(val, (size_t)valsz));
	text_end(&text);
}

/* --- numbers that have names ---------------------------------------------------- */

/* Prints a value's name, or prefix, number and suffix if it has none. */
static void dump_named(char *buf, int bufsz, void *val, const char *const *names,
		       unsigned count, const char *prefix, const char *suffix)
{
	struct text text = text_begin(buf, bufsz);
	uint32_t value = value32(val);

	if (value < count && names[value]) {
		text_string(&text, names[value]);
	} else {
		text_string(&text, prefix);
		text_int(&text, (int32_t)value);
		text_string(&text, suffix);
	}
	text_end(&text);
}

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* Defines mad_dump_<printer>() for a value with names. */
#define NAMED_VALUE_PRINTER(printer, prefix, suffix, ...)                          \
	EXPORT void mad_dump_##printer(char *buf, int bufsz, void *val, int valsz) \
	{                                                                          \
		static const char *const names[] = {__VA_ARGS__};                  \
                                                                                   \
		(void)valsz;                                                       \
		dump_named(buf, bufsz, val, names, COUNT(names), prefix, suffix);  \
	}

NAMED_VALUE_PRINTER(linkwidth, "undefined (",
		    ")", [1] = "1X", [2] = "4X", [4] = "8X", [8] = "12X", [16] = "2X")
NAMED_VALUE_PRINTER(
	linkspeed, "undefined (",
	")", [0] = "Extended speed", [1] = "2.5 Gbps", [2] = "5.0 Gbps", [4] = "10.0 Gbps")
NAMED_VALUE_PRINTER(linkspeedext, "undefined (",
		    ")", [0] = "No Extended Speed", [1] = "14.0625 Gbps", [2] = "25.78125 Gbps",
		    [4] = "53.125 Gbps", [8] = "106.25 Gbps")
NAMED_VALUE_PRINTER(linkspeedext2, "undefined (", ")", "No Extended Speed 2", "212.5 Gbps")
NAMED_VALUE_PRINTER(linkspeedextsup2, " undefined (", ")", "0", "212.5 Gbps")
NAMED_VALUE_PRINTER(linkspeedexten2, " undefined (", ")", "0", "212.5 Gbps")
NAMED_VALUE_PRINTER(portstate, "?(", ")", "NoChange", "Down", "Initialize", "Armed", "Active")
NAMED_VALUE_PRINTER(linkdowndefstate, "?(", ")", "NoChange", "Sleep", "Polling")
NAMED_VALUE_PRINTER(physportstate, "?(", ")", "NoChange", "Sleep", "Polling", "Disabled",
		    "PortConfigurationTraining", "LinkUp", "LinkErrorRecovery", "PhyTest")
NAMED_VALUE_PRINTER(mtu, "?(", ")", NULL, "256", "512", "1024", "2048", "4096")
NAMED_VALUE_PRINTER(vlcap, "?(", ")", NULL, "VL0", "VL0-1", "VL0-3", "VL0-7", "VL0-14")
NAMED_VALUE_PRINTER(opervls, "?(", ")", "No change", "VL0", "VL0-1", "VL0-3", "VL0-7", "VL0-14")
NAMED_VALUE_PRINTER(node_type, "?(", ")?", NULL, "Channel Adapter", "Switch", "Router")

/* --- sets of bits --------------------------------------------------------------- */

/* Prints the names of the bits set, then any remainder, joined by " or ". */
static void put_choices(struct text *text, uint32_t value, const char *const *names,
			unsigned count)
{
	const char *separator = "";
	unsigned bit;

	for (bit = 0; bit < count; bit++) {
		if (!(value >> bit & 1))
			continue;
		text_string(text, separator);
		text_string(text, names[bit]);
		separator = " or ";
	}
	if (value >> count || !value) {
		text_string(text, separator);
		text_string(text, "undefined (");
		text_int(text, (int32_t)value);
		text_char(text, ')');
	}
}

static const char *const width_names[] = {"1X", "4X", "8X", "12X", "2X"};

EXPORT void mad_dump_linkwidthen(char *buf, int bufsz, void *val, int valsz)
{
	struct text text = text_begin(buf, bufsz);

	(void)valsz;
	put_choices(&text, value32(val), width_names, COUNT(width_names));
	text_end(&text);
}

/* LinkWidthSupported's combinations in the specification, one bit each. */
#define SPECIFIED_WIDTHS                                                                      \
	(1u << 1 | 1u << 3 | 1u << 7 | 1u << 11 | 1u << 15 | 1u << 17 | 1u << 19 | 1u << 23 | \
	 1u << 27 | 1u << 31)

EXPORT void mad_dump_linkwidthsup(char *buf, int bufsz, void *val, int valsz)
{
	struct text text = text_begin(buf, bufsz);
	uint32_t value = value32(val);

	(void)valsz;
	put_choices(&text, value, width_names, COUNT(width_names));
	if (value < 32 && !(SPECIFIED_WIDTHS >> value & 1))
		text_string(&text, " (IBA extension)");
	text_end(&text);
}

/*
 * LinkSpeedSupported and LinkSpeedEnabled. The specification defines no combination without 2.5
 * Gbps.
 */
static void dump_speeds(char *buf, int bufsz, void *val)
{
	static const char *const names[] = {"2.5 Gbps", "5.0 Gbps", "10.0 Gbps"};
	struct text text = text_begin(buf, bufsz);
	uint32_t value = value32(val);

	put_choices(&text, value, names, COUNT(names));
	if (value < 8 && !(value & 1))
		text_string(&text, " (IBA extension)");
	text_end(&text);
}

EXPORT void mad_dump_linkspeedsup(char *buf, int bufsz, void *val, int valsz)
{
	(void)valsz;
	dump_speeds(buf, bufsz, val);
}

EXPORT void mad_dump_linkspeeden(char *buf, int bufsz, void *val, int valsz)
{
	(void)valsz;
	dump_speeds(buf, bufsz, val);
}

static void put_extended_speeds(struct text *text, uint32_t value)
{
	static const char *const names[] = {"14.0625 Gbps", "25.78125 Gbps", "53.125 Gbps",
					    "106.25 Gbps"};

	if (value)
		put_choices(text, value, names, COUNT(names));
	else
		text_char(text, '0');
}

EXPORT void mad_dump_linkspeedextsup(char *buf, int bufsz, void *val, int valsz)
{
	struct text text = text_begin(buf, bufsz);

	(void)valsz;
	put_extended_speeds(&text, value32(val));
	text_end(&text);
}

/* A LinkSpeedExtEnabled value (IBA 14.2.5.6) that is not a bit mask. */
#define EXTENDED_SPEEDS_DISABLED 30

EXPORT void mad_dump_linkspeedexten(char *buf, int bufsz, void *val, int valsz)
{
	struct text text = text_begin(buf, bufsz);
	uint32_t value = value32(val);

	(void)valsz;
	if (value == EXTENDED_SPEEDS_DISABLED)
		text_string(&text, "Extended link speeds disabled");
	else
		put_extended_speeds(&text, value);
	text_end(&text);
}

/* Prints the number, then a line for each named bit. */
static void dump_capabilities(char *buf, int bufsz, void *val, const char *const *names,
			      unsigned count)
{
	struct text text = text_begin(buf, bufsz);
	uint32_t value = value32(val);
	unsigned bit;

	put_plain_hex(&text, value);
	for (bit = 0; bit < count; bit++) {
		if (!(value >> bit & 1) || !names[bit])
			continue;
		text_string(&text, "\n\t\t\t\t");
		text_string(&text, names[bit]);
	}
	text_end(&text);
}

EXPORT void mad_dump_portcapmask(char *buf, int bufsz, void *val, int valsz)
{
	static const char *const names[32] = {
		[1] = "IsSM",
		[2] = "IsNoticeSupported",
		[3] = "IsTrapSupported",
		[4] = "IsOptionalIPDSupported",
		[5] = "IsAutomaticMigrationSupported",
		[6] = "IsSLMappingSupported",
		[7] = "IsMKeyNVRAM",
		[8] = "IsPKeyNVRAM",
		[9] = "IsLedInfoSupported",
		[10] = "IsSMdisabled",
		[11] = "IsSystemImageGUIDsupported",
		[12] = "IsPkeySwitchExternalPortTrapSupported",
		[14] = "IsExtendedSpeedsSupported",
		[15] = "IsCapabilityMask2Supported",
		[16] = "IsCommunicatonManagementSupported",
		[17] = "IsSNMPTunnelingSupported",
		[18] = "IsReinitSupported",
		[19] = "IsDeviceManagementSupported",
		[20] = "IsVendorClassSupported",
		[21] = "IsDRNoticeSupported",
		[22] = "IsCapabilityMaskNoticeSupported",
		[23] = "IsBootManagementSupported",
		[24] = "IsLinkRoundTripLatencySupported",
		[25] = "IsClientRegistrationSupported",
		[26] = "IsOtherLocalChangesNoticeSupported",
		[27] = "IsLinkSpeedWidthPairsTableSupported",
		[28] = "IsVendorSpecificMadsTableSupported",
		[29] = "IsMcastPkeyTrapSuppressionSupported",
		[30] = "IsMulticastFDBTopSupported",
		[31] = "IsHierarchyInfoSupported",
	};

	(void)valsz;
	dump_capabilities(buf, bufsz, val, names, COUNT(names));
}

EXPORT void mad_dump_portcapmask2(char *buf, int bufsz, void *val, int valsz)
{
	static const char *const names[] = {
		"IsSetNodeDescriptionSupported", "IsPortInfoExtendedSupported",
		"IsVirtualizationSupported",     "IsSwitchPortStateTableSupported",
		"IsLinkWidth2xSupported",        "IsLinkSpeedHDRSupported",
		"IsMKeyProtectBitsExtSupported", "IsEnhancedTrap128Supported",
		"IsPartitionTopSupported",       "IsEnhancedQoSArbiterSupported",
		"IsLinkSpeedNDRSupported",
	};

	(void)valsz;
	dump_capabilities(buf, bufsz, val, names, COUNT(names));
}
