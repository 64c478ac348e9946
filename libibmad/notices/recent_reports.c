/* SPDX-License-Identifier: BSD-2-Clause */

#include "notices/recent_reports.h"

#include "engine/deadline.h"

/* For how long a report is remembered, in microseconds. */
#define RECENT_US 10000000

/* FNV-1a. */
static uint64_t add_to_digest(uint64_t digest, const uint8_t *bytes, size_t size)
{
	while (size--)
		digest = (digest ^ *bytes++) * UINT64_C(0x100000001b3);
	return digest;
}

static uint64_t digest_of(const struct mad_request *request)
{
	const uint8_t lid[] = {(uint8_t)(request->from.lid >> 8), (uint8_t)request->from.lid};
	uint64_t digest = add_to_digest(UINT64_C(0xcbf29ce484222325), lid, sizeof(lid));

	return add_to_digest(digest, request->data, REPORT_SIZE);
}

bool recent_reports_have(struct recent_reports *reports, const struct mad_request *request)
{
	struct recent_report *recent = &reports->reports[request->tid % RECENT];
	const struct recent_report now = {clock_us(), request->tid, digest_of(request)};

	if (recent->at && now.at - recent->at < RECENT_US && recent->tid == now.tid &&
	    recent->digest == now.digest)
		return true;
	*recent = now;
	return false;
}
