/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The model of a fabric, and its clock. Packets meet at a queue in the order in which they
 * arrive there. The path of a request and its response:
 *
 *   host -> link -> shared queue -> node -> link -> host
 *
 * The model has one state in a process. Times are nanoseconds since the start.
 */
#ifndef TESTS_FLOW_MODEL_H
#define TESTS_FLOW_MODEL_H

#include "fabric.h"

#include <infiniband/umad.h>

#define NO_TIME    INT64_MAX
/* The bytes of a MAD that the model keeps: header, RMPP header and the header of an SMP. */
#define KEPT_BYTES 64

enum fate {
	UNDER_WAY,
	ARRIVED,
	DROPPED_BY_QUEUE,
	DROPPED_BY_NODE,
	LOST_BY_LINK,
	LOST_TO_DEAD,
	FATES
};

enum stage {
	TO_QUEUE,
	TO_NODE,
	TO_HOST
};

/* A request that was written, from the write on. */
struct packet {
	struct packet *next_held; /* in the table of the kernel */
	struct packet *next;      /* in the list of free packets, or in the queue of a host */
	uint32_t serial;          /* different for each write */
	uint32_t request, node;
	unsigned transmission; /* of the request, counted from 0 */
	int handle;
	enum stage stage;
	bool held;      /* by the kernel, for its response */
	bool traveling; /* in the model */
	bool timed_out; /* in the queue of a host as a report of a timeout */
	double stretch; /* of its legs, by jitter */
	uint64_t random;
	struct ib_user_mad header;
	uint8_t mad[KEPT_BYTES];
};

/* What the model tells: a response reaches its host; the end of a packet that does not. */
struct model_hooks {
	void (*arrived)(struct packet *packet);
	void (*lost)(struct packet *packet, enum fate fate);
	/* the time of a report is reached; the caller checks whether it is still due */
	void (*report)(struct packet *packet, uint32_t serial);
};

void model_start(const struct fabric *fabric, const struct model_hooks *hooks);
void model_end(void);

int64_t model_now(void);
/* The time of the next event, or NO_TIME. */
int64_t model_next(void);
/* Moves the clock, with all events up to that time. */
void model_advance(int64_t to);
/* Sends a packet now. packet->random is set. */
void model_send(struct packet *packet);
/* Calls the hook "report" at that time. */
void model_report_at(struct packet *packet, int64_t at);

/* A packet of the model's memory. model_end() frees all. */
struct packet *model_take_packet(void);
void model_free_packet(struct packet *packet);

/* Permanently dead, or dead at this time. */
bool model_is_dead(unsigned node);
unsigned model_count(enum fate fate);

#endif
