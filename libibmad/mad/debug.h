/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * ibdebug 1: a line for each MAD sent or handed over, and for each completed request. Callers
 * must not hold locks, because a log hook may call the library.
 */
#ifndef LIBIBMAD_DEBUG_H
#define LIBIBMAD_DEBUG_H

#include <infiniband/mad.h>
#include <stdint.h>

/* How a request completed. The umad buffer holds the request or the response. */
struct debug_result {
	uint32_t tid; /* the request's own TID */
	int error;    /* 0 or an errno */
	unsigned status;
	unsigned transmissions;
	uint32_t elapsed_ms;
};

void debug_write_sent(const char *call, const void *umad, const uint8_t *mad);
void debug_write_received(const char *call, const void *umad, const uint8_t *mad);
void debug_write_result(const char *call, const void *umad, const uint8_t *mad,
			const struct debug_result *result);

static inline void debug_sent(const char *call, const void *umad, const uint8_t *mad)
{
	if (__builtin_expect(ibdebug, 0))
		debug_write_sent(call, umad, mad);
}

/* The call hands this MAD to the program. */
static inline void debug_received(const char *call, const void *umad, const uint8_t *mad)
{
	if (__builtin_expect(ibdebug, 0))
		debug_write_received(call, umad, mad);
}

#endif
