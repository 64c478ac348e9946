/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * messages SHOW-ERRORS
 *
 * Runs calls that fail, each in a process of its own, and prints the name of each in brackets
 * on stderr first. The script of this name compares the libraries' messages.
 */

#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY            70 /* no port has this LID */
#define UNKNOWN_ATTRIBUTE 0x7777

static int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS};
static uint8_t buffer[2048];

static struct ibmad_port *open_any(void)
{
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 4);

	if (!port)
		_exit(1);
	mad_rpc_set_timeout(port, 60);
	mad_rpc_set_retries(port, 2);
	return port;
}

static struct ibmad_port *open_for(int mgmt_class)
{
	struct ibmad_port *port = open_any();

	mad_register_client_via(mgmt_class, 0, port);
	return port;
}

static ib_portid_t at(int lid)
{
	return (ib_portid_t){.lid = lid};
}

static ib_portid_t manager(struct ibmad_port *port)
{
	ib_portid_t sm = {0};

	ib_resolve_smlid_via(&sm, 0, port);
	return sm;
}

/* --- requests ------------------------------------------------------------------- */

static void smp(ib_portid_t to, unsigned attribute)
{
	smp_query_via(buffer, &to, attribute, 0, 0, open_any());
}

static void pma(ib_portid_t to, int port)
{
	pma_query_via(buffer, &to, port, 0, IB_GSI_PORT_COUNTERS, open_any());
}

static void sa(ib_portid_t to, unsigned attribute)
{
	ib_sa_call_t call = {.method = IB_MAD_METHOD_GET, .attrid = attribute};

	sa_rpc_call(open_any(), buffer, &to, &call, 0);
}

static void vendor(int lid, struct ibmad_port *port)
{
	ib_vendor_call_t call = {.method = 1, .mgmt_class = 0x0a, .attrid = 1, .timeout = 50};
	ib_portid_t to = at(lid);

	ib_vendor_call_via(buffer, &to, &call, port);
}

static void bm(int lid)
{
	ib_bm_call_t call = {.method = 1, .attrid = 1, .timeout = 50};
	ib_portid_t to = at(lid);

	bm_call_via(buffer, &to, &call, open_for(IB_BOARD_MGMT_CLASS));
}

static void cc(int lid)
{
	ib_portid_t to = at(lid);

	cc_query_status_via(buffer, &to, 0x11, 0, 50, NULL, open_for(IB_CC_CLASS), 0);
}

static void smp_to_nobody(void)
{
	smp(at(NOBODY), IB_ATTR_NODE_INFO);
}

static void smp_by_a_dead_route(void)
{
	smp((ib_portid_t){.drpath = {.cnt = 2, .p = {0, 1, 9}}}, IB_ATTR_NODE_INFO);
}

static void smp_by_a_route_too_long(void)
{
	smp((ib_portid_t){.drpath = {.cnt = 70}}, IB_ATTR_NODE_INFO);
}

static void smp_of_an_unknown_attribute(void)
{
	smp(at(1), UNKNOWN_ATTRIBUTE);
}

static void smp_set_of_what_cannot_be_set(void)
{
	ib_portid_t to = at(1);

	smp_set_via(buffer, &to, IB_ATTR_NODE_INFO, 0, 0, open_any());
}

static void pma_to_nobody(void)
{
	pma(at(NOBODY), 1);
}

static void pma_to_nobody_by_a_gid(void)
{
	ib_portid_t to = at(NOBODY);

	to.grh_present = 1;
	to.gid[0] = 0xfe;
	to.gid[1] = 0x80;
	to.gid[15] = 7;
	pma(to, 1);
}

static void pma_without_a_lid(void)
{
	pma(at(0), 1);
}

static void pma_of_no_such_port(void)
{
	pma(at(1), 99);
}

static void pma_without_an_agent(void)
{
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 1);
	ib_portid_t to = at(1);

	if (port)
		pma_query_via(buffer, &to, 1, 50, IB_GSI_PORT_COUNTERS, port);
}

static void reset_to_nobody(void)
{
	ib_portid_t to = at(NOBODY);

	performance_reset_via(buffer, &to, 1, 0, 0, IB_GSI_PORT_COUNTERS, open_any());
}

static void sa_without_a_lid(void)
{
	sa(at(0), IB_SA_ATTR_PATHRECORD);
}

static void sa_to_nobody(void)
{
	sa(at(NOBODY), IB_SA_ATTR_PATHRECORD);
}

static void sa_of_an_unknown_attribute(void)
{
	sa(manager(open_any()), UNKNOWN_ATTRIBUTE);
}

static void rmpp_to_nobody(void)
{
	ib_rpc_t rpc = {.mgtclass = IB_SA_CLASS,
			.method = IB_MAD_METHOD_GET_TABLE,
			.attr = {.id = IB_SA_ATTR_NODERECORD},
			.dataoffs = IB_SA_DATA_OFFS,
			.datasz = IB_SA_DATA_SIZE,
			.timeout = 30};
	ib_portid_t to = {.lid = NOBODY, .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};
	ib_rmpp_hdr_t rmpp = {0};

	mad_rpc_rmpp(open_any(), &rpc, &to, &rmpp, buffer);
}

