/* SPDX-License-Identifier: BSD-2-Clause */

/* The reports that were handed out lately, so that those that the SM repeats are known. */
#ifndef LIBIBMAD_RECENT_REPORTS_H
#define LIBIBMAD_RECENT_REPORTS_H

#include <infiniband/mad_server.h>
#include <stdbool.h>

#define REPORT_SIZE 80 /* of a Notice and its issuer's GID */
#define RECENT      16384

struct recent_report {
	int64_t at;
	uint64_t tid;
	uint64_t digest; /* of the notice and the sender */
};

struct recent_reports {
	struct recent_report reports[RECENT];
};

/* Whether the report, of REPORT_SIZE bytes at least, was handed out; remembers it otherwise. */
bool recent_reports_have(struct recent_reports *reports, const struct mad_request *request);

#endif
