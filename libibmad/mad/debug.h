/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The lines of ibdebug 1: one for each MAD that a call sends or hands over, and one for each
 * request that is complete. Callers hold no lock, because a log hook may call the library.
 */
#ifndef LIBIBMAD_DEBUG_H
#define LIBIBMAD_DEBUG_H

#include <infiniband/mad.h>
#include <stdint.h>

/* How a request completed. Its umad buffer has the request, or the response. */
struct debug_result {
	uint32_t tid; /* the request's own ID */
	int error;    /* 0 or an errno */
	unsigned status;
	unsigned transmissions;
	uint32_t elapsed_ms;
};

void debug_write_sent(const char *call, const void *umad, const uint8_t *mad);
void debug_write_received(const char *call, const void *umad, const uint8_t *mad);
void debug_write_result(const char *call, const void *umad, const uint8_t *mad,
			const struct debug_result *result);

/* The call sends this MAD. */
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
