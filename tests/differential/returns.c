/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Prints the return values of calls that register agents, send and receive, a line for each
 * call. On the simulated fabric the output must be the same with the distribution's library and
 * with ours. The kernel chooses agents' numbers: the program prints whether a call returned the
 * number of a class.
 */

#include <infiniband/mad.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define VENDOR1      0x0a
#define VENDOR2      0x33
#define OUI          0x001405
#define UNREGISTERED IB_BOARD_MGMT_CLASS

/* Some of these calls are deprecated, and must return the same values nevertheless. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static struct ibmad_port *port;

static void show(const char *call, long value)
{
	/* the next call ends the process */
	printf("%-58s %ld\n", call, value);
	fflush(stdout);
}

#define SHOW(call)         show(#call, (long)(call))
/* Prints whether there is an address, not the address. */
#define SHOW_POINTER(call) show(#call, (call) != NULL)

/* An agent's number: the number of its class, another number, or an error. */
static void show_agent(const char *call, int value, int agent)
{
	const char *name = value == agent ? "the class's agent" : "another number";

	printf("%-58s %s\n", call, value < 0 ? "refused" : name);
}

#define SHOW_AGENT(call, agent)                      \
	do {                                         \
		int returned_ = call;                \
		show_agent(#call, returned_, agent); \
	} while (0)

static void register_on_a_port(void)
{
	long mask[16 / sizeof(long)] = {2};

	SHOW(mad_register_client_via(VENDOR1, 0, port));
	SHOW(mad_rpc_class_agent(port, VENDOR1) >= 0);
	SHOW(mad_register_client_via(VENDOR1, 0, port));
	SHOW(mad_register_client_via(VENDOR2, 1, port));
	SHOW(mad_register_client_via(IB_SA_CLASS, 1, port));
	SHOW(mad_register_client_via(IB_CC_CLASS, 0, port));
	SHOW(mad_register_client_via(0x60, 0, port));
	SHOW(mad_register_client_via(IB_PERFORMANCE_CLASS, 1, port));
	SHOW(mad_register_client_via(IB_PERFORMANCE_CLASS, 2, port));
	SHOW(mad_register_client_via(-1, 0, port));
	SHOW(mad_rpc_class_agent(port, UNREGISTERED));
	SHOW(mad_rpc_class_agent(port, -1));
	SHOW(mad_rpc_class_agent(port, 256));
	SHOW(mad_rpc_portid(port) >= 0);
	SHOW_AGENT(mad_register_server_via(0x0b, 0, NULL, 0, port),
		   mad_rpc_class_agent(port, 0x0b));
	SHOW_AGENT(mad_register_server_via(0x0c, 0, mask, 0, port),
		   mad_rpc_class_agent(port, 0x0c));
	SHOW(mad_register_server_via(0x0c, 0, mask, 0, port));
	SHOW_AGENT(mad_register_server_via(0x34, 1, NULL, OUI, port),
		   mad_rpc_class_agent(port, 0x34));
	SHOW(mad_register_server_via(0x35, 0, NULL, 0, port));
	SHOW(mad_register_server_via(0x60, 0, NULL, 0, port));
	SHOW(mad_register_server_via(-1, 0, NULL, 0, port));
}

static ib_rpc_t get_request(int mgmt_class)
{
	return (ib_rpc_t){.mgtclass = mgmt_class,
			  .method = IB_MAD_METHOD_GET,
			  .attr.id = 0x10,
			  .dataoffs = IB_PC_DATA_OFFS,
			  .datasz = IB_PC_DATA_SZ};
}

static void send_on_a_port(void)
{
	ib_rpc_t rpc = get_request(VENDOR1), other = get_request(UNREGISTERED);
	ib_portid_t self = {.lid = 1, .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};
	uint8_t data[IB_MAD_SIZE] = {0};
	ib_vendor_call_t call = {.method = IB_MAD_METHOD_SEND, .mgmt_class = VENDOR1};
	ib_rpc_t directed = {.mgtclass = IB_SMI_DIRECT_CLASS};
	void *umad;

	SHOW(mad_send_via(&rpc, &self, NULL, data, port));
	SHOW(mad_send_via(&other, &self, NULL, data, port));
	SHOW_POINTER(mad_rpc(port, &other, &self, data, data));
	SHOW_POINTER(ib_vendor_call_via(data, &self, &call, port));
	umad = mad_alloc();
	SHOW(mad_build_pkt(umad, &rpc, &self, NULL, data));
	self.drpath.cnt = 64;
	SHOW(mad_build_pkt(umad, &directed, &self, NULL, data));
	self.drpath.cnt = 0;
	mad_build_pkt(umad, &rpc, &self, NULL, data);
	SHOW(mad_respond_via(umad, &self, 0, port));
	SHOW(mad_respond_via(umad, NULL, IB_MAD_STS_BUSY, port));
	mad_build_pkt(umad, &other, &self, NULL, data);
	SHOW(mad_respond_via(umad, &self, 0, port));
	mad_free(umad);
}

static void set_options(void)
{
	SHOW(mad_get_retries(port));
	SHOW(mad_get_timeout(port, 0));
	SHOW(mad_get_timeout(port, 7));
	mad_rpc_set_retries(port, 5);
	mad_rpc_set_timeout(port, 1234);
	SHOW(mad_get_retries(port));
	SHOW(mad_get_timeout(port, 0));
	SHOW(madrpc_set_retries(2));
	SHOW(madrpc_set_retries(0));
	SHOW(madrpc_set_retries(-3));
	SHOW(madrpc_set_timeout(500));
	SHOW(mad_get_retries(port));
	SHOW(mad_get_timeout(port, 0));
	smp_mkey_set(port, 77);
	SHOW(smp_mkey_get(port));
}

static void use_the_process_s_port(void)
{
	int classes[] = {IB_SMI_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS};
	ib_rpc_t rpc = get_request(VENDOR1), other = get_request(UNREGISTERED);
	ib_portid_t self = {.lid = 1, .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};
	uint8_t data[IB_MAD_SIZE] = {0};
	void *umad;

	madrpc_init(NULL, 0, classes, 3);
	SHOW(madrpc_portid() >= 0);
	SHOW(mad_register_client(VENDOR1, 0));
	SHOW(mad_register_client(VENDOR1, 0));
	SHOW(mad_register_client(0x60, 0));
	SHOW(mad_class_agent(VENDOR1) >= 0);
	SHOW(mad_class_agent(UNREGISTERED));
	SHOW_AGENT(mad_register_server(0x0d, 0, NULL, 0), mad_class_agent(0x0d));
	SHOW(mad_register_server(0x60, 0, NULL, 0));
	SHOW(mad_send(&rpc, &self, NULL, data));
	SHOW(mad_send(&other, &self, NULL, data));
	umad = mad_alloc();
	mad_build_pkt(umad, &rpc, &self, NULL, data);
	SHOW(mad_respond(umad, &self, 0));
	mad_free(umad);
}

int main(void)
{
	char no_such[] = "no_such";
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_PERFORMANCE_CLASS},
	    unknown = 300;

	SHOW_POINTER(mad_rpc_open_port(no_such, 0, classes, 3));
	SHOW_POINTER(mad_rpc_open_port(NULL, 0, &unknown, 1));
	port = mad_rpc_open_port(NULL, 0, classes, 3);
	if (!port) {
		printf("no port: %s\n", strerror(errno));
		return 1;
	}
	register_on_a_port();
	set_options();
	send_on_a_port();
	mad_rpc_close_port(port);
	use_the_process_s_port();
	return 0;
}
