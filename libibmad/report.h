/* SPDX-License-Identifier: BSD-2-Clause */

/* What programs are told on stderr when they ask for it. */
#ifndef LIBIBMAD_REPORT_H
#define LIBIBMAD_REPORT_H

#include <stdint.h>

/* With ibdebug 2 and above: a MAD that goes or comes. */
void report_packet(const char *what, const uint8_t *mad, int length);
/* With ibdebug 1 and above, or after madrpc_show_errors(1): */
void report_retry(unsigned left, const uint8_t *mad);
void report_failure(const char *what, int error, unsigned status);

#endif
