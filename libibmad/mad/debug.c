/* SPDX-License-Identifier: BSD-2-Clause */

#include "mad/debug.h"

#include "base/export.h"
#include "base/report.h"
#include "mad/packet.h"

#include <stdio.h>

#define DEBUG_TEXT_MAX (ADDRESS_TEXT_MAX + 128)

/* Offsets of a directed route's LIDs (IBA 14.2.1.2). */
#define DR_SLID_OFFS 32
#define DR_DLID_OFFS 34

/* The destination or sender address in a umad buffer. */
static ib_portid_t address_of(const void *umad, const uint8_t *mad)
{
	const struct ib_user_mad *header = umad;
	ib_portid_t portid = {.lid = be16toh(header->addr.lid)};
	ib_dr_path_t *path = &portid.drpath;

	if (mad[1] == IB_SMI_DIRECT_CLASS) {
		path->drslid = get16(mad, DR_SLID_OFFS);
		path->drdlid = get16(mad, DR_DLID_OFFS);
		path->cnt = mad[HOP_COUNT_OFFS] & (IB_SUBNET_PATH_HOPS_MAX - 1);
		memcpy(path->p, mad + INITIAL_PATH_OFFS, sizeof(path->p));
		if (path->drslid == PERMISSIVE_LID)
			portid.lid = 0;
	} else if (header->addr.grh_present) {
		portid.grh_present = 1;
		memcpy(portid.gid, header->addr.gid, sizeof(portid.gid));
	}
	return portid;
}

/* Describes a MAD; "preposition" is "to" or "from". */
static void describe(char *text, size_t size, const void *umad, const uint8_t *mad,
		     const char *preposition, uint32_t tid)
{
	char address[ADDRESS_TEXT_MAX];
	ib_portid_t portid = address_of(umad, mad);

	address_print(&portid, address, sizeof(address));
	snprintf(text, size,
		 "class 0x%02x method 0x%02x attribute 0x%x modifier 0x%x %s %s, ID 0x%08x",
		 mad[1], mad[3], get16(mad, ATTRIBUTE_OFFS), get32(mad, MODIFIER_OFFS),
		 preposition, address, tid);
}

void debug_write_sent(const char *call, const void *umad, const uint8_t *mad)
{
	char text[DEBUG_TEXT_MAX];

	describe(text, sizeof(text), umad, mad, "to", get32(mad, TID_OFFS));
	report_debug(call, "%s", text);
}

void debug_write_received(const char *call, const void *umad, const uint8_t *mad)
{
	char text[DEBUG_TEXT_MAX];

	describe(text, sizeof(text), umad, mad, "from", get32(mad, TID_OFFS));
	report_debug(call, "%s", text);
}

void debug_write_result(const char *call, const void *umad, const uint8_t *mad,
			const struct debug_result *result)
{
	char text[DEBUG_TEXT_MAX], end[64];

	describe(text, sizeof(text), umad, mad, is_response(mad) ? "from" : "to", result->tid);
	if (result->error && !result->status)
		snprintf(end, sizeof(end), "%s", strerror(result->error));
	else
		snprintf(end, sizeof(end), "status 0x%x", result->status);
	report_debug(call, "%s: %s, %u ms, %u transmission%s", text, end, result->elapsed_ms,
		     result->transmissions, result->transmissions == 1 ? "" : "s");
}
