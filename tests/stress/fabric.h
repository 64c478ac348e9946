/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The fabric of the stress test, on the fake device and in virtual time. Each response tells
 * which node gives it, what was asked, and which request it answers. Faults are drawn at
 * random.
 */
#ifndef TESTS_STRESS_FABRIC_H
#define TESTS_STRESS_FABRIC_H

#include "fake_device.h"

/* A response may be longer than the port accepts. */
#define LONGEST_ANSWER 3000
/* LIDs of nodes; a node has its LID with this bit, too, to which it redirects. */
#define REDIRECTED     0x400U
/* The mark of a node that is reached by a directed route, whose hops it has. */
#define BY_ROUTE       0x80000000

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
	REQUEST,
	NO_FAULT,
	FAULTS
};

/* What the seed draws. */
struct mix {
	unsigned rates[NO_FAULT]; /* of 1,000 packets */
	unsigned instant; /* of 1,000 responses, those that come before write() returns */
	unsigned round_trip_us;
	unsigned late_us;          /* LATE: up to so much */
	unsigned dead, slow, busy; /* of 1,000 nodes */
	unsigned slow_us;
	bool drops_late; /* as a kernel does: responses that no request waits for */
};

/* At the beginning of a response's data. */
struct stamp {
	uint32_t node;
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

void fabric_begin(uint64_t seed, const struct mix *mix);
/* Forgets the packets that are on their way. */
void fabric_end(void);
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
