/* SPDX-License-Identifier: BSD-2-Clause */

/* Management classes, and how their MADs are laid out (IBA 13.4, 13.6). */
#ifndef FABRIC_CLASSES_H
#define FABRIC_CLASSES_H

#include <stddef.h>

#include "mad_header.h"

/* The subnet management classes: LID routed and directed (IBA 14.2.1). */
#define CLASS_SMP          0x01
#define CLASS_DIRECTED_SMP 0x81

#define CLASS_SA 0x03

static inline bool is_smp(const uint8_t *mad)
{
	return mad_class_of(mad) == CLASS_SMP || mad_class_of(mad) == CLASS_DIRECTED_SMP;
}

/*
 * Where the attribute's data begins in MADs of a class; whether the class has RMPP (IBA 13.6).
 */
size_t class_data_offset(uint8_t class);
bool class_has_rmpp(uint8_t class);
bool class_is_range2(uint8_t class);

#endif
