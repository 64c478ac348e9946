/* SPDX-License-Identifier: BSD-2-Clause */

/* The HTTP server of ibfabric-exporter: it hands out the latest text. */
#ifndef IBFABRIC_EXPORTER_SERVER_H
#define IBFABRIC_EXPORTER_SERVER_H

#include <stdbool.h>
#include <zlib.h>

/* Seconds of a clock that is never set. */
double now(void);

/* Ends the program if memory is NULL. */
void *or_exit(void *memory);

/* Begins a text: for the server, or on the standard output. NULL after a message, if there is
 * no descriptor or memory. */
gzFile begin_text(bool is_served);

/* The text is the latest one, and is handed out until the time "end", by now(). False after a
 * message, if it could not be written. */
bool end_text(gzFile text, double begin, double end);

/* A thread responds. Without an address, on all addresses. False: they are not numbers. */
bool start_server(const char *address, const char *port);

#endif
