/* SPDX-License-Identifier: BSD-2-Clause */

/* Data that the two sides of the fake device share: the test's and the library's. */
#ifndef TESTS_UNIT_FAKE_DEVICE_STATE_H
#define TESTS_UNIT_FAKE_DEVICE_STATE_H

#include "fake_device.h"
#include "fake_device_files.h"

#include <pthread.h>

#define MAX_FD     2048
#define FIRST_HIGH 1024
#define MAX_AGENTS 32
#define ONE_MAD    256

struct message {
	struct message *next, *previous;
	int64_t ready_ns;
	struct ib_user_mad header;
	size_t length;
	uint8_t mad[];
};

struct handle {
	int number;         /* the library's handle */
	int fd;             /* a timer that expires when a message can be read */
	int64_t expires_ns; /* 0: never */
	bool pkey_index;
	struct device_agent agents[MAX_AGENTS];
	struct message *queue, *last; /* in the order in which they become readable */
	bool raw_read;
	long raw_result;
};

extern struct device_state {
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t written, polls_go;
	struct handle *handles[MAX_FD];
	int handle_count, last_fd;
	struct device_packet **packets;
	unsigned packet_count;
	device_write_fn *on_write;
	void *on_write_arg;
	bool hold_tids, hold_polls, forget_packets, gone, old_kernel, high_handles;
	int poll_timeout;
	unsigned delay_us;
	struct {
		unsigned calls, fail_in;
		int error;
	} calls[DEVICE_CALLS];
} device;

static inline void lock(void)
{
	pthread_mutex_lock(&device.lock);
}

static inline void unlock(void)
{
	pthread_mutex_unlock(&device.lock);
}

/* The lock is held for these. */

int64_t now_ns(void);
/* Makes the handle readable when a message can be read, not before. */
void arm(struct handle *handle);
void close_handle(struct handle *handle);
/* Whether the kernel takes a response to one of them as a response to the other. */
bool same_transaction(const struct device_packet *a, const struct device_packet *b);

/* The C library's functions, without the faults of device_fail_malloc(). */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);

#endif
