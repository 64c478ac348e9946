/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The machine on which the tests of libibmad run: the simulated fabric of umad-sim in this
 * process, with umad devices and sysfs on one of its nodes, in virtual time (virtual.h). The
 * libraries under test are those that are installed, with their own sys.c; they and the test
 * use the C library as on a real machine.
 *
 *	machine_start("star:8", NULL);
 *	machine_rule("slow 3ms on n4");
 *	port = mad_rpc_open_port(NULL, 0, classes, 3);
 *	...
 *	machine_stop();
 *
 * All calls may be made from any thread, those of a hook (machine_on_arrival) only where it
 * says so.
 */
#ifndef TESTS_MACHINE_H
#define TESTS_MACHINE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MACHINE_MAD  256
#define MACHINE_HOST "host" /* the node whose devices the program sees */

/*
 * A fabric by umad-sim's words ("fat-tree:4,2", the name of a file), or "star:N": the switch
 * "switch" with "host", "n1" to "nN" and "sm", whose LIDs are 1, 11 to 10 + N, and 2; the
 * switch has LID 3. "nodes" are those whose devices the program sees, as for umad-sim --node;
 * NULL: "host". The fabric has an SM and an SA. Time begins. The seed decides random faults.
 */
void machine_start(const char *topology, const char *nodes);
/* Fails the test if a thread, an open handle or another descriptor is left. */
void machine_stop(void);
/* cmocka fixture of "star:8". */
int machine_setup(void);
int machine_teardown(void);

/* A rule for faults and delays, as umad-sim(1) describes them. */
void machine_rule(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The LID of a node's first port; its GUID. */
uint16_t machine_lid(const char *node);
uint64_t machine_guid(const char *node);
/*
 * Sets a counter of a port, by its number in enum mad_counter up to MAD_COUNTER_QP1_DROPPED, in
 * the unit of the wire.
 */
void machine_set_counter(const char *node, unsigned port, unsigned counter, uint64_t value);
/* Microseconds since machine_start(). */
int64_t machine_us(void);
/* The thread waits: usleep(), by virtual time. */
void machine_pass(int64_t us);
/* The path of a file of sysfs where the program's is: to change it. */
const char *machine_path(const char *path);

/* --- packets -------------------------------------------------------------------- */

/* A MAD that arrives at a node. */
struct machine_mad {
	const char *node;
	bool at_host;        /* at the program's own node */
	uint8_t *bytes;      /* MACHINE_MAD, which the hook may change */
	uint16_t slid, dlid; /* host order; the hook may change slid, grh and sgid */
	uint8_t sl;
	uint32_t qp, qkey;
	uint16_t pkey;
	bool grh;
	uint8_t *sgid, *dgid; /* of the GRH */
	uint64_t count;       /* of those that arrived at this node before */
	int64_t us;
};

enum machine_verdict {
	MACHINE_PASS,  /* the node (or the program) handles it */
	MACHINE_DROP,  /* it is lost */
	MACHINE_REPLY, /* the hook has made the response of it */
};

/*
 * Called for each MAD that arrives, with the lock of the fabric: it may call machine_reply(),
 * machine_send(), machine_deliver() and machine_receive(), and no other function of this header
 * or of the libraries.
 */
typedef enum machine_verdict machine_arrival_fn(struct machine_mad *mad, void *arg);
void machine_on_arrival(machine_arrival_fn *hook, void *arg);

/*
 * Makes a response of a request: method, the direction of a directed route, status; data at an
 * offset.
 */
enum machine_verdict machine_reply(struct machine_mad *mad, uint16_t status, size_t offset,
				   const void *data, size_t size);
/*
 * A node sends a MAD of its own to the host: a request, a trap, a response that nobody expects.
 * "after": microseconds from now.
 */
void machine_send(const char *node, const uint8_t bytes[MACHINE_MAD], int64_t after);

/*
 * What the kernel of the program gets as the response to a request: bytes of any length, as if
 * its RMPP had put them together, "after" microseconds from now. It comes from the request's
 * destination, or is dropped if the request has ended. With length 0 the kernel reports a
 * timeout at that time.
 */
void machine_deliver(const struct machine_mad *request, const void *bytes, size_t length,
		     int64_t after);
/*
 * The program can read a message with any header, a struct ib_user_mad (umad.h), and any bytes
 * on one of its handles, whether or not a kernel would send it.
 */
void machine_receive(const void *header, const void *bytes, size_t length);

/* How many requests arrived at a node; NULL: at all but the host. */
unsigned machine_requests(const char *node);

/* --- system calls --------------------------------------------------------------- */

enum machine_call {
	MACHINE_OPEN, /* of a umad device; the next four: on its handle */
	MACHINE_IOCTL,
	MACHINE_READ,
	MACHINE_WRITE,
	MACHINE_POLL,
	MACHINE_FILES,  /* opening and listing files of sysfs */
	MACHINE_MALLOC, /* allocating memory; fails with ENOMEM */
	MACHINE_MMAP,
	MACHINE_EVENTFD, /* creating an eventfd; the next: a timerfd */
	MACHINE_TIMERFD,
	MACHINE_EPOLL, /* creating an epoll descriptor, and adding a descriptor to it */
	MACHINE_CALLS
};

/*
 * The n-th call of a kind from now on (1 is the next) fails with that errno; 0: none;
 * MACHINE_ALL: each of them.
 */
#define MACHINE_ALL UINT_MAX
void machine_fail(enum machine_call call, unsigned n, int error);
/*
 * MACHINE_IOCTL, MACHINE_WRITE, MACHINE_FILES, MACHINE_POLL: calls take that long from now on,
 * an ioctl or a poll after its result is known. A packet is sent at the beginning, even if the
 * call is to fail.
 */
void machine_slow_call(enum machine_call call, int64_t us);
/* The next read returns this length, or a negative errno, whatever the message; once. */
void machine_read_result(ssize_t result);
/* The header of the latest MAD that was written, a struct ib_user_mad (umad.h). */
const void *machine_written(void);
/* The number of calls since the start. */
unsigned machine_calls(enum machine_call call);
/* The number of open handles. */
int machine_handles(void);

/*
 * The next message that the program reads has this length, cut or with zeros behind it, and
 * this status, an errno.
 */
void machine_deform(size_t length, unsigned status);

/* A kernel without P_Key index and second registration: ENOTTY. */
void machine_old_kernel(void);
/* From now on, handles are numbers that are no descriptors, as with some simulators. */
void machine_high_handles(void);

#endif
