/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The library's messages, and the last failed call of each thread. Messages go to the hook of
 * umad_set_log_hook(), or, if none is set, to stderr. Callers of report functions hold no lock,
 * because the hook may call the library.
 */
#ifndef LIBIBMAD_REPORT_H
#define LIBIBMAD_REPORT_H

#include <infiniband/mad.h>
#include <infiniband/mad_errors.h>
#include <stdint.h>

/* A message of the public function "call". errno does not change. */
typedef void report_fn(const char *call, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

void report(const char *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds the text of errno, and ends the process. */
void report_and_exit(const char *call, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The same with the level UMAD_LOG_INFO. The caller checks ibdebug. */
void report_debug(const char *call, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* With ibdebug: a request that no packet was written for. */
void report_not_made(const char *call, int error);

/* Writes a MAD that is sent or received to stderr. */
void report_bytes(const char *what, const uint8_t *mad, int length);

/* The same, if ibdebug is 2 or more. */
static inline void report_packet(const char *what, const uint8_t *mad, int length)
{
	if (ibdebug > 1)
		report_bytes(what, mad, length);
}

/* The next messages appear if ibdebug is 1 or more, or after madrpc_show_errors(1). */
void report_retry(unsigned left, const uint8_t *mad);
/* A response has the transaction ID of a request, and is not for that request. */
void report_mismatch(unsigned lid, const uint8_t *mad);
void report_class(const char *call, int mgmt_class); /* the class is not registered */
/* The same in calls of rdma-core, which has no such message: only with ibdebug. */
void report_class_debug(const char *call, int mgmt_class);
void report_status(const char *call, const char *destination, unsigned status);

/* A request without a response that can be used. */
void report_failure(const char *call, const char *destination, int error);

void failure_store(const struct mad_failure *failure);
/*
 * Stores the failure of a call that returns a negative errno, and returns the error; stores
 * nothing if error is 0 or more. mgmt_class is that of the call's request, or 0. Each call that
 * rdma-core does not have returns its error by this function, and the library calls it before
 * each callback that reports an error.
 */
int failure_of_call(int mgmt_class, int error);
/* The same for a callback that reports the result of a request. */
void failure_of_reply(const struct mad_reply *reply, int mgmt_class, unsigned method,
		      unsigned attribute);
/* Stores the failure of a call that has no request in flight, and sets errno. */
void failure_refuse(int mgmt_class, int error);
/* The same for a call that is not a request. */
void failure_refuse_call(enum mad_failure_kind kind, int mgmt_class, int error);

#endif
