/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * When a response is late. The linker wraps the functions of the library that compute this
 * time, so that a test of retransmissions depends neither on the law of flow
 * control nor on the machine. To a node that has never responded, a Get is sent again after
 * twice that time.
 */
#ifndef TESTS_UNIT_LATE_RESPONSES_H
#define TESTS_UNIT_LATE_RESPONSES_H

#include <stdint.h>

/* All responses are late after this time; 0: as the library says. device_setup() sets 0. */
void set_late_after(uint32_t microseconds);

#endif
