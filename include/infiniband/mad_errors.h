/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_errors.h - errors in words: the status of a MAD, and why a call or a request failed.
 *
 *   char text[MAD_ERROR_TEXT_SIZE];
 *
 *   if (!sa_rpc_call(port, record, &sa, &call, 0))
 *           fprintf(stderr, "%s\n", mad_failure_text(NULL, text, sizeof(text)));
 *
 * prints "SA: insufficient components", where strerror(errno) is "Input/output error".
 *
 * A call that fails stores its failure for the calling thread, and the library does the same
 * before each callback that reports an error. The words may change: compare the numbers.
 */
#ifndef INFINIBAND_MAD_ERRORS_H
#define INFINIBAND_MAD_ERRORS_H

#include <infiniband/mad_async.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A buffer of this size holds every text. */
#define MAD_ERROR_TEXT_SIZE 256

/** The kind of a call that failed. */
enum mad_failure_kind {
	MAD_FAILURE_REQUEST,  /**< a request, or a MAD that mad_send_via() sends */
	MAD_FAILURE_OPEN,     /**< a port was to be opened */
	MAD_FAILURE_REGISTER, /**< a class was to be registered, also while a port is opened */
	MAD_FAILURE_OTHER     /**< another call, or the end of a server and the like */
};

/** Why a call failed. A program may copy it. */
struct mad_failure {
	int error;           /**< a negative errno; 0: no call of this thread has failed */
	unsigned mgmt_class; /**< of the request, or to register; 0: there was no request */
	unsigned method;
	unsigned attribute;
	unsigned status;        /**< of the response; 0 without a response */
	unsigned transmissions; /**< of the request; 0 with -EBADMSG and -EPROTO */
	unsigned elapsed_ms;    /**< from the first transmission to the completion */
	enum mad_failure_kind kind;
	uint32_t reserved[4]; /**< 0 */
};

/**
 * The latest failure of this thread: of a call, or what a callback of the thread reported. As
 * with errno, success changes nothing. Never NULL; valid until the next failure.
 */
const struct mad_failure *mad_last_failure(void);

/**
 * Writes a failure in words, for example "no response to 3 transmissions in 3.0 s"; NULL
 * stands for mad_last_failure(). Returns buffer, or "" if size is 0. A text that does not fit
 * is cut.
 */
const char *mad_failure_text(const struct mad_failure *failure, char *buffer, size_t size);

/**
 * Writes a MAD's status (host order; IBA 13.4.7, and the class: 15.2.3, 16.3) in words, for
 * example "busy; SA: no resources". Only the lowest 8 bits of mgmt_class count.
 */
const char *mad_status_text(unsigned mgmt_class, unsigned status, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_ERRORS_H */