static void vendor_without_a_lid(void)
{
	vendor(0, open_for(0x0a));
}

static void vendor_to_nobody(void)
{
	vendor(NOBODY, open_for(0x0a));
}

static void vendor_without_an_agent(void)
{
	vendor(1, open_any());
}

static void bm_without_a_lid(void)
{
	bm(0);
}

static void bm_to_nobody(void)
{
	bm(NOBODY);
}

static void cc_without_a_lid(void)
{
	cc(0);
}

static void cc_to_nobody(void)
{
	cc(NOBODY);
}

static void mad_send_of_class(int mgmt_class)
{
	ib_rpc_t rpc = {.mgtclass = mgmt_class,
			.method = IB_MAD_METHOD_GET,
			.attr = {.id = 0x12},
			.dataoffs = 64,
			.datasz = 192};
	ib_portid_t to = at(NOBODY);

	mad_send_via(&rpc, &to, NULL, buffer, open_any());
}

static void send_to_nobody(void)
{
	mad_send_of_class(IB_PERFORMANCE_CLASS);
}

static void send_without_an_agent(void)
{
	mad_send_of_class(9);
}

static void receive_nothing(void)
{
	mad_receive_via(buffer, 20, open_any());
}

static void encode_without_a_route(void)
{
	ib_rpc_t rpc = {.mgtclass = IB_SMI_DIRECT_CLASS, .method = IB_MAD_METHOD_GET};

	mad_encode(buffer, &rpc, NULL, NULL);
}

/* --- addresses ------------------------------------------------------------------ */

static void path_query_without_a_result(void)
{
	struct ibmad_port *port = open_any();
	ib_portid_t sm = manager(port);
	ibmad_gid_t from = {1}, to = {2};

	ib_path_query_via(port, from, to, &sm, buffer);
}

static void path_query_to_nobody(void)
{
	ib_portid_t sm = at(NOBODY);
	ibmad_gid_t from = {1}, to = {2};

	ib_path_query_via(open_any(), from, to, &sm, buffer);
}

static void node_query_without_a_result(void)
{
	struct ibmad_port *port = open_any();
	ib_portid_t sm = manager(port);

	ib_node_query_via(port, 0x1234, &sm, buffer);
}

static void node_query_to_nobody(void)
{
	ib_portid_t sm = at(NOBODY);

	ib_node_query_via(open_any(), 0x1234, &sm, buffer);
}

static void resolve(const char *text, int kind)
{
	char address[64];
	ib_portid_t to;

	snprintf(address, sizeof(address), "%s", text);
	ib_resolve_portid_str_via(&to, address, (enum MAD_DEST)kind, NULL, open_any());
}

static void resolve_an_unknown_gid(void)
{
	resolve("fe80::1", IB_DEST_GID);
}

static void resolve_an_unknown_guid(void)
{
	resolve("0x1234", IB_DEST_GUID);
}

static void resolve_no_lid(void)
{
	resolve("nonsense", IB_DEST_LID);
}

static void resolve_no_route(void)
{
	resolve("nonsense", IB_DEST_DRPATH);
}

static void resolve_no_gid(void)
{
	resolve("nonsense", IB_DEST_GID);
}

static void resolve_no_kind(void)
{
	resolve("1", 77);
}

static void numbers_of_9_bytes(void)
{
	uint64_t value = 7;
	char text[64];

	mad_dump_int(text, sizeof(text), &value, 9);
	mad_dump_uint(text, sizeof(text), &value, 9);
	mad_dump_hex(text, sizeof(text), &value, 9);
	mad_dump_rhex(text, sizeof(text), &value, 9);
}

/* --- ports and agents ----------------------------------------------------------- */

static void open_port(const char *ca_name, int port, int mgmt_class, int count)
{
	int wanted[300] = {mgmt_class};
	char name[64];

	snprintf(name, sizeof(name), "%s", ca_name ? ca_name : "");
	mad_rpc_open_port(ca_name ? name : NULL, port, wanted, count);
}

static void open_no_device(void)
{
	open_port("nosuch", 0, 4, 1);
}

static void open_no_port_of_no_device(void)
{
	open_port("nosuch", 3, 4, 1);
}

static void open_no_port(void)
{
	open_port(NULL, 9, 4, 1);
}

static void open_with_an_unknown_class(void)
{
	open_port(NULL, 0, 0x99, 1);
}

static void open_with_class_0(void)
{
	open_port(NULL, 0, 0, 1);
}

static void open_with_a_negative_class(void)
{
	open_port(NULL, 0, -1, 1);
}

static void open_with_a_large_class(void)
{
	open_port(NULL, 0, 256, 1);
}

static void open_with_a_vendor_class(void)
{
	open_port(NULL, 0, 0x32, 1);
}

static void open_with_too_many_classes(void)
{
	open_port(NULL, 0, 4, 300);
}

