/* SPDX-License-Identifier: BSD-2-Clause */

/* MADs of a test class, between the two ports, sent with libibumad. */
#ifndef CONFORMANCE_MADS_H
#define CONFORMANCE_MADS_H

#include "environment.h"

/* A zeroed umad buffer for a MAD or message of that many bytes. */
void *new_umad(size_t bytes);

/* Makes the header of a MAD of CLASS, without RMPP; the data do not change. */
void set_mad(void *umad, uint8_t method, uint32_t tid);
/* The same for another class, of version 1. */
void set_mad_of(void *umad, uint8_t mgmt_class, uint8_t method, uint32_t tid);
/* A Get of the SA's class. The kernel may hold back requests of this class. */
void set_sa_get(void *umad, uint32_t tid);
/* The kernel sends it by RMPP, in segments. */
void set_rmpp(void *umad);

/* Addresses it from one port to QP1 of the other, as the link layer requires. */
void set_destination(void *umad, const struct port *to);
/* The same by LID and GID, on ports with LIDs. */
void set_grh(void *umad, const struct port *to);

/* Turns a received MAD into its response, and addresses it to the sender. */
void make_response(void *umad);

/* The lower and the upper half of the transaction ID; the method and the status. */
uint32_t tid_of(void *umad);
uint32_t tid_high_of(void *umad);
uint8_t method_of(void *umad);
uint16_t status_of(void *umad);

/* Bytes that depend on their offset in a message. */
void fill(void *umad, size_t from, size_t to);
void expect_filled(void *umad, size_t from, size_t to);

/* Agents of CLASS: a client, and a server of a method. */
int client(int fd, uint8_t rmpp_version);
int server(int fd, uint8_t method, uint8_t rmpp_version);
/* The same of the SA's class; the server's method is Get. */
int sa_client(int fd);
int sa_server(int fd);

/* Starts a child that responds to each request of METHOD_ANY that the other port gets. */
int start_responder(void);

/* Sends and receives, or ends the check; a received MAD must have so many bytes. */
void send_mad(int fd, int agent, void *umad, size_t length, int timeout_ms, int retries);
int receive_mad(int fd, void *umad, size_t room, int agent);

#endif
