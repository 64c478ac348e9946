/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_port.h - open a port for all that a tool needs; port options; long messages; cancelling.
 *
 *   struct ibmad_port *port;
 *
 *   if (mad_port_open(NULL, 0, &port) == 0) {
 *           mad_port_set(port, MAD_PORT_RATE, 1000);
 *           ...
 *           mad_rpc_close_port(port);
 *   }
 *
 * Any number of threads may use a port. Calls return 0 or a negative errno (mad_errors.h).
 */
#ifndef INFINIBAND_MAD_PORT_H
#define INFINIBAND_MAD_PORT_H

#include <infiniband/mad.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Opens a port as mad_rpc_open_port() does, for SMPs, SA, performance, congestion control and
 * baseboard management. If a class is not available (no QP0, no permission), a warning is
 * logged and its requests fail with -EPROTONOSUPPORT. Close the port with mad_rpc_close_port().
 */
int mad_port_open(const char *ca_name, int portnum, struct ibmad_port **port);

/** Options and their defaults; see also mad_rpc_set_timeout() and mad_rpc_set_retries(). */
enum mad_port_option {
	/** SM_Key of SA requests, in host order; 0 */
	MAD_PORT_SA_KEY = 1,
	/** source GID index of requests with a GRH; 0 */
	MAD_PORT_GID_INDEX,
	/** longest response accepted, in bytes, at least 256; 64 MiB */
	MAD_PORT_MAX_RESPONSE,
	/** SMPs in flight, including blocking calls; 0: adaptive */
	MAD_PORT_SMP_WINDOW,
	/** GMPs in flight; 0: adaptive */
	MAD_PORT_GMP_WINDOW,
	/** requests in flight to a node, for SMPs and GMPs each; 0: adaptive */
	MAD_PORT_DESTINATION_LIMIT,
	/** requests per second, with retransmissions, in bursts of 1 ms; 0: no limit */
	MAD_PORT_RATE
};

/** Windows and limits also apply to queued requests. -EINVAL: wrong option or value. */
int mad_port_set(struct ibmad_port *port, enum mad_port_option option, uint64_t value);
/** Returns an option as it was set, or its default. */
int mad_port_get(const struct ibmad_port *port, enum mad_port_option option, uint64_t *value);

/** A response, owned by the caller. */
struct mad_message {
	uint8_t *mad; /**< MAD or RMPP message as on the wire */
	size_t length;
	unsigned status; /**< MAD status */
	uint64_t reserved[2];
};

/** As mad_rpc(), with payload and response of any length. Free with mad_message_free(). */
int mad_rpc_message(struct ibmad_port *port, ib_rpc_t *rpc, ib_portid_t *dport,
		    const void *payload, size_t size, struct mad_message *message);
/** NULL is a no-op. */
void mad_message_free(struct mad_message *message);

/** A token in the options of blocking calls such as mad_fabric_discover(). Zero it first. */
struct mad_cancel {
	uint32_t is_set; /**< 1 after mad_cancel_set() */
	uint32_t reserved[3];
};

/** Makes calls with this token fail with -ECANCELED, until zeroed. Async-signal-safe. */
void mad_cancel_set(struct mad_cancel *cancel);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_PORT_H */
