/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Reports of the SA. Each report is handed out once, although the SM may repeat it, and is
 * confirmed.
 */

#include "engine/timers.h"
#include "notices/notices_state.h"

#define REPORT_SIZE 80 /* of a Notice and its issuer's GID */
/* The time for which a report is stored, in microseconds. */
#define RECENT_US   10000000

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

/* Whether the report, of REPORT_SIZE bytes at least, was handed out; stores it otherwise. */
static bool is_repeated(struct recent_report *reports, const struct mad_request *request)
{
	struct recent_report *recent = &reports[request->tid % RECENT];
	const struct recent_report now = {clock_us(), request->tid, digest_of(request)};

	if (recent->at && now.at - recent->at < RECENT_US && recent->tid == now.tid &&
	    recent->digest == now.digest)
		return true;
	*recent = now;
	return false;
}

static void confirm(struct mad_notices *notices, struct mad_request *request, unsigned status)
{
	if (mad_request_respond(request, status, NULL, 0))
		mad_request_free(request); /* the SM repeats the report */
	else
		notices->counts.confirmed++;
}

void report_came(struct mad_server *server, struct mad_request *request, int error, void *arg)
{
	struct mad_notices *notices = arg;
	struct mad_notice notice;

	(void)server;
	(void)error; /* the registration has the same */
	if (!request) {
		notices_server_ended(notices);
		return;
	}
	if (request->attribute != IB_SA_ATTR_NOTICE) {
		notices->counts.malformed++;
		confirm(notices, request, IB_MAD_STS_METHOD_ATTR_NOT_SUPPORTED);
		return;
	}
	if (request->data_size < REPORT_SIZE) {
		notices->counts.malformed++;
		mad_request_free(request);
		return;
	}
	if (is_repeated(notices->recent, request)) {
		notices->counts.duplicates++;
	} else {
		notices->counts.reports++;
		mad_notice_decode(request->data, REPORT_SIZE, &notice, sizeof(notice));
		notices_tell(notices, &notice);
	}
	confirm(notices, request, 0);
}
