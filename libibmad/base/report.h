/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The library's messages, and each thread's last failure. Messages go to umad_set_log_hook()'s
 * hook, else to stderr. The report functions must be called without locks, because the hook may
 * call the library.
 */
#ifndef LIBIBMAD_REPORT_H
#define LIBIBMAD_REPORT_H

#include <infiniband/mad.h>
#include <infiniband/mad_errors.h>
#include <stdint.h>

/* "call" is the public function's name. Preserves errno. */
typedef void report_fn(const char *call, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

void report(const char *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends strerror(errno), and exits. */
void report_and_exit(const char *call, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* At level UMAD_LOG_INFO. The caller checks ibdebug. */
void report_debug(const char *call, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* With ibdebug: a request failed before any packet was written. */
void report_not_made(const char *call, int error);

/* Dumps a MAD to stderr. */
void report_bytes(const char *what, const uint8_t *mad, int length);

/* As report_bytes(), if ibdebug is 2 or more. */
static inline void report_packet(const char *what, const uint8_t *mad, int length)
{
	if (ibdebug > 1)
		report_bytes(what, mad, length);
}

/* The following are shown if ibdebug is 1 or more, or after madrpc_show_errors(1). */
void report_retry(unsigned left, const uint8_t *mad);
/* A response has a request's TID, but does not match it. */
void report_mismatch(unsigned lid, const uint8_t *mad);
void report_class(const char *call, int mgmt_class); /* the class is not registered */
/* For rdma-core's calls, which print nothing here: only with ibdebug. */
void report_class_debug(const char *call, int mgmt_class);
void report_status(const char *call, const char *destination, unsigned status);

/* The request failed, or its response is unusable. */
void report_failure(const char *call, const char *destination, int error);

void failure_store(const struct mad_failure *failure);
/*
 * Stores the failure (a negative errno) and returns it; stores nothing if error is 0 or more.
 * mgmt_class is the request's, or 0. All calls that rdma-core lacks return their errors through
 * this, and it precedes each callback that reports an error.
 */
int failure_of_call(int mgmt_class, int error);
/* As failure_of_call(), for a callback with a request's result. */
void failure_of_reply(const struct mad_reply *reply, int mgmt_class, unsigned method,
		      unsigned attribute);
/* Stores the failure of a call with no request in flight, and sets errno. */
void failure_refuse(int mgmt_class, int error);
/* As failure_refuse(), for a call that is not a request. */
void failure_refuse_call(enum mad_failure_kind kind, int mgmt_class, int error);

#endif
