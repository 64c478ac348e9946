/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * libibumad's static probes (docs/tracing.md). A probe is a nop plus an ELF note that locates
 * its arguments, and has a semaphore that tracers increment. Only io.c includes this header.
 */
#ifndef LIBIBUMAD_PROBE_H
#define LIBIBUMAD_PROBE_H

#include <infiniband/umad.h>

#include <endian.h>
#include <stdbool.h>

#ifdef IBUMAD_PROBES
#define SDT_USE_VARIADIC
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#define PROBE(name, ...) STAP_PROBEV(libibumad, name, __VA_ARGS__)
#define SEMAPHORE(name)  libibumad_##name##_semaphore
#define IS_TRACED(name)  __builtin_expect(SEMAPHORE(name), 0)
/* Tracers expect the semaphores in this section. */
static __attribute__((section(".probes"))) volatile unsigned short SEMAPHORE(send),
	SEMAPHORE(receive);
#else
#define IS_TRACED(name) false
/* Never defined: marks the arguments as used without evaluating them. */
void no_probe(int number, ...);
#define PROBE(name, ...)                          \
	do {                                      \
		if (0)                            \
			no_probe(0, __VA_ARGS__); \
	} while (0)
#endif

/*
 * umad_send() wrote a message (error 0), or the kernel refused it (positive errno). The program
 * may already have changed or freed the MAD.
 */
static inline void probe_send(int handle, uint32_t agent, const void *mad, int length,
			      uint16_t lid, int error)
{
	PROBE(send, handle, agent, length, lid, error, mad);
}

/* umad_recv() read a message. */
static inline void probe_receive(int handle, const struct ib_user_mad *umad, const void *mad,
				 int length)
{
	PROBE(receive, handle, umad->agent_id, length, be16toh(umad->addr.lid), umad->status,
	      mad);
}

#endif
