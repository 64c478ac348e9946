/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * servers DEVICE: a server of CLASS on all GIDs of a device, until it is killed. A response has
 * the GID that the request was sent to, and as many bytes as the request states (nodes.h).
 * Prints "@ serves DEVICE".
 */
#include "check.h"
#include "nodes.h"

#include <infiniband/mad_server.h>
#include <infiniband/umad_ext.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT 65536 /* requests whose GID is known: as many as a server holds */

static const char *device;
/* The entries of the GID table that requests were sent to, by their transaction ID. */
static uint8_t gid_index[KEPT];

/*
 * struct mad_request does not have the GID that the request was sent to; the header of the
 * packet does.
 */
static void packet(const struct umad_packet_info *info, void *user)
{
	(void)user;
	if (info->direction == UMAD_PACKET_RECEIVED && !info->umad->status)
		gid_index[get32((const uint8_t *)info->mad + TID_LOW) % KEPT] =
			info->umad->addr.gid_index;
}

static void respond(struct mad_server *server, struct mad_request *request, int error,
		    void *arg)
{
	uint8_t *data = arg, gid[16];
	size_t size = request ? request->modifier : 0;

	(void)server;
	(void)error;
	if (!request)
		return;
	if (request->attribute != NAME || size < NAME_BYTES || size > LARGEST ||
	    request->data_size < 4) {
		mad_request_free(request);
		return;
	}
	read_gid(device, gid_index[request->tid % KEPT], gid);
	write_name(data, size, gid, get32(request->data));
	if (mad_request_respond(request, 0, data, size) < 0)
		mad_request_free(request);
}

int main(int argc, char **argv)
{
	const struct mad_server_options options = {
		.mgmt_class = CLASS,
		.oui = OUI,
		.methods = {MAD_SERVER_METHOD(METHOD_GET) | MAD_SERVER_METHOD(METHOD_ANY)},
		.rmpp_version = 1,
		.limit = 65536,
	};
	struct mad_server *server;
	struct mad_async *async;
	struct ibmad_port *port;

	if (argc != 2) {
		fputs("usage: servers DEVICE\n", stderr);
		return 2;
	}
	device = argv[1];
	umad_set_packet_hook(packet, NULL);
	port = mad_rpc_open_port(argv[1], 1, NULL, 0);
	expect(port);
	async = mad_async_create(port);
	expect(async);
	expect_equal(mad_server_start(async, &options, respond, allocate(LARGEST), &server), 0);
	printf("@ serves %s\n", device);
	fflush(stdout);
	expect(mad_async_wait(async, -1) >= 0);
	return 1;
}
