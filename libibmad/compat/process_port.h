/* SPDX-License-Identifier: BSD-2-Clause */

/* What the calls without a port argument need of all others. */
#ifndef LIBIBMAD_PROCESS_PORT_H
#define LIBIBMAD_PROCESS_PORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether madrpc_save_mad() waits for an answer. */
extern atomic_bool answer_wanted;

void keep_answer(const uint8_t *mad, size_t length);

/* For each answer of a blocking request, whatever its status: the whole MAD. */
static inline void offer_answer(const uint8_t *mad, size_t length)
{
	if (atomic_load_explicit(&answer_wanted, memory_order_relaxed))
		keep_answer(mad, length);
}

#endif
