/* SPDX-License-Identifier: BSD-2-Clause */

#include "bytes.h"
#include "check.h"
#include "rpc.h"

#include <signal.h>
#include <sys/wait.h>

struct ibmad_port *open_mad_port(const struct port *port)
{
	struct ibmad_port *opened =
		mad_rpc_open_port((char *)(uintptr_t)port->ca_name, port->portnum, NULL, 0);

	expect(opened);
	expect(mad_register_client_via(CLASS, 1, opened) == 0);
	return opened;
}

ib_portid_t address_of(const struct port *to)
{
	ib_portid_t address;

	ib_portid_set(&address, to->lid, 1, (int)IB_DEFAULT_QP1_QKEY);
	address.grh_present = to->ethernet;
	memcpy(address.gid, to->gid, sizeof(address.gid));
	return address;
}

ib_rpc_t request_of(int method, unsigned attribute, int timeout_ms)
{
	ib_rpc_t rpc = {
		.mgtclass = CLASS,
		.method = method,
		.attr = {.id = attribute},
		.dataoffs = DATA,
		.datasz = SEGMENT,
		.timeout = timeout_ms,
		.oui = OUI,
	};

	return rpc;
}

static void put_sender(uint8_t *data, const struct ib_user_mad *umad)
{
	memset(data, 0, 32);
	put32(data, be16toh(umad->addr.lid));
	put32(data + 4, be32toh(umad->addr.qpn));
	put32(data + 8, umad->addr.grh_present);
	if (umad->addr.grh_present)
		memcpy(data + 16, umad->addr.gid, 16);
}

/* The server responds to the first of two requests after the second has arrived. */
static void serve_second(struct ibmad_port *port, const struct ib_user_mad *umad)
{
	static struct ib_user_mad *first;
	size_t size = umad_size() + MAD;

	if (!first) {
		first = allocate(size);
		memcpy(first, umad, size);
		return;
	}
	expect_equal(mad_respond_via(first, NULL, 0, port), 0);
	free(first);
	first = NULL;
}

static void serve_one(struct ibmad_port *port, struct ib_user_mad *umad, uint32_t count)
{
	uint8_t *mad = umad_get_mad(umad);
	uint8_t *data = mad + DATA;
	unsigned attribute = mad_get_field(mad, 0, IB_MAD_ATTRID_F);

	if (attribute == COUNT)
		put32(data, count);
	else if (attribute == LENGTH)
		put32(data, umad->length - (uint32_t)umad_size() - DATA);
	else if (attribute == SENDER)
		put_sender(data, umad);
	if (attribute == TWICE)
		serve_second(port, umad);
	else if (attribute != IGNORE)
		expect_equal(
			mad_respond_via(umad, NULL, attribute == REFUSE ? REFUSED : 0, port),
			0);
}

static void serve(void *ready)
{
	struct ibmad_port *port = mad_rpc_open_port(there.ca_name, there.portnum, NULL, 0);
	void *umad;

	expect(port);
	expect(mad_register_server_via(CLASS, 1, NULL, OUI, port) >= 0);
	expect_equal(write(*(int *)ready, "", 1), 1);
	for (uint32_t count = 1;; count++) {
		umad = mad_receive_via(NULL, -1, port);
		expect(umad);
		serve_one(port, umad, count);
		mad_free(umad);
	}
}

int start_server(void)
{
	int ready[2];
	int child;
	char byte;

	expect_equal(pipe(ready), 0);
	child = start_child(serve, &ready[1]);
	close(ready[1]);
	expect_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return child;
}

void stop_server(int child)
{
	expect_equal(waitpid(child, &(int){0}, WNOHANG), 0); /* the child has no error so far */
	expect_equal(kill(child, SIGKILL), 0);
	expect_equal(waitpid(child, &(int){0}, 0), child);
}
