/* SPDX-License-Identifier: BSD-2-Clause */

/* The engine's clock, and a heap of deadlines that knows which comes next. */
#ifndef LIBIBMAD_DEADLINE_H
#define LIBIBMAD_DEADLINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEVER INT64_MAX

/* Microseconds of CLOCK_MONOTONIC: no one sets it, and no signal stops it. */
int64_t clock_us(void);

/* Milliseconds from now to then for poll(), begun ones counted whole, most at the most. */
int ms_until(int64_t then, int64_t now, int most);

/* A condition variable, and a wait for it until a time of this clock, or NEVER. */
void clock_cond_init(pthread_cond_t *cond);
void clock_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until);

/* Part of what has a deadline. */
struct deadline {
	int64_t at;
	unsigned place; /* in the heap, counted from 1; 0: not in it */
};

struct deadlines {
	struct deadline **heap; /* its first entry is not used */
	unsigned count;
	unsigned room;
};

/* Room for so many, so that deadline_set() cannot fail. 0 or -ENOMEM. */
int deadlines_reserve(struct deadlines *deadlines, unsigned count);
void deadlines_free(struct deadlines *deadlines);

/* When the next one is due; NEVER without any. */
int64_t deadlines_next(const struct deadlines *deadlines);
/* The next one, if it is due; NULL otherwise. It stays in the heap. */
struct deadline *deadlines_due(const struct deadlines *deadlines, int64_t now);

/* Puts it in, or moves it. There must be room. */
void deadline_set(struct deadlines *deadlines, struct deadline *deadline, int64_t at);
/* Takes it out, if it is in. */
void deadline_clear(struct deadlines *deadlines, struct deadline *deadline);

#endif
