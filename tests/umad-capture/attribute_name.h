/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef UMAD_CAPTURE_ATTRIBUTE_NAME_H
#define UMAD_CAPTURE_ATTRIBUTE_NAME_H

#include <stdint.h>

/* The name of an attribute of a class, as umad_attribute_str() returns it (with blanks) or as
 * the specification writes it; "<unknown>" if there is none. */
const char *attribute_name(uint8_t mgmt_class, uint16_t attribute);

#endif
