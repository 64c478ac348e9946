/* SPDX-License-Identifier: BSD-2-Clause */

/* Properties of a MAD that depend on its class. */
#include "classes.h"

bool class_is_range2(uint8_t class)
{
	return class >= 0x30 && class <= 0x4f;
}

bool class_has_rmpp(uint8_t class)
{
	switch (class) {
	case CLASS_SA:
	case 0x06: /* device management */
	case 0x10: /* device administration */
	case 0x12: /* boot information */
		return true;
	default:
		return class_is_range2(class);
	}
}

size_t class_data_offset(uint8_t class)
{
	if (class == CLASS_SA)
		return 56;
	if (class == 0x06 || class == 0x10 || class == 0x12)
		return 64;
	if (class_is_range2(class))
		return 40;
	return 24;
}
