/* SPDX-License-Identifier: BSD-2-Clause */

/* The subscription at the SA: a Set of InformInfo (IBA 13.4.8.3) for each filter. */

#include "mad/layout.h"

#include "base/reserved.h"
#include "notices/notices_state.h"

#include <errno.h>
#include <string.h>

/* --- InformInfo ------------------------------------------------------------------- */

#define ALL           0xffff
#define ALL_PRODUCERS 0xffffff
#define QP1           1
/* Reports are confirmed within 4.096 us * 2^18, which is a second. */
#define RESPONSE_TIME 18
#define BY_ALL                                                              \
	(MAD_NOTICE_BY_TYPE | MAD_NOTICE_BY_TRAP | MAD_NOTICE_BY_PRODUCER | \
	 MAD_NOTICE_BY_LIDS | MAD_NOTICE_BY_GID)

static unsigned chosen(const struct mad_notice_filter *filter, unsigned bit, unsigned value,
		       unsigned all)
{
	return filter->by & bit ? value : all;
}

int inform_info_init(struct inform_info *info, const struct mad_notice_filter *filter)
{
	unsigned type = chosen(filter, MAD_NOTICE_BY_TYPE, filter->type, ALL);
	unsigned trap = chosen(filter, MAD_NOTICE_BY_TRAP, filter->trap, ALL);
	unsigned producer =
		chosen(filter, MAD_NOTICE_BY_PRODUCER, filter->producer, ALL_PRODUCERS);
	unsigned begin = chosen(filter, MAD_NOTICE_BY_LIDS, filter->lid_begin, ALL);
	unsigned end = chosen(filter, MAD_NOTICE_BY_LIDS, filter->lid_end, 0);

	if (!is_reserved(filter->reserved))
		return -EINVAL;
	if (filter->by & ~(unsigned)BY_ALL || type > ALL || trap > ALL ||
	    producer > ALL_PRODUCERS || begin > ALL || end > ALL ||
	    (filter->by & MAD_NOTICE_BY_LIDS && (!begin || begin > end)))
		return -EINVAL;
	info->wire = (struct mad_sa_inform_info){
		.lid_begin = htobe16((uint16_t)begin),
		.lid_end = htobe16((uint16_t)end),
		.is_generic = !filter->vendor,
		.type = htobe16((uint16_t)type),
		.trap_number = htobe16((uint16_t)trap),
		.qpn_resp_time = htobe32(QP1 << 8 | RESPONSE_TIME),
		.producer_type = htobe32(producer),
	};
	info->components = MAD_SA_INFORM_LID_BEGIN | MAD_SA_INFORM_IS_GENERIC |
			   MAD_SA_INFORM_SUBSCRIBE | MAD_SA_INFORM_TYPE |
			   MAD_SA_INFORM_TRAP_NUMBER | MAD_SA_INFORM_QPN |
			   MAD_SA_INFORM_RESP_TIME | MAD_SA_INFORM_PRODUCER_TYPE;
	if (filter->by & MAD_NOTICE_BY_LIDS)
		info->components |= MAD_SA_INFORM_LID_END;
	if (filter->by & MAD_NOTICE_BY_GID) {
		info->components |= MAD_SA_INFORM_GID;
		memcpy(info->wire.gid, filter->gid, sizeof(filter->gid));
	}
	return 0;
}

/*
 * Whether an InformInfo of the SA is this one. The SA may fill in the QP and the times, and
 * does not receive the reserved bytes.
 */
static bool is_same(const struct mad_sa_inform_info *ours,
		    const struct mad_sa_inform_info *theirs)
{
	return !memcmp(ours->gid, theirs->gid, sizeof(ours->gid)) &&
	       ours->lid_begin == theirs->lid_begin && ours->is_generic == theirs->is_generic &&
	       ours->type == theirs->type && ours->trap_number == theirs->trap_number &&
	       (be32toh(ours->producer_type) & ALL_PRODUCERS) ==
		       (be32toh(theirs->producer_type) & ALL_PRODUCERS);
}

/* --- the requests ------------------------------------------------------------------- */

void subscription_fill(struct registration *registration, unsigned index, bool registers,
		       struct registration_request *request)
{
	struct inform_info *info = &notices_of(registration)->filters[index];

	info->wire.subscribe = registers;
	*request = (struct registration_request){
		.method = IB_MAD_METHOD_SET,
		.attribute = IB_SA_ATTR_INFORMINFO,
		.mask = info->components,
		.data = &info->wire,
		.size = sizeof(info->wire),
	};
}

int subscription_take(struct registration *registration, unsigned index, const void *data,
		      size_t size)
{
	const struct inform_info *info = &notices_of(registration)->filters[index];
	struct mad_sa_inform_info theirs;

	if (size < sizeof(theirs))
		return -EBADMSG;
	memcpy(&theirs, data, sizeof(theirs));
	if (theirs.subscribe != info->wire.subscribe || !is_same(&info->wire, &theirs))
		return -EBADMSG;
	return 0;
}

bool subscription_is_record(struct registration *registration, unsigned index,
			    const void *record)
{
	const struct inform_info *info = &notices_of(registration)->filters[index];
	const struct mad_sa_inform_info_record *theirs = record;

	return is_same(&info->wire, &theirs->info);
}
