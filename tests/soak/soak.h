/* SPDX-License-Identifier: BSD-2-Clause */

/* The parts of the soak test, and what they record. */
#ifndef TESTS_SOAK_SOAK_H
#define TESTS_SOAK_SOAK_H

#include <infiniband/mad_async.h>
#include <infiniband/mad_sa.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define CLASS (IB_VENDOR_RANGE2_START_CLASS + 5)
#define OUI   0x001405
#define DATA  IB_VENDOR_RANGE2_DATA_OFFS

#define MOST_SERVERS 8

/* The options of all parts. */
#define ATTEMPTS 3

extern struct soak_options {
	const char *folder;
	const char *name;
	char *device; /* NULL: the first one */
	uint64_t seed;
	unsigned rate;       /* requests a second of the process */
	unsigned timeout_ms; /* of an attempt */
	unsigned lids;       /* there are nodes at LIDs 1 .. lids; 0: no SMPs and no SA */
	bool steady;         /* ports stay open, also at rest */
	ib_portid_t servers[MOST_SERVERS];
	unsigned server_count;
} options;

/* --- parts ---------------------------------------------------------------------- */

/* A part runs in its own thread, in a loop: open, work, close. */
struct part {
	const struct part_kind *kind;
	pthread_t thread;
	uint64_t random;
	bool is_open;
	void *state; /* of the kind of part */
};

struct part_kind {
	const char *name;
	/* False: it cannot be opened now. */
	bool (*open)(struct part *part);
	/*
	 * Works for so many milliseconds, or until parts_stop() is called. False: the device is
	 * removed.
	 */
	bool (*work)(struct part *part, unsigned ms);
	/* Completes all requests, and stays open. */
	void (*drain)(struct part *part);
	void (*close)(struct part *part);
};

extern const struct part_kind engine_part, blocking_part, server_part, notices_part,
	monitor_part, hook_part, forks_part;

/* Start and end the threads. */
void parts_start(struct part *parts, unsigned count);
void parts_stop(struct part *parts, unsigned count);
void parts_close(struct part *parts, unsigned count);
/* Whether the parts must stop. */
bool stopping(void);
/* Sleeps, at most until the parts must stop. */
void sleep_ms(unsigned ms);
uint64_t now_ms(void);

uint64_t random_next(uint64_t *state);
unsigned random_below(uint64_t *state, unsigned limit);

/* --- requests ------------------------------------------------------------------- */

/* The kind of a request. */
enum request_kind {
	REQUEST_NODE_INFO,
	REQUEST_ROUTE, /* NodeInfo of the local node, by a directed route */
	REQUEST_COUNTERS,
	REQUEST_VENDOR,
	REQUEST_LONG, /* a message of several MADs */
	REQUEST_PATHS,
	REQUEST_NODES,
	REQUEST_KINDS
};

#define LONGEST 5000

struct request {
	enum request_kind kind;
	ib_rpc_t rpc;
	ib_portid_t to;
	uint64_t nonce;
	size_t size;
	uint8_t data[LONGEST];
	struct mad_sa_query query; /* for REQUEST_PATHS and REQUEST_NODES */
	uint8_t record[64];
};

void request_make(struct request *request, uint64_t *random);
/* Opens a port with the classes of these requests. */
struct ibmad_port *open_port(void);

/* --- the record ----------------------------------------------------------------- */

/* A request that was submitted; each must complete once. */
typedef uintptr_t token_t;

/* 0: too many requests are open. */
token_t record_begin(const struct request *request);
/* Withdraws a request that was rejected: it counts as completed with the error. */
void record_refused(token_t token, int error);
/* error is 0 or a negative errno. data is the response's, if there was one. */
void record_end(token_t token, int error, const uint8_t *data, size_t size, unsigned elapsed);
/* Records a failure. */
void record_wrong(const char *text, ...) __attribute__((format(printf, 1, 2)));

/* Counted events. */
extern struct record_counts {
	atomic_ulong restarts, served, notices, events, packets, children;
} counts;

/*
 * Writes a line with the process's memory and descriptors. The line of a rest follows a line
 * that was written just before, of the process at work.
 */
void record_open_file(void);
void record_line(unsigned rest, bool at_rest);
/* No request is open; false if there was a failure. */
bool record_close(void);

#endif
