/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_errors.h - errors in words: the status of a MAD, the result of a request, and the reason
 * why the last blocking call of this thread failed.
 *
 *   char text[MAD_ERROR_TEXT_SIZE];
 *
 *   if (!sa_rpc_call(port, record, &sa, &call, 0))
 *           fprintf(stderr, "%s\n", mad_last_failure_text(text, sizeof(text)));
 *
 * prints "SA: insufficient components", where strerror(errno) is "Input/output error".
 *
 * Each function that composes a text writes it to the caller's buffer of size bytes, terminated
 * and without a newline, and returns the buffer. A text that does not fit is cut. With a size
 * of 0 the functions return "". The words may change in a later version, so programs must
 * compare the numbers.
 *
 * Memory. The functions allocate nothing. The failure of mad_last_failure() belongs to the
 * library, and is valid until a call of the same thread fails.
 *
 * Threads. Any number of threads may call these functions at once. Each thread has a last
 * failure of its own.
 */
#ifndef INFINIBAND_MAD_ERRORS_H
#define INFINIBAND_MAD_ERRORS_H

#include <infiniband/mad_async.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A buffer of this size holds every text. */
#define MAD_ERROR_TEXT_SIZE 256

/**
 * A MAD's status, in host order, in words: the common part (IBA 13.4.7), and the part that the
 * class defines (SubnAdm: IBA 15.2.3; DevMgt: 16.3). "; " separates the texts of the two parts,
 * for example "busy; SA: no resources". Values that the specification does not define are in
 * hex, for example "SA: status 0x0900". 0 is "success". The call uses the lowest 8 bits of
 * mgmt_class. The direction bit of a directed route is ignored.
 */
const char *mad_status_text(unsigned mgmt_class, unsigned status, char *buffer, size_t size);

/**
 * The result of a request in words: for example "success", "no response to 3 transmissions in
 * 3.0 s", "cancelled", "the device is gone", or the status of its response as
 * mad_status_text(). For callbacks of mad_async_submit().
 */
const char *mad_reply_text(const struct mad_reply *reply, char *buffer, size_t size);

/** The kind of a call that failed. */
enum mad_failure_kind {
	MAD_FAILURE_REQUEST,  /**< a request, or a MAD that mad_send_via() sends */
	MAD_FAILURE_OPEN,     /**< a port was to be opened */
	MAD_FAILURE_REGISTER, /**< a class was to be registered, also while a port is opened */
	MAD_FAILURE_OTHER     /**< another call */
};

/** Why a call failed. Members may be added at the end. */
struct mad_failure {
	/**
	 * A negative errno: an error of the call, an error of struct mad_reply, or
	 * -EINVAL           an argument is wrong
	 * -EPROTONOSUPPORT  the class is not registered on the port
	 * -ENXIO            the port has no subnet manager
	 * -EBADMSG, -EPROTO the response does not have the form that the call needs
	 * 0                 no call of this thread has failed
	 */
	int error;
	/** The class of the request, or the class to register; 0: the call sent no request. */
	unsigned mgmt_class;
	unsigned method;
	unsigned attribute;
	unsigned status;        /**< of the response; 0 without a response */
	unsigned transmissions; /**< of the request; 0 with -EBADMSG and -EPROTO */
	unsigned elapsed_ms;    /**< from the first transmission to the completion */
	enum mad_failure_kind kind;
};

/**
 * The failure of the last failed call of this thread. As for errno, a call that fails stores
 * its failure, and a call that succeeds changes nothing. The failure is valid until a call of
 * this thread fails. Never NULL.
 *
 * These calls store their failure:
 *
 *   - mad_rpc(), mad_rpc_rmpp(), mad_rpc_message() and mad_send_via()
 *   - smp_query_via(), smp_set_via(), smp_query_status_via(), smp_set_status_via(),
 *     sa_rpc_call(), pma_query_via(), performance_reset_via(), cc_query_status_via(),
 *     cc_config_status_via(), bm_call_via(), ib_vendor_call_via(), ib_path_query_via(),
 *     ib_node_query_via(), ib_resolve_smlid_via() and the other ib_resolve calls
 *   - the blocking calls of mad_sa.h, mad_fabric_discover(), mad_counters_read(),
 *     mad_counters_reset(), mad_counters_read_details() and mad_fabric_counters_read()
 *   - mad_rpc_open_port() and mad_rpc_open_port2(), with the kind MAD_FAILURE_OPEN or
 *     MAD_FAILURE_REGISTER
 *   - mad_register_client_via() and mad_register_server_via(), with the kind
 *     MAD_FAILURE_REGISTER
 *   - mad_receive_via(), mad_respond_via(), mad_async_create(), mad_alloc(), mad_encode(),
 *     mad_build_pkt() and str2drpath(), with the kind MAD_FAILURE_OTHER
 *   - the variants of these calls without a port
 *
 * The result of an asynchronous request is in its mad_reply.
 */
const struct mad_failure *mad_last_failure(void);

/**
 * mad_last_failure() in words: as mad_reply_text() for a request, or for example "the port
 * cannot be opened: No such device".
 */
const char *mad_last_failure_text(char *buffer, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_ERRORS_H */
