/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * libibmad's static probes (docs/tracing.md). A probe is a nop plus an ELF note that locates
 * its arguments. Arguments are only evaluated while the probe's semaphore, which tracers
 * increment, is nonzero. bpftrace reads at most six arguments on x86-64.
 */
#ifndef LIBIBMAD_PROBE_H
#define LIBIBMAD_PROBE_H

#include "mad/layout.h"

#include <infiniband/umad.h>

#ifdef IBUMAD_PROBES
#define SDT_USE_VARIADIC
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#define HAS_PROBES      1
#define SEMAPHORE(name) libibmad_##name##_semaphore
#define PROBE(name, ...)                                          \
	do {                                                      \
		if (__builtin_expect(SEMAPHORE(name), 0))         \
			STAP_PROBEV(libibmad, name, __VA_ARGS__); \
	} while (0)

/* Defined in probe.c, in the section where tracers expect them. */
#define DECLARE_SEMAPHORE(name) \
	extern __attribute__((visibility("hidden"))) volatile unsigned short SEMAPHORE(name)
DECLARE_SEMAPHORE(request_submitted);
DECLARE_SEMAPHORE(request_transmitted);
DECLARE_SEMAPHORE(response_received);
DECLARE_SEMAPHORE(response_mismatched);
DECLARE_SEMAPHORE(attempt_timed_out);
DECLARE_SEMAPHORE(request_completed);
DECLARE_SEMAPHORE(window_changed);
#else
#define HAS_PROBES 0
/* Never defined: marks the arguments as used without evaluating them. */
void no_probe(int number, ...);
#define PROBE(name, ...)                          \
	do {                                      \
		if (0)                            \
			no_probe(0, __VA_ARGS__); \
	} while (0)
#endif

/* First four arguments of probes with a umad buffer. */
#define PROBE_MAD(name, id, umad, mad, one, other)                                             \
	PROBE(name, id, be16toh(((const struct ib_user_mad *)(const void *)(umad))->addr.lid), \
	      (mad)[1], get16(mad, ATTRIBUTE_OFFS), one, other)

/* A request was queued. */
static inline void probe_request_submitted(const void *request, const uint8_t *umad,
					   const uint8_t *mad, int timeout_ms,
					   unsigned attempts)
{
	PROBE_MAD(request_submitted, request, umad, mad, timeout_ms, attempts);
}

/* A packet was written; the request's first packet has number 1. */
static inline void probe_request_transmitted(const void *request, const uint8_t *umad,
					     const uint8_t *mad, unsigned number)
{
	PROBE_MAD(request_transmitted, request, umad, mad, get32(mad, TID_OFFS), number);
}

/* umad holds the response. Round trip 0: unknown. */
static inline void probe_response_received(const uint8_t *umad, const uint8_t *mad,
					   unsigned status, uint32_t rtt_us)
{
	PROBE_MAD(response_received, get32(mad, TID_OFFS), umad, mad, status, rtt_us);
}

/* umad holds a response with a request's TID that does not match the request. */
static inline void probe_response_mismatched(const uint8_t *umad, const uint8_t *mad)
{
	PROBE_MAD(response_mismatched, get32(mad, TID_OFFS), umad, mad, mad[3],
		  get32(mad, MODIFIER_OFFS));
}

static inline void probe_attempt_timed_out(const void *request, const uint8_t *umad,
					   const uint8_t *mad, int timeout_ms,
					   unsigned attempts_left)
{
	PROBE_MAD(attempt_timed_out, request, umad, mad, timeout_ms, attempts_left);
}

/* A request completed with 0 or an errno. */
static inline void probe_request_completed(const void *request, const uint8_t *umad,
					   const uint8_t *mad, int error,
					   unsigned transmissions)
{
	PROBE_MAD(request_completed, request, umad, mad, error, transmissions);
}

/* Whether the window probe is being traced. */
static inline bool probe_is_window_traced(void)
{
#if HAS_PROBES
	return __builtin_expect(SEMAPHORE(window_changed), 0);
#else
	return false;
#endif
}

/* The size of a queue pair's window changed. */
static inline void probe_window_changed(int handle, unsigned queue_pair, unsigned before,
					unsigned now)
{
	PROBE(window_changed, handle, queue_pair, before, now);
}

#endif