static void init_with(const char *ca_name, int mgmt_class)
{
	char name[64];

	snprintf(name, sizeof(name), "%s", ca_name ? ca_name : "");
	madrpc_init(ca_name ? name : NULL, 0, &mgmt_class, 1);
}

static void init_with_no_device(void)
{
	init_with("nosuch", 4);
}

static void init_with_an_unknown_class(void)
{
	init_with(NULL, 0x99);
}

static void register_an_unknown_class(void)
{
	mad_register_client_via(0x99, 0, open_any());
}

static void serve_an_unknown_class(void)
{
	mad_register_server_via(0x99, 0, NULL, 0, open_any());
}

static void serve_what_another_serves(void)
{
	long methods[2] = {-1, -1};

	mad_register_server_via(0x0a, 0, methods, 0, open_any());
	mad_register_server_via(0x0a, 0, methods, 0, open_any());
}

/* --- libibumad ------------------------------------------------------------------ */

static void umad_oui_of_another_class(void)
{
	uint8_t oui[3] = {1, 2, 3};

	umad_register_oui(umad_open_port(NULL, 0), 4, 0, oui, NULL);
}

static void umad_flags_that_nobody_knows(void)
{
	struct umad_reg_attr attr = {.mgmt_class = 4, .mgmt_class_version = 1, .flags = 0xf0};
	uint32_t agent;

	umad_register2(umad_open_port(NULL, 0), &attr, &agent);
}

static void umad_calls_on_no_handle(void)
{
	int length = 256;

	umad_register(-1, 4, 1, 0, NULL);
	umad_send(-1, 0, buffer, 256, 10, 0);
	umad_recv(-1, buffer, &length, 10);
	umad_poll(-1, 10);
}

static void umad_calls_that_time_out(void)
{
	int port = umad_open_port(NULL, 0), length = 256;

	umad_send(port, 30, buffer, 256, 10, 0);
	umad_recv(port, buffer, &length, 10);
	umad_poll(port, 10);
}

static void umad_looks_for_what_is_not_there(void)
{
	umad_port_t port;
	umad_ca_t ca;
	char path[64];

	umad_get_ca("nosuch", &ca);
	umad_get_port("nosuch", 1, &port);
	umad_get_issm_path("nosuch", 1, path, sizeof(path));
	umad_open_port("nosuch", 1);
}

#define CASE(call)          \
	{                   \
#call, call \
	}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*call)(void);
	} cases[] = {
		CASE(smp_to_nobody),
		CASE(smp_by_a_dead_route),
		CASE(smp_by_a_route_too_long),
		CASE(smp_of_an_unknown_attribute),
		CASE(smp_set_of_what_cannot_be_set),
		CASE(pma_to_nobody),
		CASE(pma_to_nobody_by_a_gid),
		CASE(pma_without_a_lid),
		CASE(pma_of_no_such_port),
		CASE(pma_without_an_agent),
		CASE(reset_to_nobody),
		CASE(sa_without_a_lid),
		CASE(sa_to_nobody),
		CASE(sa_of_an_unknown_attribute),
		CASE(rmpp_to_nobody),
		CASE(vendor_without_a_lid),
		CASE(vendor_to_nobody),
		CASE(vendor_without_an_agent),
		CASE(bm_without_a_lid),
		CASE(bm_to_nobody),
		CASE(cc_without_a_lid),
		CASE(cc_to_nobody),
		CASE(send_to_nobody),
		CASE(send_without_an_agent),
		CASE(receive_nothing),
		CASE(encode_without_a_route),
		CASE(path_query_without_a_result),
		CASE(path_query_to_nobody),
		CASE(node_query_without_a_result),
		CASE(node_query_to_nobody),
		CASE(resolve_an_unknown_gid),
		CASE(resolve_an_unknown_guid),
		CASE(resolve_no_lid),
		CASE(resolve_no_route),
		CASE(resolve_no_gid),
		CASE(resolve_no_kind),
		CASE(numbers_of_9_bytes),
		CASE(open_no_device),
		CASE(open_no_port_of_no_device),
		CASE(open_no_port),
		CASE(open_with_an_unknown_class),
		CASE(open_with_class_0),
		CASE(open_with_a_negative_class),
		CASE(open_with_a_large_class),
		CASE(open_with_a_vendor_class),
		CASE(open_with_too_many_classes),
		CASE(init_with_no_device),
		CASE(init_with_an_unknown_class),
		CASE(register_an_unknown_class),
		CASE(serve_an_unknown_class),
		CASE(serve_what_another_serves),
		CASE(umad_oui_of_another_class),
		CASE(umad_flags_that_nobody_knows),
		CASE(umad_calls_on_no_handle),
		CASE(umad_calls_that_time_out),
		CASE(umad_looks_for_what_is_not_there),
	};
	int show_errors = argc > 1 && atoi(argv[1]), status;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fprintf(stderr, "[%s]\n", cases[i].name);
		if (!fork()) {
			madrpc_show_errors(show_errors);
			cases[i].call();
			exit(0);
		}
		wait(&status);
		if (!WIFEXITED(status))
			fprintf(stderr, "ended by signal %d\n", WTERMSIG(status));
	}
	return 0;
}
