/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The address of the SA of a port: that of the port's subnet manager, from the PortInfo of the
 * port. A PortInfo is trusted for a second. After that it is read again, because another subnet
 * manager may have become the master. The read does not leave the port.
 */
#ifndef LIBIBMAD_SA_ADDRESS_H
#define LIBIBMAD_SA_ADDRESS_H

#include "calls/port.h"

#include <infiniband/mad.h>

/* How often one request follows the SA to another address. */
#define SA_MOVES_MOST 3

/* The address that was read within the last second; false: there is none. */
bool sa_address_known(const struct ibmad_port *port, ib_portid_t *sa);

/* Takes the address from a PortInfo, and remembers it. 0, or -ENXIO: it has no valid LID. */
int sa_address_learn(const struct ibmad_port *port, const uint8_t *port_info, ib_portid_t *sa);

/* Reads the PortInfo, and waits for it. 0 or a negative errno, which
 * mad_last_failure() has, too. */
int sa_address_read(const struct ibmad_port *port, int timeout_ms, ib_portid_t *sa);

/*
 * Whether a request ended as it does if no SA is at its address any more: without a response,
 * or with the response of a kernel that has no agent for the class.
 */
bool sa_address_is_doubtful(int error, unsigned status);

#endif
