/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_errors.h - errors in words: the status of a MAD, and why a call or request failed.
 *
 *   char text[MAD_ERROR_TEXT_SIZE];
 *
 *   if (!sa_rpc_call(port, record, &sa, &call, 0))
 *           fprintf(stderr, "%s\n", mad_failure_text(NULL, text, sizeof(text)));
 *
 * prints "SA: insufficient components", where strerror(errno) is "Input/output error". Each
 * thread has a last failure, also set before a callback that reports an error. The words may
 * change, so compare the numbers.
 */
#ifndef INFINIBAND_MAD_ERRORS_H
#define INFINIBAND_MAD_ERRORS_H

#include <infiniband/mad_async.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Enough for every text. */
#define MAD_ERROR_TEXT_SIZE 256

enum mad_failure_kind {
	MAD_FAILURE_REQUEST,  /**< a request, or mad_send_via() */
	MAD_FAILURE_OPEN,     /**< opening a port */
	MAD_FAILURE_REGISTER, /**< registering a class, also while opening a port */
	MAD_FAILURE_OTHER     /**< another call, or the end of a server and the like */
};

/** Why a call failed; may be copied. */
struct mad_failure {
	int error;           /**< negative errno; 0: nothing has failed */
	unsigned mgmt_class; /**< 0: there was no request */
	unsigned method;
	unsigned attribute;
	unsigned status;        /**< MAD status; 0 without a response */
	unsigned transmissions; /**< 0 with -EBADMSG and -EPROTO */
	unsigned elapsed_ms;    /**< from first transmission to completion */
	enum mad_failure_kind kind;
	uint32_t reserved[4];
};

/** The thread's last failure, never NULL, valid until the next. Success does not clear it. */
const struct mad_failure *mad_last_failure(void);

/** Writes a failure (NULL: the last one), such as "no response to 3 transmissions in 3.0 s". */
const char *mad_failure_text(const struct mad_failure *failure, char *buffer, size_t size);

/** Writes a host-order status (IBA 13.4.7, 15.2.3, 16.3), such as "busy; SA: no resources". */
const char *mad_status_text(unsigned mgmt_class, unsigned status, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_ERRORS_H */
