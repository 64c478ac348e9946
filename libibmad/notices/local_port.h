/* SPDX-License-Identifier: BSD-2-Clause */

/* What notices say of the local port. */
#ifndef LIBIBMAD_LOCAL_PORT_H
#define LIBIBMAD_LOCAL_PORT_H

#include <infiniband/mad_notice.h>
#include <stdbool.h>

/* info is a PortInfo. */
void local_port_decode(const uint8_t *info, struct mad_notice_port *port);
bool local_port_is_same(const struct mad_notice_port *a, const struct mad_notice_port *b);
/*
 * Whether the SM has to be asked again: it knows the subscriber by LID and GID, and a link that
 * was down may have another SM.
 */
bool local_port_needs_subscription(const struct mad_notice_port *before,
				   const struct mad_notice_port *after);

#endif
