/* SPDX-License-Identifier: BSD-2-Clause */

/* Data that the files of the fake machine share: the test's and the library's side. */
#ifndef TESTS_UNIT_FAKE_DEVICE_STATE_H
#define TESTS_UNIT_FAKE_DEVICE_STATE_H

#include "fake.h"
#include "sys.h"

#include <pthread.h>

#define MAX_FD      2048
#define FIRST_HIGH  1024
#define MAX_AGENTS  32
#define MAX_DEVICES 64
#define ONE_MAD     256

struct message {
	struct message *next, *previous;
	int64_t ready_ns;
	struct ib_user_mad header;
	size_t length;
	uint8_t mad[];
};

struct handle {
	struct fake_device *device;
	int number;            /* the library's handle */
	int fd;                /* a timer that expires when a message can be read */
	int64_t expires_ns;    /* 0: never */
	bool pkey_index, used; /* an agent was registered: it is too late for the P_Key index */
	struct device_agent agents[MAX_AGENTS];
	struct message *queue, *last; /* in the order in which they become readable */
	bool raw_read;
	long raw_result;
};

extern struct fake_state {
	char root[32]; /* the folder of sysfs */
	bool manual;
	bool pristine; /* sysfs is as device_setup() makes it */
	void (*before_open)(const char *path);
	bool (*before)(const char *name, const char *other);
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t written, polls_go;
	struct fake_device devices[MAX_DEVICES];
	int device_count;
	bool files[MAX_FD]; /* open ones of sysfs, by descriptor */
	struct handle *handles[MAX_FD];
	int first_handle; /* -1: handles are descriptors */
	int handle_count, last_fd;
	struct device_packet **packets;
	unsigned packet_count;
	device_write_fn *on_write;
	void *on_write_arg;
	bool hold_tids, hold_polls, forget_packets, failed;
	int poll_timeout;
	unsigned delay_us;
	struct {
		unsigned calls, fail_in;
		int error;
	} calls[DEVICE_CALLS + 1];
} fake;

static inline void lock(void)
{
	pthread_mutex_lock(&fake.lock);
}

static inline void unlock(void)
{
	pthread_mutex_unlock(&fake.lock);
}

/* Set-up of a machine, whose devices are manual or not. */
int begin_machine(bool manual);

/* The lock is held for these. */

/* Counts a call of the seam: returns 0, or the negative errno of the fault. */
int begin_call(enum device_call call);
int open_file(const char *path, int flags);
int close_file(int fd);
ssize_t read_file(int fd, void *buf, size_t size);
/* NULL if there is no such device. */
struct fake_device *find_device(const char *name);
int64_t now_ns(void);
/* Makes the handle readable when a message can be read, not before. */
void arm(struct handle *handle);
void close_handle(struct handle *handle);
/* Whether the kernel takes a response to one of them as a response to the other. */
bool same_transaction(const struct device_packet *a, const struct device_packet *b);

/* The upper half of the TID of an agent's requests, which the kernel sets. */
uint32_t upper_tid(const struct device_packet *request);

/* The C library's functions, without the faults of device_fail_malloc(). */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *memory);

#endif
