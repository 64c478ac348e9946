/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The nodes of the stress test, on the machine of the unit tests. Each response tells which
 * node gives it, what was asked, and which request it answers. Faults are drawn at random.
 */
#ifndef TESTS_STRESS_FABRIC_H
#define TESTS_STRESS_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A response may be longer than the port accepts. */
#define LONGEST_ANSWER 3000
/* Nodes "n1" to "n200" of the star; n1 has LID FIRST_LID. */
#define MOST_NODES     200
#define FIRST_LID      11

enum fault {
	LOSE,
	TIME_OUT,
	DOUBLE,
	DELAY,
	LATE,
	CORRUPT,
	TRUNCATE,
	BUSY,
	REFUSE,
	REDIRECT,
	NO_FAULT,
	FAULTS
};

/* What the seed draws. */
struct mix {
	unsigned rates[NO_FAULT]; /* of 1,000 packets */
	unsigned instant;         /* of 1,000 responses, those that take no time */
	unsigned round_trip_us;
	unsigned late_us;          /* LATE: up to so much */
	unsigned dead, slow, busy; /* of 1,000 nodes */
	unsigned slow_us;
};

/* At the beginning of a response's data. */
struct stamp {
	uint32_t node; /* from 1 on */
	uint8_t mgmt_class, method;
	uint16_t attribute;
	uint32_t modifier;
	uint32_t end; /* not 0, as in a response that was cut off */
	uint64_t ticket;
	uint64_t end_too;
};

struct stamp stamp_of(uint32_t node, unsigned mgmt_class, unsigned method, unsigned attribute,
		      uint32_t modifier, uint64_t ticket);
/* Where the data of a class begins. */
size_t data_offset(unsigned mgmt_class);
/* The node to which one redirects requests of some classes. */
bool may_redirect(unsigned mgmt_class);
uint32_t partner_of(uint32_t node);

void fabric_begin(uint64_t seed, const struct mix *mix);
void fabric_lose_everything(void);
/* Prints how often each fault occurred. */
void fabric_report(void);

/* xorshift64*: fast, and random enough to choose. */
static inline uint64_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1d;
}

static inline unsigned draw(uint64_t *state, unsigned count)
{
	return (unsigned)((next_random(state) >> 32) * count >> 32);
}

#endif
