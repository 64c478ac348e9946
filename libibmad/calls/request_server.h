/* SPDX-License-Identifier: BSD-2-Clause */

/* Servers of an engine, for the calls that process it. */
#ifndef LIBIBMAD_REQUEST_SERVER_H
#define LIBIBMAD_REQUEST_SERVER_H

#include "calls/engine.h"

#include <infiniband/mad_server.h>

/* All: the core is locked.
 *
 * Hands requests to their servers' callbacks, "most" at most. This thread processes the engine.
 * The lock is dropped meanwhile. Returns how many.
 */
int servers_call(struct mad_async *engine, unsigned most);
/* What mad_server_get_stats() tells. */
void server_count(const struct mad_server *server, struct mad_server_stats *stats);
/* Sends BUSY to those that asked too much, "most" at most. The lock is dropped meanwhile. */
void servers_refuse(struct mad_async *engine, unsigned most);
/* The engine is destroyed: stops its servers. The lock is dropped meanwhile. */
void servers_end(struct mad_async *engine);

#endif
