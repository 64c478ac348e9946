/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Shows umad.h alone: an agent, a packet that is sent, and the packet that comes back.
 *
 * Prints the NodeInfo of a node: Get(NodeInfo) by a directed route, which needs no subnet
 * manager. The route is the list of ports by which the packet leaves each node.
 *
 *   node-info          this node
 *   node-info 1 2      leaves this node by port 1, and the next node by its port 2
 */

#include "program.h"

#include <infiniband/umad.h>
#include <infiniband/umad_sm.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TIMEOUT_MS 1000
#define RETRIES    2

/* NodeInfo (IBA 14.2.5.3), as it lies in the SMP's data. */
struct node_info {
	uint8_t base_version, class_version, node_type, num_ports;
	__be64 system_guid, node_guid, port_guid;
	__be16 partition_cap, device_id;
	__be32 revision;
	__be32 local_port_vendor_id;
} __attribute__((packed));

static void print(const struct node_info *info)
{
	static const char *const types[] = {"?", "channel adapter", "switch", "router"};

	printf("%s, ports: %u, GUID 0x%016" PRIx64 ", entered by port %u\n",
	       types[info->node_type < 4 ? info->node_type : 0], info->num_ports,
	       be64toh(info->node_guid), be32toh(info->local_port_vendor_id) >> 24);
}

int main(int argc, char **argv)
{
	int port, agent, i, length = sizeof(struct umad_smp);
	struct umad_smp *smp;
	void *umad;

	if (argc > UMAD_SMP_MAX_HOPS) {
		fprintf(stderr, "a route has at most %d hops\n", UMAD_SMP_MAX_HOPS - 1);
		return 1;
	}
	port = umad_open_port(NULL, UMAD_ANY_PORT);
	if (port < 0) {
		perror("umad_open_port");
		return 1;
	}
	agent = umad_register(port, UMAD_CLASS_SUBN_DIRECTED_ROUTE, 1, 0, NULL);
	if (agent < 0) {
		perror("umad_register");
		return 1;
	}

	umad = umad_alloc(1, umad_size() + sizeof(*smp));
	if (!umad) {
		perror("umad_alloc");
		return 1;
	}
	smp = umad_get_mad(umad);
	smp->base_version = UMAD_BASE_VERSION;
	smp->mgmt_class = UMAD_CLASS_SUBN_DIRECTED_ROUTE;
	smp->class_version = 1;
	smp->method = UMAD_METHOD_GET;
	smp->attr_id = htobe16(UMAD_SM_ATTR_NODE_INFO);
	smp->tid = htobe64(1);
	smp->dr_slid = htobe16(0xffff); /* a directed route from end to end */
	smp->dr_dlid = htobe16(0xffff);
	smp->hop_cnt = (uint8_t)(argc - 1);
	for (i = 1; i < argc; i++) {
		int hop = read_number(argv[i], 1, UINT8_MAX - 1);

		if (hop < 0) {
			fprintf(stderr, "no port has the number %s\n", argv[i]);
			return 2;
		}
		smp->initial_path[i] = (uint8_t)hop;
	}
	umad_set_addr(umad, 0xffff, 0, 0, 0);

	if (umad_send(port, agent, umad, length, TIMEOUT_MS, RETRIES) < 0) {
		perror("umad_send");
		return 1;
	}
	if (umad_recv(port, umad, &length, -1) < 0) {
		perror("umad_recv");
		return 1;
	}
	if (umad_status(umad)) {
		fprintf(stderr, "no response: %s\n", strerror(umad_status(umad)));
		return 1;
	}
	if (be16toh(smp->status) & ~UMAD_SMP_DIRECTION) {
		fprintf(stderr, "refused with status 0x%04x\n", be16toh(smp->status));
		return 1;
	}
	print((const struct node_info *)smp->data);
	umad_free(umad);
	umad_close_port(port);
	return finish(0);
}
