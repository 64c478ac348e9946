/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The fabric as a process: one thread that waits for programs' packets and for the fabric's
 * timers alike.
 */
#ifndef UMAD_SIM_SERVER_H
#define UMAD_SIM_SERVER_H

#include <stdio.h>

#include "umad_device.h"
#include "view.h"

struct administration;
struct server;

enum connection_kind {
	CONNECTION_NEW,     /* has said nothing yet */
	CONNECTION_UMAD,    /* an open umad device */
	CONNECTION_ISSM,    /* an open issm device, or one that waits for it */
	CONNECTION_UEVENTS, /* a program's socket for uevents */
	CONNECTION_OWNER    /* the fabric ends with it */
};

struct connection {
	struct connection *next;
	struct server *server;
	enum connection_kind kind;
	int fd;
	bool dirty;              /* has messages to send */
	bool waiting;            /* for room to send, or for the issm device */
	bool member;             /* uevents: of the kernel's group */
	bool closed;             /* to be freed at the end of the round */
	uint64_t key;            /* umad: names it in ioctls */
	uint64_t order;          /* issm: who came first */
	struct handle *handle;   /* umad */
	int shared_fd;           /* umad: of its struct shared */
	struct host_port *host;  /* issm */
	const struct view *view; /* uevents */
};

struct server {
	struct fabric fabric; /* first: from a fabric to its server */
	struct administration *administration;
	struct view *views;
	struct connection *connections;
	const char *folder;
	FILE *stats;    /* written when the server ends; NULL: no such file */
	uint64_t start; /* CLOCK_MONOTONIC at fabric.now 0 */
	uint64_t next_key;
	uint64_t uevents; /* how many there were */
	int listener;
	int epoll;
	int spare; /* a descriptor kept for saying that there is none left */
	bool stop;
};

static inline struct server *server_of(struct fabric *fabric)
{
	return (struct server *)fabric;
}

struct server_options {
	uint64_t seed;
	bool bare;              /* no built-in manager */
	const char *sm;         /* where it sits; NULL: on the last CA */
	const char *trace;      /* file; NULL: none */
	const char *capture;    /* file; NULL: none */
	const char *capture_at; /* NODE/PORT; NULL: all ports */
	const char *stats;      /* file for what each node had to do; NULL: none */
	double load;            /* traffic */
	double errors;
};

/*
 * Makes the fabric of a graph (which it takes over) and opens its socket in the folder. 0 or a
 * negative errno; `why` (of 256 bytes) then says more.
 */
int server_init(struct server *server, struct graph *graph,
		const struct server_options *options, const char *folder, char *why);
void server_free(struct server *server);

/* Serves until server->stop is set (by a signal's handler, an owner that went). 0 or a negative
 * errno. */
int server_run(struct server *server);

/* Handles what there is, having waited for it or not. 0 or a negative errno. */
int server_round(struct server *server, bool wait);

/* Reads the clock into fabric->now. */
void server_tell_time(struct server *server);

/* --- requests.c ----------------------------------------------------------------- */

/*
 * Answers a request of `length` bytes that came over a new connection; the connection is closed
 * afterwards unless it became a handle.
 */
void server_request(struct connection *connection, const void *bytes, size_t length);

/* What programs did before comes first: what they wrote, and handles that they closed. */
void server_catch_up(struct server *server);

/* --- connection.c --------------------------------------------------------------- */

struct connection *connection_add(struct server *server, int fd);
void connection_close(struct connection *connection);

/* Reads and handles all that a program wrote; false: it closed the connection. */
bool connection_read(struct connection *connection);

/* Sends what is queued, as far as the socket takes it. */
void connection_flush(struct connection *connection);

/* Whether uevents_flush() or connection_flush() is to be called once there is room to send. */
void connection_wait_for_room(struct connection *connection, bool wait);

/* Makes a connection the handle of an open device. 0 or a negative errno. */
int connection_become_umad(struct connection *connection, struct host_port *host);

/* Whether the issm device is the connection's now; if not, it waits. */
bool connection_become_issm(struct connection *connection, struct host_port *host);
bool issm_is_held(const struct server *server, const struct host_port *host);

/* A reply; `fd` goes with it unless it is -1. */
void connection_reply(struct connection *connection, const struct reply *reply,
		      const char *text, int fd);

/* --- uevents.c ------------------------------------------------------------------ */

/* Tells the programs that listen that a node's device came or goes. */
void uevents_device_changed(struct server *server, uint32_t node, bool present);

/* Tells a listener that uevents were lost, if there is room to send. */
void uevents_flush(struct connection *connection);

#endif
