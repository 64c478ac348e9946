/* SPDX-License-Identifier: BSD-2-Clause */

/* What fake.c, the files and faults of the fake machine, and fake_device.c share. */
#ifndef TESTS_UNIT_FAKE_STATE_H
#define TESTS_UNIT_FAKE_STATE_H

#include "fake.h"
#include "sys.h"

#include <pthread.h>

/* The C library's functions, which neither count nor fail. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *memory);

/* Guards all that calls of the seam change, which a test may make from several threads. */
extern pthread_mutex_t fake_lock;

/* --- with the lock --------------------------------------------------------------- */

/* Counts a call of the seam: returns 0, or the negative errno of the fault. */
int begin_call(void);
int open_file(const char *path, int flags);
int close_file(int fd);
ssize_t read_file(int fd, void *buf, size_t size);

/* --- without it ------------------------------------------------------------------ */

void before_open(const char *path);
void devices_begin(void);
/* Closes what is open; returns how many handles that were. */
int devices_end(void);

#endif
