/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * umad_str.h - names for the numbers in a MAD's header.
 *
 * All return a constant text, also for numbers that have no name.
 *
 * Memory. The program frees no text.
 *
 * Threads. Any number of threads may call these functions at once.
 */
#ifndef INFINIBAND_UMAD_STR_H
#define INFINIBAND_UMAD_STR_H

#include <infiniband/umad.h>

#ifdef __cplusplus
extern "C" {
#endif

const char *umad_class_str(uint8_t mgmt_class);

/** The SA has methods of its own. The response bit is a part of the method. */
const char *umad_method_str(uint8_t mgmt_class, uint8_t method);

/** Attributes of SMPs, SA and CM MADs, and those that all classes share. */
const char *umad_attribute_str(uint8_t mgmt_class, __be16 attr_id);

/** The part of status that all classes share (IBA 13.4.7): the lower byte. */
const char *umad_common_mad_status_str(__be16 status);

/** The SA's own part (IBA 15.2.3): the upper byte. */
const char *umad_sa_mad_status_str(__be16 status);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_UMAD_STR_H */
