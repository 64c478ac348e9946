/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A umad device on the model of a fabric, and the account of what it carries, for one thread.
 *
 * model.c has the clock and the path of a request and its response. Packets meet at a queue in
 * the order in which they arrive there:
 *
 *   host -> link -> shared queue -> node -> link -> host
 *
 * device.c takes the place of libibumad/sys.c. Each open handle is a host of the fabric. It
 * does what the kernel does: it holds the transaction IDs in flight, drops responses that no
 * request waits for, and reports timeouts. account.c checks what must hold in every run.
 *
 * There is one run at a time in a process. Times are nanoseconds since its start.
 */
#ifndef TESTS_FLOW_MODEL_H
#define TESTS_FLOW_MODEL_H

#include "fabric.h"

#include <infiniband/umad.h>

#define NO_TIME    INT64_MAX
#define SECOND     (1000 * MS)
/* The bytes of a MAD that the model keeps: header, RMPP header and the header of an SMP. */
#define KEPT_BYTES 64

enum fate {
	ARRIVED,
	DROPPED, /* by a queue or a node */
	LOST,    /* by a link */
	LOST_TO_DEAD
};

enum stage {
	TO_QUEUE,
	TO_NODE,
	TO_HOST
};

/* A request that was written, from the write on. */
struct packet {
	struct packet *next_of_all;
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

/* --- model.c ---------------------------------------------------------------------- */

void model_start(const struct fabric *fabric);
void model_end(void);

int64_t model_now(void);
/* The time of the next event, or NO_TIME. */
int64_t model_next(void);
/* Moves the clock, with all events up to that time. */
void model_advance(int64_t to);
/* Sends a packet now. packet->random is set. */
void model_send(struct packet *packet);
/* Calls device_report() at that time. */
void model_report_at(struct packet *packet, int64_t at);

/* A packet of the model's memory. model_end() frees all. */
struct packet *model_take_packet(void);
void model_free_packet(struct packet *packet);

/* --- device.c --------------------------------------------------------------------- */

/* The device of a new fabric. No handle is open. */
void device_start(const struct fabric *fabric);
/* Whether a message can be read on some handle. */
bool device_has_message(void);
/* What the model tells: the end of a packet's journey; the time of a report, if still due. */
void device_end_travel(struct packet *packet, enum fate fate);
void device_report(struct packet *packet, uint32_t serial);

/* --- account.c -------------------------------------------------------------------- */

#define SENTENCE   200
#define MOST_HOSTS 8
/* Responses are counted for each interval of this length. */
#define INTERVAL   (10 * MS)
#define INTERVALS  4000

struct result {
	/* seconds until 99 % of the requests to living nodes have a response; 0: not yet */
	double t99;
	double tall; /* until all requests to living nodes are complete */
	double host_tall[MOST_HOSTS];
	double end; /* until all requests are complete */
	unsigned requests, transmissions;
	unsigned dropped;
	unsigned extra; /* transmissions that nobody needed */
	bool aborted;
	char broken[SENTENCE]; /* what was violated, first */
};

struct tally {
	struct result result; /* so far */
	/* responses and writes; the last element counts what is later than all intervals */
	unsigned responses[INTERVALS + 1], written[INTERVALS + 1];
	unsigned living_left; /* requests to living nodes that are not complete */
	bool closed;          /* no MAD may be written any more */
};
extern struct tally tally;

void account_start(const struct fabric *fabric);
/* The figures of the run. */
void account_end(struct result *result);

/* The next request of a host: its number, which is the attribute modifier of its MADs. */
uint32_t account_submit(unsigned host, unsigned *node);
bool account_can_submit(unsigned host);
void account_complete(uint32_t request, bool responded);
unsigned account_open(unsigned host);
bool account_is_finished(void);

/* Sets packet->request, ->transmission and ->random. */
void account_written(struct packet *packet);
void account_read(const struct packet *packet);
void account_lost(const struct packet *packet, enum fate fate);

void account_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
