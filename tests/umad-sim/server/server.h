/* SPDX-License-Identifier: BSD-2-Clause */

/* The fabric as a process: one thread that waits for programs' packets and for the fabric's
 * timers. */
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
	CONNECTION_OWNER,   /* the fabric ends with it */
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
	int shared_fd;           /* umad: of its struct shared */
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
	uint64_t uevents;   /* how many were sent */
	uint64_t repair_at; /* when files of views that are missing are written again */
	bool told_missing;  /* that files are missing */
	int listener;
	int epoll;
	int spare; /* a descriptor for accepting a connection when no other is left */
	bool stop;
	bool closed; /* no connection exists, and none will */
};

static inline struct server *server_of(struct fabric *fabric)
{
	return (struct server *)fabric;
}

struct server_options {
	uint64_t seed;
	bool bare;              /* no built-in manager */
	const char *topology;   /* for messages */
	const char *sm;         /* node of the SM; NULL: on the last CA */
	const char *trace;      /* file; NULL: none */
	const char *capture;    /* file; NULL: none */
	const char *capture_at; /* NODE/PORT; NULL: all ports */
	const char *stats;      /* file for the statistics of each node; NULL: none */
	double load;            /* traffic */
	double errors;
};

/* Makes the fabric of a graph, which it takes over, without a socket: for checks. 0 or a
 * negative errno; `why` (of 256 bytes) then has a reason. server_free() is necessary in both
 * cases. */
int server_prepare(struct server *server, struct graph *graph,
		   const struct server_options *options, char *why);

/* Makes the fabric of a graph, which it takes over, and opens its socket in the folder. 0 or a
 * negative errno; `why` (of 256 bytes) then has a reason. */
int server_init(struct server *server, struct graph *graph,
		const struct server_options *options, const char *folder, char *why);
/* Closes all connections: programs find no device from now on. */
void server_disconnect(struct server *server);
void server_free(struct server *server);

/* Serves until server->stop is set (by a signal handler, or when the owner's connection ends).
 * 0 or a negative errno. */
int server_run(struct server *server);

/* Handles all that is ready, after waiting or at once. 0 or a negative errno. */
int server_round(struct server *server, bool wait);

/* Reads the clock into fabric->now. */
void server_tell_time(struct server *server);

/* --- requests.c ----------------------------------------------------------------- */

/* Handles a request of `length` bytes from a new connection. The connection is closed
 * afterwards unless it became a handle. */
void server_request(struct connection *connection, const void *bytes, size_t length);

/* The default node of a program: the first CA, or else the first node. */
uint32_t server_first_node(const struct graph *graph);

/* Handles what programs did before: data that they wrote, and handles that they closed. */
void server_catch_up(struct server *server);

/* --- connection.c --------------------------------------------------------------- */

struct connection *connection_add(struct server *server, int fd);
void connection_close(struct connection *connection);

/* Reads and handles all that a program wrote; false: the program closed the connection. */
bool connection_read(struct connection *connection);

/* Sends queued messages, as far as the socket takes them. */
void connection_flush(struct connection *connection);

/* Whether uevents_flush() or connection_flush() must be called when the socket has space. */
void connection_wait_for_room(struct connection *connection, bool wait);

/* Makes a connection the handle of an open device. 0 or a negative errno. */
int connection_become_umad(struct connection *connection, struct host_port *host);

/* Gives the connection the issm device, and replies; if another one has it, the connection
 * waits. */
void connection_become_issm(struct connection *connection, struct host_port *host);
/* The device is removed: opens that wait succeed, and the issm device that comes back is free.
 */
void connections_lose_issm(struct server *server, const struct host_port *host);
bool issm_is_held(const struct server *server, const struct host_port *host);

/* The open umad device with this key; NULL: no such device. */
struct connection *connection_by_key(struct server *server, uint64_t key);

/* Sends queued messages, and frees closed connections. */
void connections_settle(struct server *server);

/* Sends a reply, with the descriptor `fd` unless it is -1. */
void connection_reply(struct connection *connection, const struct reply *reply,
		      const char *text, int fd);

/* --- outputs.c: trace, capture and statistics ------------------------------------ */

/* Opens the files of the options. 0 or a negative errno; `why` (of 256 bytes) may have a
 * reason.
 */
int outputs_open(struct server *server, const struct server_options *options, char *why);

/* Writes what waits for the readers of pipes; true: more waits. */
bool outputs_flush(struct server *server);

void outputs_write_stats(struct server *server);

/* Writes the rest, and closes the files. The timers have been freed. */
void outputs_close(struct server *server);

/* --- kernel_device.c ------------------------------------------------------------ */

/*
 * HCAs of a real kernel: the module sim_hca (tests/kernel/hca) makes an InfiniBand device of
 * each open file, and the packets of its ports come from and go to the fabric. Programs then
 * use the kernel's own umad devices.
 */

/*
 * Makes devices mlx5_0, mlx5_1 ... of these nodes ("NODE" or "NODE,NODE"; NULL: the first CA).
 * Returns when the kernel has registered all of them. 0 or a negative errno; `why` (of 256
 * bytes) then has a reason.
 */
int kernel_devices_start(struct server *server, const char *nodes, char *why);
void kernel_devices_free(struct server *server);

/* Handles all messages of a device's connection; false: the kernel closed the device. */
bool kernel_device_read(struct connection *connection);

/* A port changed: tells the kernel by the events of a driver. */
void kernel_devices_port_changed(struct server *server, uint32_t port);

/* A node's device is removed, or comes back. */
void kernel_devices_node_changed(struct server *server, uint32_t node, bool present);

/* --- uevents.c ------------------------------------------------------------------ */

/* Sends programs that listen the uevents of a node's device that is added or removed. */
void uevents_device_changed(struct server *server, uint32_t node, bool present);

/* Tells a listener that uevents were lost, if its socket has space. */
void uevents_flush(struct connection *connection);

#endif
