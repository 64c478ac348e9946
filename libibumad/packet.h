/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The layout of the header before each MAD: with a P_Key index at its end, or the one
 * from before 2.6.24 without. It belongs to a descriptor; but umad_size() has no
 * descriptor to ask about, so the library follows the port that was opened last (all are
 * one kernel's).
 */
#ifndef LIBIBUMAD_PACKET_H
#define LIBIBUMAD_PACKET_H

#include <stdbool.h>

void packet_set_layout(bool has_pkey_index);

#endif
