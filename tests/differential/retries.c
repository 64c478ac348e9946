/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Prints the transaction IDs of the attempts of requests to a LID that no port has. This
 * program has its own umad_send(), which libibmad calls instead of libibumad's. It sends each
 * request with a shorter timeout for the kernel. The distribution's library polls exactly as
 * long as the timeout that it gives the kernel. Without the shorter timeout it returns before
 * the kernel reports the timeout, and makes no second attempt.
 */

#include <infiniband/mad.h>
#include <infiniband/umad.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NOBODY     70
#define VENDOR1    0x0a
#define TIMEOUT_MS 2000
#define KERNEL_MS  50
#define ATTEMPTS   3
#define TID_OFFS   12

static uint8_t first_id[4];
static int sendings;

/* Interposed: receives libibmad's requests. */
__attribute__((visibility("default"))) int umad_send(int portid, int agentid, void *umad,
						     int length, int timeout_ms, int retries)
{
	__typeof__(&umad_send) next = (__typeof__(&umad_send))dlsym(RTLD_NEXT, "umad_send");
	const uint8_t *id = (uint8_t *)umad_get_mad(umad) + TID_OFFS;

	if (!sendings++)
		memcpy(first_id, id, sizeof(first_id));
	printf("  attempt %d: %s, %d ms\n", sendings,
	       memcmp(id, first_id, sizeof(first_id)) ? "another id" : "the first id",
	       timeout_ms);
	return next(portid, agentid, umad, length, KERNEL_MS, retries);
}

static void ask(struct ibmad_port *port, const char *what, int mgmt_class, int method,
		uint64_t trid)
{
	ib_rpc_t rpc = {.mgtclass = mgmt_class,
			.method = method,
			.attr.id = IB_GSI_PORT_COUNTERS,
			.timeout = TIMEOUT_MS,
			.dataoffs = IB_PC_DATA_OFFS,
			.datasz = IB_PC_DATA_SZ,
			.trid = trid};
	ib_portid_t to = {.lid = NOBODY, .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};
	uint8_t data[IB_MAD_SIZE] = {0};
	void *response;

	printf("%s\n", what);
	sendings = 0;
	errno = 0;
	response = mad_rpc(port, &rpc, &to, data, data);
	printf("  %s\n", response ? "response" : strerror(errno));
}

int main(void)
{
	int classes[] = {IB_SMI_CLASS, IB_PERFORMANCE_CLASS, VENDOR1};
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 3);

	if (!port) {
		perror("no port");
		return 1;
	}
	mad_rpc_set_retries(port, ATTEMPTS);
	ask(port, "a Set", IB_PERFORMANCE_CLASS, IB_MAD_METHOD_SET, 0);
	ask(port, "a Set with an id of the caller's", IB_PERFORMANCE_CLASS, IB_MAD_METHOD_SET,
	    0x1234567812345678);
	ask(port, "a Get of a vendor's class", VENDOR1, IB_MAD_METHOD_GET, 0);
	mad_rpc_close_port(port);
	return 0;
}
