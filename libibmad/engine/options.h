/* SPDX-License-Identifier: BSD-2-Clause */

/* The options of a port that hold for later requests. Threads may read and set them at once. */
#ifndef LIBIBMAD_OPTIONS_H
#define LIBIBMAD_OPTIONS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct options {
	atomic_int timeout_ms; /* of an attempt; 0: the process's */
	atomic_int retries;    /* the number of attempts; 0 and less: the process's */
	_Atomic uint64_t m_key;
	_Atomic uint64_t sa_key;
	atomic_uint gid_index;
	atomic_size_t max_reply;
};

void options_init(struct options *options);

/* The timeout and the attempts of a request; NULL: the process's. */
int options_timeout_ms(const struct options *options);
int options_attempts(const struct options *options);

#endif
