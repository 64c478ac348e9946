/* SPDX-License-Identifier: BSD-2-Clause */

/* The fabric of the stress test: it echoes requests, with all kinds of faults, at random. */
#ifndef TESTS_STRESS_FAULTS_H
#define TESTS_STRESS_FAULTS_H

#include "fake_device.h"

/* A response may be longer than the port accepts. */
#define LONGEST_ANSWER 3000

void faults_start(uint64_t seed);
void faults_lose_everything(void);
/* Prints how often each fault occurred. */
void faults_report(void);

/* xorshift64*: fast, and random enough to choose. */
static inline uint64_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1d;
}

#endif
