/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The engine's clock. A test can slow it down, as if the machine was fast, so that the effect
 * of round trips does not depend on the machine. A test can also stop the clock. For one
 * thread; the program is linked with --wrap=clock_us.
 */
#ifndef TESTS_UNIT_SLOW_CLOCK_H
#define TESTS_UNIT_SLOW_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* The number of reads of the clock in a microsecond. */
#define LOOKS 4

int64_t __real_clock_us(void);
int64_t __wrap_clock_us(void);

static bool clock_is_slow, clock_is_stopped;
static int64_t clock_latest;
static unsigned clock_looks;

int64_t __wrap_clock_us(void)
{
	int64_t now =
		clock_is_slow ? clock_latest + (++clock_looks % LOOKS == 0) : __real_clock_us();

	if (clock_is_stopped)
		return clock_latest;
	/* it never goes backwards */
	if (now > clock_latest)
		clock_latest = now;
	return clock_latest;
}

static inline void slow_clock(bool on)
{
	(void)__wrap_clock_us();
	clock_is_slow = on;
}

/* true: stops the clock; false: the clock runs again. */
static inline void stop_clock(bool on)
{
	(void)__wrap_clock_us();
	clock_is_stopped = on;
}

#endif
