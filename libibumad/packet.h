/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The layout of the header before each MAD: with a P_Key index at its end, or the one
 * from before 2.6.24 without. It belongs to a descriptor; but umad_size() has no
 * descriptor to ask about, so the library follows the port that was opened last (all are
 * one kernel's).
 */
#ifndef LIBIBUMAD_PACKET_H
#define LIBIBUMAD_PACKET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * umad_size(). Hidden, as other variables that files share: -fvisibility=hidden does not
 * concern declarations, and the compiler would load the address of the variable first.
 */
extern __attribute__((visibility("hidden"))) atomic_size_t packet_header;

void packet_set_layout(bool has_pkey_index);

static inline size_t packet_header_size(void)
{
	return atomic_load_explicit(&packet_header, memory_order_relaxed);
}

#endif
