/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Whether a response belongs to a request, after its TID has matched (tids.h): a node, another
 * program or the network may use a TID twice.
 */

#include "engine/request.h"

#include "mad/layout.h"

#include <infiniband/umad_sa.h>

/* Not unicast from here on: multicast and the permissive LID. */
#define MULTICAST_LIDS 0xc000
#define OUI_OFFS       37
#define OUI_SIZE       3

/*
 * These classes define their own methods and modifiers (IBA 13.4.4), so a response's may differ
 * from its request's.
 */
static bool has_methods_of_its_own(uint8_t mgmt_class)
{
	return mad_is_vendor_range1(mgmt_class) || mad_is_vendor_range2(mgmt_class) ||
	       (mgmt_class >= 0x10 && mgmt_class <= 0x2f);
}

/* Nodes that reject a request often just set the response bit. */
static bool is_method_of_response(const uint8_t *asked, const uint8_t *mad)
{
	if (has_methods_of_its_own(mad[1]) || mad[1] == IB_BOARD_MGMT_CLASS ||
	    mad[3] == (asked[3] | IB_MAD_RESPONSE))
		return true;
	switch (asked[3]) {
	case IB_MAD_METHOD_SET:
		return mad[3] == IB_MAD_METHOD_GET_RESPONSE;
	case IB_MAD_METHOD_TRAP:
		return mad[3] == IB_MAD_METHOD_TRAP_REPRESS;
	case IB_MAD_METHOD_GET_TRACE_TABLE:
		return mad[3] == IB_MAD_METHOD_GET_TABLE_RESPONSE;
	}
	return false;
}

static bool is_redirection_by_class_port_info(const uint8_t *mad)
{
	return !is_smp_class(mad[1]) && get16(mad, STATUS_OFFS) == IB_MAD_STS_REDIRECT &&
	       get16(mad, ATTRIBUTE_OFFS) == CLASS_PORT_INFO;
}

/*
 * The record type that two SA methods return: GetMulti of MultiPathRecord returns PathRecords,
 * GetTraceTable of PathRecord TraceRecords (IBA 15.4.6, 15.4.7). 0: the request's own.
 */
static unsigned attribute_of_records(const uint8_t *asked)
{
	if (asked[1] != IB_SA_CLASS)
		return 0;
	return asked[3] == IB_MAD_METHOD_GETMULTI          ? IB_SA_ATTR_PATHRECORD
	       : asked[3] == IB_MAD_METHOD_GET_TRACE_TABLE ? UMAD_SA_ATTR_TRACE_REC
							   : 0;
}

/* A response repeats its request's attribute ID and modifier (IBA 13.4.5, 13.4.6). */
static bool is_attribute_of_response(const uint8_t *asked, const uint8_t *mad)
{
	uint32_t changed = get32(asked, MODIFIER_OFFS) ^ get32(mad, MODIFIER_OFFS);

	if (is_redirection_by_class_port_info(mad))
		return true;
	if (get16(asked, ATTRIBUTE_OFFS) != get16(mad, ATTRIBUTE_OFFS) &&
	    get16(mad, ATTRIBUTE_OFFS) != attribute_of_records(asked))
		return false;
	if (mad[1] == IB_BOARD_MGMT_CLASS)
		changed &= ~1u; /* response bit (IBA 16.2.2) */
	return !changed || has_methods_of_its_own(mad[1]);
}

/* Bytes missing from a short response count as equal. */
static bool is_same(const uint8_t *asked, const uint8_t *mad, int offset, int size, int length)
{
	int there = length - offset;

	if (there > size)
		there = size;
	return there <= 0 || !memcmp(asked + offset, mad + offset, (size_t)there);
}

/*
 * Whether both GIDs are one port's: the default prefix is valid besides the subnet's (IBA
 * 4.1.1).
 */
static bool is_same_port(const uint8_t *gid, const uint8_t *other)
{
	static const uint8_t default_prefix[8] = {0xfe, 0x80};

	if (memcmp(gid + 8, other + 8, 8) != 0)
		return false;
	return !memcmp(gid, other, 8) || !memcmp(gid, default_prefix, 8) ||
	       !memcmp(other, default_prefix, 8);
}

enum response_match response_match(const struct request *request, const uint8_t *umad,
				   int length, unsigned lmc)
{
	const ib_mad_addr_t *to = &((const struct ib_user_mad *)(void *)request->umad)->addr;
	const ib_mad_addr_t *from = &((const struct ib_user_mad *)(const void *)umad)->addr;
	const uint8_t *asked = request_mad(request), *mad = umad + request->header_size;
	unsigned asked_lid = be16toh(to->lid), lid = be16toh(from->lid);

	if (!is_method_of_response(asked, mad) || !is_attribute_of_response(asked, mad))
		return RESPONSE_OF_ANOTHER;
	/* vendor range 2: the class is per OUI (IBA 16.5.1) */
	if (mad_is_vendor_range2(mad[1]) && !is_same(asked, mad, OUI_OFFS, OUI_SIZE, length))
		return RESPONSE_OF_ANOTHER;
	/* an SMP returns with the path it was sent on (IBA 14.2.2) */
	if (mad[1] == IB_SMI_DIRECT_CLASS)
		return mad[HOP_COUNT_OFFS] == asked[HOP_COUNT_OFFS] &&
				       is_same(asked, mad, INITIAL_PATH_OFFS + 1,
					       asked[HOP_COUNT_OFFS], length)
			       ? RESPONSE_MATCHES
			       : RESPONSE_OF_ANOTHER;
	/*
	 * It must come from the destination's LID, or its GID if both have a GRH (IBA 13.5.4).
	 * With LMC > 0, a port may respond from another of its LIDs.
	 */
	if (to->grh_present && from->grh_present)
		return is_same_port(to->gid, from->gid) ? RESPONSE_MATCHES
							: RESPONSE_OF_ANOTHER;
	if (!asked_lid || asked_lid >= MULTICAST_LIDS || asked_lid >> lmc == lid >> lmc)
		return RESPONSE_MATCHES;
	return asked_lid >> LMC_MAX == lid >> LMC_MAX ? RESPONSE_OF_NEAR_LID
						      : RESPONSE_OF_ANOTHER;
}
