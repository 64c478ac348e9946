/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The fabric as a process: one thread waits for programs' packets and for the fabric's timers.
 */
#ifndef UMAD_SIM_SERVER_H
#define UMAD_SIM_SERVER_H

#include <stdio.h>

#include "output.h"
#include "umad_device.h"
#include "view.h"

struct sa_agent;
struct server;

enum connection_kind {
	CONNECTION_NEW,     /* no request yet */
	CONNECTION_UMAD,    /* an open umad device */
	CONNECTION_ISSM,    /* an open issm device, or a connection that waits for it */
	CONNECTION_UEVENTS, /* a program's socket for uevents */
	CONNECTION_OWNER,   /* the fabric ends when this connection does */
	CONNECTION_KERNEL   /* an HCA of the kernel */
};

struct connection {
	struct connection *next, *previous;
	struct connection *pending_next;
	struct connection *key_next;
	struct server *server;
	enum connection_kind kind;
	int fd;
	bool pending;            /* in server->pending */
	bool dirty;              /* has messages to send */
	bool waiting;            /* for space in the socket, or for the issm device */
	bool member;             /* uevents: member of the kernel's group */
	bool closed;             /* freed at the end of the round */
	uint64_t key;            /* umad: identifies the handle in ioctls */
	uint64_t order;          /* issm: the order of opens */
	struct handle *handle;   /* umad */
	int shared_fd;           /* umad: struct shared's file */
	struct host_port *host;  /* issm; NULL: the device was removed since */
	const struct view *view; /* uevents */
	struct kernel_device *kernel;
};

#define KEY_BUCKETS 4096

struct server {
	struct fabric fabric; /* first member: a pointer to the fabric is one to its server */
	struct sa_agent *sa_agent;
	struct view *views;
	struct kernel_device *kernel_devices; /* HCAs of a real kernel */
	struct connection *connections;
	struct connection *pending;             /* with messages to send, or closed */
	struct connection *by_key[KEY_BUCKETS]; /* umad handles */
	const char *folder;
	FILE *trace; /* writes lines into trace_output; NULL: none */
	struct output trace_output;
	struct output stats; /* written when the server ends */
	uint64_t start;      /* CLOCK_MONOTONIC at fabric.now 0 */
	uint64_t next_key;
	uint64_t uevents;   /* uevents sent so far */
	uint64_t repair_at; /* when to retry files of views that are missing */
	bool told_missing;  /* missing files were reported */
	int listener;
	int epoll;
	int spare; /* a descriptor kept for when no other is left to accept a connection */
	bool stop;
	bool closed; /* there are no connections, and will be none */
};

static inline struct server *server_of(struct fabric *fabric)
{
	return (struct server *)fabric;
}

struct server_options {
	uint64_t seed;
	bool bare;              /* no built-in SM */
	const char *topology;   /* for messages */
	const char *sm;         /* node of the SM; NULL: on the last CA */
	const char *trace;      /* file; NULL: none */
	const char *capture;    /* file; NULL: none */
	const char *capture_at; /* NODE/PORT; NULL: all ports */
	const char *stats;      /* file for the statistics of each node; NULL: none */
	double load;            /* traffic */
	double errors;
};

/*
 * Creates the fabric of a graph, which it takes over, without a socket: for checks. Returns 0
 * or a negative errno, with a reason in `why` (256 bytes). Call server_free() in either case.
 */
int server_prepare(struct server *server, struct graph *graph,
		   const struct server_options *options, char *why);

/* Creates the fabric of a graph, which it takes over, and opens its socket in the folder.
 * Returns 0 or a negative errno, with a reason in `why` (256 bytes). */
int server_init(struct server *server, struct graph *graph,
		const struct server_options *options, const char *folder, char *why);
/* Closes all connections; from now on, programs find no device. */
void server_disconnect(struct server *server);
void server_free(struct server *server);

/* Serves until server->stop is set (by a signal handler, or when the owner's connection ends).
 * Returns 0 or a negative errno. */
