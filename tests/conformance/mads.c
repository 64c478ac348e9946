/* SPDX-License-Identifier: BSD-2-Clause */

#include "mads.h"
#include "bytes.h"
#include "check.h"

#include <string.h>
#include <unistd.h>

#define QP1       1
#define QKEY      0x80010000u
#define HOP_LIMIT 64
#define PATIENCE  30000 /* ms for a MAD that must arrive */

#define SA         0x03
#define SA_VERSION 2

#define VERSION     2
#define STATUS      4
#define TID         8
#define RMPP_FLAGS  26
#define RMPP_END    36
#define RMPP_ACTIVE 1

static uint8_t *bytes_of(void *umad)
{
	return umad_get_mad(umad);
}

void *new_umad(size_t bytes)
{
	return allocate(umad_size() + bytes);
}

void set_mad_of(void *umad, uint8_t mgmt_class, uint8_t method, uint32_t tid)
{
	uint8_t *mad = bytes_of(umad);

	memset(mad, 0, RMPP_END);
	mad[0] = 1; /* base version */
	mad[1] = mgmt_class;
	mad[VERSION] = 1; /* class version */
	mad[3] = method;
	put32(mad + TID + 4, tid);
}

void set_mad(void *umad, uint8_t method, uint32_t tid)
{
	set_mad_of(umad, CLASS, method, tid);
	put32(bytes_of(umad) + DATA - 4, OUI);
}

void set_sa_get(void *umad, uint32_t tid)
{
	set_mad_of(umad, SA, METHOD_GET, tid);
	bytes_of(umad)[VERSION] = SA_VERSION;
}

void set_rmpp(void *umad)
{
	bytes_of(umad)[RMPP_FLAGS] |= RMPP_ACTIVE;
}

void set_grh(void *umad, const struct port *to)
{
	struct ib_mad_addr address = {.hop_limit = HOP_LIMIT};

	umad_set_addr(umad, to->lid, QP1, 0, (int)QKEY);
	memcpy(address.gid, to->gid, sizeof(address.gid));
	umad_set_grh(umad, &address);
}

void set_destination(void *umad, const struct port *to)
{
	umad_set_addr(umad, to->lid, QP1, 0, (int)QKEY);
	umad_set_grh(umad, NULL);
	if (to->ethernet)
		set_grh(umad, to);
}

void make_response(void *umad)
{
	struct ib_mad_addr *address = umad_get_mad_addr(umad);
	uint8_t *mad = bytes_of(umad);

	mad[3] = (uint8_t)((mad[3] == METHOD_SET ? METHOD_GET : mad[3]) | RESPONSE);
	address->qkey = htobe32(QKEY);
	address->path_bits = 0;
}

uint32_t tid_of(void *umad)
{
	return get32(bytes_of(umad) + TID + 4);
}

uint32_t tid_high_of(void *umad)
{
	return get32(bytes_of(umad) + TID);
}

uint8_t method_of(void *umad)
{
	return bytes_of(umad)[3];
}

uint16_t status_of(void *umad)
{
	return (uint16_t)(get32(bytes_of(umad) + STATUS) >> 16);
}

static uint8_t byte_at(size_t place)
{
	return (uint8_t)(place * 31 + place / 251);
}

void fill(void *umad, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		bytes_of(umad)[i] = byte_at(i);
}

void expect_filled(void *umad, size_t from, size_t to)
{
	size_t i = from;

	while (i < to && bytes_of(umad)[i] == byte_at(i))
		i++;
	expect_equal(i, to);
}

static int agent_for(int fd, uint8_t rmpp_version, long *methods)
{
	int id = umad_register(fd, CLASS, 1, rmpp_version, methods);

	expect(id >= 0);
	return id;
}

int client(int fd, uint8_t rmpp_version)
{
	return agent_for(fd, rmpp_version, NULL);
}

int server(int fd, uint8_t method, uint8_t rmpp_version)
{
	long methods[16 / sizeof(long)] = {0};

	methods[method / (8 * sizeof(long))] |= (long)(1UL << method % (8 * sizeof(long)));
	return agent_for(fd, rmpp_version, methods);
}

static int sa_agent_for(int fd, long *methods)
{
	int id = umad_register(fd, SA, SA_VERSION, 0, methods);

	expect(id >= 0);
	return id;
}

int sa_client(int fd)
{
	return sa_agent_for(fd, NULL);
}

int sa_server(int fd)
{
	long methods[16 / sizeof(long)] = {1L << METHOD_GET};

	return sa_agent_for(fd, methods);
}

void send_mad(int fd, int agent, void *umad, size_t length, int timeout_ms, int retries)
{
	expect_equal(umad_send(fd, agent, umad, (int)length, timeout_ms, retries), 0);
}

int receive_mad(int fd, void *umad, size_t room, int agent)
{
	int length = (int)room;

	expect_equal(umad_recv(fd, umad, &length, PATIENCE), agent);
	return length;
}

static void respond_for_ever(void *ready)
{
	int to = open_port(&there), id = server(to, METHOD_ANY, 0);
	void *umad = new_umad(MAD);

	expect_equal(write(*(int *)ready, "", 1), 1);
	for (;;) {
		int length = MAD;

		expect_equal(umad_recv(to, umad, &length, -1), id);
		make_response(umad);
		/* EINVAL: the retransmission came before the first response was sent */
		if (umad_send(to, id, umad, MAD, 0, 0))
			expect_equal(errno, EINVAL);
	}
}

int start_responder(void)
{
	int ready[2];
	int child;
	char byte;

	expect_equal(pipe(ready), 0);
	child = start_child(respond_for_ever, &ready[1]);
	expect_equal(read(ready[0], &byte, 1), 1);
	return child;
}
