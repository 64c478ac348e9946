/* SPDX-License-Identifier: BSD-2-Clause */

/* The options of a server on an engine, and its agent. */
#ifndef LIBIBMAD_SERVER_OPTIONS_H
#define LIBIBMAD_SERVER_OPTIONS_H

#include "engine/link.h"

#include <infiniband/mad_server.h>
#include <stdbool.h>

bool server_options_are_valid(const struct mad_server_options *options);
/* Where the data of requests and responses begin. */
unsigned server_data_offset(const struct mad_server_options *options);
/* Registers the agent: its ID, or a negative errno. */
int server_register(const struct link *link, const struct mad_server_options *options);

#endif
