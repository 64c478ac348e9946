/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef LIBIBMAD_RPC_H
#define LIBIBMAD_RPC_H

#include <stddef.h>
#include <stdint.h>

/* The MAD of a response, "length" bytes of it. Called with no lock held. */
typedef void response_fn(const uint8_t *mad, size_t length);

/* Each response to a blocking request, whatever its status, is handed to the hook; NULL: none.
 */
void rpc_on_response(response_fn *hook);

#endif
