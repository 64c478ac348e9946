/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Virtual time, for the program under test, its threads and the simulated fabric. The clock
 * stands still while a thread runs. When all threads wait, it moves to the next event: a
 * packet, a timer, or the end of a wait. A test of hours takes no time, and a slow machine
 * changes nothing.
 *
 * The linker puts functions of this folder in place of the C library's (CMakeLists.txt lists
 * them): those that read the clock, wait, create threads, and open and poll descriptors. A
 * thread that waits by any other function counts as running, so time stands still meanwhile.
 * That is right for waitpid(2), and for a mutex that a running thread holds.
 */
#ifndef TESTS_MACHINE_VIRTUAL_H
#define TESTS_MACHINE_VIRTUAL_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

/* What else happens in time: the simulated fabric. All are called with the lock. */
struct virtual_source {
	void (*set_time)(uint64_t ns);
	uint64_t (*next)(void);   /* when something happens; UINT64_MAX: never */
	void (*run)(void);        /* makes happen all that is due */
	short (*revents)(int fd); /* of a handle; -1: the descriptor is none */
};

/* Time begins at 0. The seed decides which of several waiting threads a signal wakes. */
void virtual_begin(const struct virtual_source *source, uint64_t seed);
/* From now on the C library's time. Returns the number of threads that are left. */
unsigned virtual_end(void);
uint64_t virtual_ns(void);

/*
 * The lock of the clock and the fabric, recursive. The functions that stand in for the C
 * library's do nothing but call it in a thread that has the lock.
 */
void virtual_lock(void);
void virtual_unlock(void);
/* Whether the calling thread is the program's, which sees the machine. */
bool virtual_sees_machine(void);

/* Without the lock: poll(2), by virtual time, of handles and descriptors. */
int virtual_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
/* A descriptor is closed, which may be one of timerfd_create(2). */
void virtual_forget_timer(int fd);

#endif
