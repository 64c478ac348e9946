/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A umad device that does what a test says: linked in place of libibumad/sys.c, it has one
 * port, mlx5_0 port 1 with umad0, and plays the kernel for whoever opens it. Nothing is
 * answered but by the test. All calls but device_file() may be made from any thread.
 *
 * A handle is a real descriptor, readable when there is something to read, so that event
 * loops can wait for it.
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
 * cmocka set-up and tear-down. The device begins with no faults; tear-down fails the test
 * where a descriptor is left open.
 */
int device_setup(void **state);
int device_teardown(void **state);
#define DEVICE_TEST(name) cmocka_unit_test_setup_teardown(name, device_setup, device_teardown)

/* --- what is written ------------------------------------------------------------ */

struct device_packet {
	int fd; /* the handle it was written to */
	struct ib_user_mad header;
	size_t length;  /* of the MAD */
	bool under_way; /* neither answered nor timed out */
	uint8_t mad[];
};

/* How many packets there were, and the n-th, counted from 0; it lives until tear-down. */
unsigned device_written(void);
const struct device_packet *device_packet(unsigned n);
/* Waits until there were so many: whether there are. */
bool device_wait_written(unsigned count, int timeout_ms);

/*
 * Called in the writing thread for each packet, no lock held: it may queue what there is to
 * read. What it returns, if not 0, is a negative errno for write() to give.
 */
typedef int device_write_fn(const struct device_packet *packet, void *arg);
void device_on_write(device_write_fn *hook, void *arg);

/*
 * Packets are not kept from now on: none is seen but by the hook, and gone when that returns.
 * So a million of them cost nothing.
 */
void device_forget_packets(void);

/*
 * As the kernel: a second request of the same class and lower half of the TID is refused
 * (EINVAL) while the first is under way, and answers that come late or twice are dropped. An
 * answer to a request that has timed out is one to a later request with that TID.
 */
void device_hold_tids(bool on);

/* --- what there is to read ------------------------------------------------------ */

/*
 * Answers a request as the node it went to: with its own bytes, but for the response bit,
 * the status (a directed route's direction bit is added), and size bytes of data at offset.
 */
void device_answer(const struct device_packet *request, uint16_t status, size_t offset,
		   const void *data, size_t size);
/* Any bytes of any length, from where the request went. */
void device_reply(const struct device_packet *request, const void *mad, size_t length);
/* The request comes back unanswered. */
void device_time_out(const struct device_packet *request);
/* Anything at all. header->length is filled in where it is 0. */
void device_queue(int fd, const struct ib_user_mad *header, const void *mad, size_t length);
/* What is queued from now on can be read so many microseconds later; 0 at once. */
void device_delay(unsigned microseconds);
/* Polls do not return from now on, as if their threads did not run; false: they do again. */
void device_hold_polls(bool on);

/* The request's MAD for an answer of one's own: the TID as the kernel completes it. */
void device_copy_mad(const struct device_packet *request, uint8_t mad[256]);

/* --- faults --------------------------------------------------------------------- */

enum device_call {
	DEVICE_OPEN,
	DEVICE_IOCTL,
	DEVICE_READ,
	DEVICE_WRITE,
	DEVICE_POLL,
	DEVICE_CALLS
};

/* The n-th call of that kind from now on (1 is the next) fails with that errno; 0 none. */
void device_fail(enum device_call call, unsigned n, int error);
/* The next read's raw result instead: a count that is not true, or a negative errno. */
void device_read_result(int fd, long result);
/* The hardware goes: poll says POLLERR, read and write EIO. */
void device_remove(void);
/*
 * Handles are numbers from 1024 on from now on, and no descriptors, as those of a simulator
 * that is preloaded.
 */
void device_high_handles(void);
/* A kernel without P_Key index and second registration: ENOTTY, shorter headers. */
void device_old_kernel(void);
/* The n-th allocation from now on fails; 0 none. */
void device_fail_malloc(unsigned n);
/* How many allocations there were so far. */
unsigned device_allocations(void);

/* --- the machine ---------------------------------------------------------------- */

/* A file of sysfs, by its real path: added, or another text; NULL removes it. */
void device_file(const char *path, const char *text);

struct device_agent {
	bool registered;
	uint8_t mgmt_class, class_version, rmpp_version;
	uint32_t oui;
	uint64_t methods[2];
};

/* Handles that are open, and the one opened last (-1 none). */
int device_handles(void);
int device_fd(void);
/* What was registered on a handle; its fields stay when it is unregistered. */
struct device_agent device_agent(int fd, unsigned id);
/* How often a handle was called since set-up. */
unsigned device_calls(enum device_call call);
/* The timeout of the latest poll, in milliseconds. */
int device_poll_timeout(void);

#endif
