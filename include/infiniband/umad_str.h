/* SPDX-License-Identifier: BSD-2-Clause */

/** umad_str.h - names for the numbers in a MAD header, as constant texts, never NULL. */
#ifndef INFINIBAND_UMAD_STR_H
#define INFINIBAND_UMAD_STR_H

#include <infiniband/umad.h>

#ifdef __cplusplus
extern "C" {
#endif

const char *umad_class_str(uint8_t mgmt_class);

/** The method includes the response bit; the SA (class 3) has its own methods. */
const char *umad_method_str(uint8_t mgmt_class, uint8_t method);

/** Knows the common attributes and those of SMPs, SA and CM. */
const char *umad_attribute_str(uint8_t mgmt_class, __be16 attr_id);

/** The lower byte, common to all classes (IBA 13.4.7). */
const char *umad_common_mad_status_str(__be16 status);

/** The upper byte, of the SA (IBA 15.2.3). */
const char *umad_sa_mad_status_str(__be16 status);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_UMAD_STR_H */
