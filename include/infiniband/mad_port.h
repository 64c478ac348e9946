/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_port.h - open a port for everything that a tool needs, and set its options.
 *
 *   struct ibmad_port *port;
 *
 *   if (mad_port_open(NULL, 0, &port) == 0) {
 *           mad_port_set(port, MAD_PORT_RATE, 1000);
 *           ...
 *           mad_rpc_close_port(port);
 *   }
 *
 * Threads: any number of threads may use one port. Calls return 0 or a negative errno, which
 * mad_failure_text() (mad_errors.h) puts in words.
 */
#ifndef INFINIBAND_MAD_PORT_H
#define INFINIBAND_MAD_PORT_H

#include <infiniband/mad.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Opens a port as mad_rpc_open_port() does, with the classes that the calls of this library
 * use: SMPs, SA, performance, congestion control and baseboard management. A class that cannot
 * be registered (no QP0, no permission) is reported as a warning, and only its requests fail,
 * with -EPROTONOSUPPORT. Close the port with mad_rpc_close_port().
 */
int mad_port_open(const char *ca_name, int portnum, struct ibmad_port **port);

/** Options of a port, with their defaults. mad_rpc_set_timeout() and mad_rpc_set_retries() set
 * the length and the number of attempts. */
enum mad_port_option {
	/** SM_Key of SA requests, in host order; 0. (smp_mkey_set() sets the M_Key of SMPs.) */
	MAD_PORT_SA_KEY = 1,
	/** Entry of the GID table that is the source of requests with a GRH; 0. */
	MAD_PORT_GID_INDEX,
	/** The longest response accepted, in bytes, at least 256; 64 MiB. */
	MAD_PORT_MAX_RESPONSE,
	/** Requests in flight by QP0, blocking calls included; 0: adapted to the fabric. */
	MAD_PORT_SMP_WINDOW,
	/** The same for QP1. */
	MAD_PORT_GMP_WINDOW,
	/** Requests in flight to one node, for SMPs and GMPs each; 0: adapted to the node. */
	MAD_PORT_DESTINATION_LIMIT,
	/** Requests a second, retransmissions included, in bursts of 1 ms; 0: no limit. */
	MAD_PORT_RATE
};

/** Sets an option; windows and limits also apply to queued requests. -EINVAL: no such option,
 * or value out of range. */
int mad_port_set(struct ibmad_port *port, enum mad_port_option option, uint64_t value);
/** Reads back an option as it was set, or its default. */
int mad_port_get(const struct ibmad_port *port, enum mad_port_option option, uint64_t *value);

/* --- one request of any size ------------------------------------------------------ */

/** A response that belongs to the caller of mad_rpc_message(). */
struct mad_message {
	uint8_t *mad;         /**< the whole MAD or RMPP message, as on the wire */
	size_t length;        /**< of mad, in bytes */
	unsigned status;      /**< of the response */
	uint64_t reserved[2]; /**< 0 */
};

/**
 * As mad_rpc(), with a payload of size bytes and a response of any length; what does not fit
 * into one MAD goes by RMPP. mad_message_free() frees the message. The errors are those of
 * mad_reply:error (mad_async.h), and -EINVAL and -EPROTONOSUPPORT.
 */
int mad_rpc_message(struct ibmad_port *port, ib_rpc_t *rpc, ib_portid_t *dport,
		    const void *payload, size_t size, struct mad_message *message);
/** Frees a message; NULL is a no-op. */
void mad_message_free(struct mad_message *message);

/* --- cancelling blocking calls ----------------------------------------------------- */

/**
 * Ends blocking calls of many requests, such as mad_fabric_discover(): all calls that have its
 * address in their options. All zero at first.
 */
struct mad_cancel {
	uint32_t is_set; /**< 1 after mad_cancel_set() */
	uint32_t reserved[3];
};

/**
 * Cancels the calls that have the token in their options: they fail with -ECANCELED within 100
 * ms, and so do later ones until the token is set to zero again. Async-signal-safe, any thread;
 * NULL is a no-op.
 */
void mad_cancel_set(struct mad_cancel *cancel);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_PORT_H */
