/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The umad devices of the fake machine (fake.h): packets, messages, faults. A test of libibmad
 * begins with device_setup(): a machine with one port, mlx5_0 port 1 with umad0, which
 * simulates the kernel. All responses come from the test. All calls except device_file() may be
 * made from any thread.
 *
 * A handle is a real descriptor, readable when a message can be read, so that event loops can
 * wait for it. It is less than 2048.
 */
#ifndef TESTS_UNIT_FAKE_DEVICE_H
#define TESTS_UNIT_FAKE_DEVICE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <infiniband/umad.h>

/*
 * cmocka set-up and tear-down. The device begins with no faults. Tear-down fails the test if a
 * descriptor is open.
 */
int device_setup(void);
int device_teardown(void);

/* --- what is written ------------------------------------------------------------ */

struct device_packet {
	int fd;         /* the handle on which it was written */
	size_t length;  /* of the MAD */
	bool in_flight; /* no response and no timeout yet */
	struct ib_user_mad header;
	uint8_t mad[];
};

/* The number of packets, and the n-th, counted from 0; valid until tear-down. */
unsigned device_written(void);
const struct device_packet *device_packet(unsigned n);
/* Waits for so many packets; returns whether they were written. */
bool device_wait_written(unsigned count, int timeout_ms);

/*
 * Called in the writing thread for each packet, without a lock: the hook may queue messages. If
 * its result is not 0, write() fails with this negative errno.
 */
typedef int device_write_fn(const struct device_packet *packet, void *arg);
void device_on_write(device_write_fn *hook, void *arg);

/*
 * From now on, packets are not stored: only the hook sees a packet, until it returns. So a
 * million packets take no memory.
 */
void device_forget_packets(void);

/*
 * The kernel's rule: an agent's second request of the same class and lower half of the TID
 * fails (EINVAL) while the first is in flight, and late or duplicate responses are dropped. A
 * response to a request that timed out completes a later request with that TID.
 */
void device_hold_tids(bool on);

/* --- messages to read ----------------------------------------------------------- */

/*
 * Responds to a request as its destination: with the request's bytes, except the response bit,
 * the status (with the direction bit of a directed route), and size bytes of data at offset.
 */
void device_respond(const struct device_packet *request, uint16_t status, size_t offset,
		    const void *data, size_t size);
/* Any bytes of any length, from the destination of the request. */
void device_reply(const struct device_packet *request, const void *mad, size_t length);
/* The kernel reports that the request timed out. */
void device_time_out(const struct device_packet *request);
/* Any message. If header->length is 0, it is set. */
void device_queue(int fd, const struct ib_user_mad *header, const void *mad, size_t length);
/* Messages queued from now on become readable after so many microseconds; 0 at once. */
void device_delay(unsigned microseconds);
/*
 * From now on polls do not return, as if their threads did not run; false: they return again.
 */
void device_hold_polls(bool on);

/* The request's MAD for a response that the test builds: with the TID as the kernel sets it. */
void device_copy_mad(const struct device_packet *request, uint8_t mad[256]);

/* --- faults --------------------------------------------------------------------- */

enum device_call {
	DEVICE_OPEN,
	DEVICE_IOCTL,
	DEVICE_READ,
	DEVICE_WRITE,
	DEVICE_POLL,
	DEVICE_FILES, /* opening, reading and listing files of sysfs */
	DEVICE_CALLS  /* any call */
};

/* The n-th call of that kind from now on (1 is the next) fails with that errno; 0 none. */
void device_fail(enum device_call call, unsigned n, int error);
/* The result of the next read: a wrong length, or a negative errno. */
void device_read_result(int fd, long result);
/* The device is removed: poll reports POLLERR, read and write fail with EIO. */
void device_remove(void);
/*
 * From now on handles are numbers from 1024 on, not descriptors, as with a preloaded simulator.
 */
void device_high_handles(void);
/* A kernel without P_Key index and second registration ioctl: ENOTTY, shorter headers. */
void device_old_kernel(void);
/* The n-th allocation from now on fails; 0 none. */
void device_fail_malloc(unsigned n);
/* The number of allocations so far. */
unsigned device_allocations(void);

/* --- the machine ---------------------------------------------------------------- */

/* A file of sysfs, by its real path: adds it, or changes its text; NULL removes it. */
void device_file(const char *path, const char *text);

struct device_agent {
	bool registered;
	uint8_t mgmt_class, class_version, rmpp_version;
	uint32_t oui;
	uint64_t methods[2];
};

/* The number of open handles, and the latest one (-1 none). */
int device_handles(void);
int device_fd(void);
/* The registration on a handle; its fields stay after it is unregistered. */
struct device_agent device_agent(int fd, unsigned id);
/* The number of calls since set-up. */
unsigned device_calls(enum device_call call);
/* The timeout of the latest poll, in milliseconds. */
int device_poll_timeout(void);

#endif
