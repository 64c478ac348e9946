/* SPDX-License-Identifier: BSD-2-Clause */

#include "report.h"

#include "defaults.h"

#include <infiniband/mad.h>

void report_packet(const char *what, const uint8_t *mad, int length)
{
	/* xdump() only reads */
	union {
		const uint8_t *in;
		void *out;
	} bytes = {.in = mad};

	if (ibdebug > 1)
		xdump(stderr, what, bytes.out, length);
}

void report_retry(unsigned left, const uint8_t *mad)
{
	if (ibdebug || default_show_errors())
		IBWARN("no answer to attribute 0x%x; %u attempts are left",
		       mad[16] << 8 | mad[17], left);
}

void report_failure(const char *what, int error, unsigned status)
{
	if (!ibdebug && !default_show_errors())
		return;
	if (status)
		IBWARN("%s: the answer's status is 0x%x", what, status);
	else
		IBWARN("%s: %s", what, strerror(error));
}