int server_run(struct server *server);

/* Handles everything that is ready, after waiting for it or at once. Returns 0 or a negative
 * errno. */
int server_round(struct server *server, bool wait);

/* Reads the clock into fabric->now. */
void server_tell_time(struct server *server);

/* --- requests.c ----------------------------------------------------------------- */

/* Handles a request of `length` bytes from a new connection, then closes the connection unless
 * it became a handle. */
void server_request(struct connection *connection, const void *bytes, size_t length);

/* Returns a program's default node: the first CA, or else the first node. */
uint32_t server_first_node(const struct graph *graph);

/* Catches up with what programs did earlier: data they wrote, and handles they closed. */
void server_catch_up(struct server *server);

/* --- connection.c --------------------------------------------------------------- */

struct connection *connection_add(struct server *server, int fd);
void connection_close(struct connection *connection);

/* Reads and handles everything a program wrote; false if it closed the connection. */
bool connection_read(struct connection *connection);

/* Sends queued messages, as many as the socket takes. */
void connection_flush(struct connection *connection);

/* Sets whether to call uevents_flush() or connection_flush() once the socket has space. */
void connection_wait_for_room(struct connection *connection, bool wait);

/* Turns a connection into the handle of an open device. Returns 0 or a negative errno. */
int connection_become_umad(struct connection *connection, struct host_port *host);

/* Gives the connection the issm device and replies; if another connection holds it, waits. */
void connection_become_issm(struct connection *connection, struct host_port *host);
/*
 * The device is removed: pending opens succeed, and the issm device is free when it comes back.
 */
void connections_lose_issm(struct server *server, const struct host_port *host);
bool issm_is_held(const struct server *server, const struct host_port *host);

/* Returns the open umad device with this key, or NULL. */
struct connection *connection_by_key(struct server *server, uint64_t key);

/* Sends queued messages, and frees closed connections. */
void connections_settle(struct server *server);

/* Sends a reply, with the descriptor `fd` unless it is -1. */
void connection_reply(struct connection *connection, const struct reply *reply,
		      const char *text, int fd);

/* --- outputs.c: trace, capture and statistics ------------------------------------ */

/* Opens the files of the options. Returns 0 or a negative errno, possibly with a reason in
 * `why` (256 bytes). */
int outputs_open(struct server *server, const struct server_options *options, char *why);

/* Writes what is pending for the readers of pipes; true if some is left. */
bool outputs_flush(struct server *server);

void outputs_write_stats(struct server *server);

/* Writes the rest and closes the files. The timers must already be freed. */
void outputs_close(struct server *server);

/* --- kernel_device.c ------------------------------------------------------------ */

/*
 * HCAs of a real kernel: the module sim_hca (tests/kernel/hca) creates an InfiniBand device for
 * each open file, and exchanges the packets of its ports with the fabric. Programs then use the
 * kernel's own umad devices.
 */

/*
 * Creates devices mlx5_0, mlx5_1 ... for these nodes ("NODE" or "NODE,NODE"; NULL: the first
 * CA). Returns when the kernel has registered all of them: 0, or a negative errno with a reason
 * in `why` (256 bytes).
 */
int kernel_devices_start(struct server *server, const char *nodes, char *why);
void kernel_devices_free(struct server *server);

/* Handles all messages of a device's connection; false if the kernel closed the device. */
bool kernel_device_read(struct connection *connection);

/* Reports the changes of a port to the kernel, with a driver's events. */
void kernel_devices_port_changed(struct server *server, uint32_t port);

/* Removes a node's device, or brings it back. */
void kernel_devices_node_changed(struct server *server, uint32_t node, bool present);

/* --- uevents.c ------------------------------------------------------------------ */

/* Sends listening programs the uevents of a node's device being added or removed. */
void uevents_device_changed(struct server *server, uint32_t node, bool present);

/* Tells a listener, if its socket has space, that uevents were lost. */
void uevents_flush(struct connection *connection);

#endif
