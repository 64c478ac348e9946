/* SPDX-License-Identifier: BSD-2-Clause */

/* Messages: those of each level, those with show_errors, and their destination. */

#include "captured_output.h"
#include "mad_fixture.h"
#include "test.h"

#include <infiniband/mad_errors.h>
#include <infiniband/umad_ext.h>
#include <unistd.h>

static char heard[4096];

/* The hook: stores each message as a line. */
static void hear(enum umad_log_level level, const char *text, void *user)
{
	(void)user;
	assert_int_equal(level, UMAD_LOG_WARNING);
	strcat(heard, text);
	strcat(heard, "\n");
	errno = EXDEV;
}

static int setup(void)
{
	heard[0] = '\0';
	madrpc_show_errors(0);
	umad_set_log_hook(hear, NULL);
	return fixture_setup();
}

static int teardown(void)
{
	umad_set_log_hook(NULL, NULL);
	madrpc_show_errors(0);
	return fixture_teardown();
}

FIXTURE(setup, teardown);

static void get(int lid)
{
	ib_portid_t to = {.lid = lid};
	uint8_t buf[IB_SMP_DATA_SIZE] = {0};

	smp_query_via(buf, &to, IB_ATTR_NODE_INFO, 0, 0, fixture.port);
}

TEST(a_request_without_a_response_is_reported_with_cause_and_destination)
{
	be_silent();
	get(70);
	assert_int_equal(errno, ETIMEDOUT);
	assert_string_equal(heard, "mad_rpc: no response: Connection timed out\n"
				   "mad_rpc: the request to Lid 70 failed\n");
}

/* What a request to LID 70 writes to stderr, without a hook. */
static const char *said_on_stderr(void)
{
	umad_set_log_hook(NULL, NULL);
	capture_output(stderr);
	get(70);
	return captured_output();
}

TEST(without_a_hook_reports_go_to_stderr)
{
	char expected[256];

	be_silent();
	snprintf(expected, sizeof(expected),
		 "ibwarn: [%d] mad_rpc: no response: Connection timed out\n"
		 "ibwarn: [%d] mad_rpc: the request to Lid 70 failed\n",
		 getpid(), getpid());
	assert_string_equal(said_on_stderr(), expected);
	assert_string_equal(heard, "");
}

TEST(a_response_is_reported_if_its_status_is_an_error_and_errors_are_shown)
{
	respond_with(IB_SMI_CLASS, IB_ATTR_NODE_INFO, 0x0c, NULL, 0);
	get(70);
	assert_int_equal(errno, EIO);
	assert_string_equal(heard, "");
	madrpc_show_errors(1);
	get(70);
	assert_string_equal(heard, "mad_rpc: the response of Lid 70 has status 0xc\n");
}

/* The caller has the error and the status. */
TEST(mad_rpc_message_reports_no_response)
{
	ib_rpc_t rpc = {.mgtclass = IB_SMI_CLASS, .method = IB_MAD_METHOD_GET};
	struct mad_message message;
	ib_portid_t to = {.lid = 70};

	rpc.attr.id = IB_ATTR_NODE_INFO;
	madrpc_show_errors(1);
	respond_with(IB_SMI_CLASS, IB_ATTR_NODE_INFO, 0x0c, NULL, 0);
	assert_int_equal(mad_rpc_message(fixture.port, &rpc, &to, NULL, 0, &message), -EIO);
	be_silent();
	assert_int_equal(mad_rpc_message(fixture.port, &rpc, &to, NULL, 0, &message),
			 -ETIMEDOUT);
	assert_string_equal(heard, "");
}

TEST(what_succeeds_is_not_reported)
{
	madrpc_show_errors(1);
	get(70);
	assert_string_equal(heard, "");
}

TEST(a_class_without_an_agent_is_reported)
{
	ib_rpc_t rpc = {.mgtclass = 0x10, .method = IB_MAD_METHOD_GET};
	ib_portid_t to = {.lid = 5};

	assert_null(mad_rpc(fixture.port, &rpc, &to, NULL, NULL));
	assert_string_equal(heard, "mad_rpc: the request cannot be made: Invalid argument\n"
				   "mad_rpc: the request to Lid 5 failed\n");
	heard[0] = '\0';
	assert_fails_minus_1(mad_send_via(&rpc, &to, NULL, NULL, fixture.port), EINVAL);
	assert_string_equal(heard, "mad_send_via: the MAD cannot be sent: Invalid argument\n");
}

TEST(a_route_that_cannot_be_is_reported_once)
{
	ib_rpc_t rpc = {.mgtclass = IB_SMI_DIRECT_CLASS, .method = IB_MAD_METHOD_GET};
	ib_portid_t to = {.drpath = {.cnt = 64}};
	uint8_t mad[IB_MAD_SIZE] = {0};

	assert_null(mad_rpc(fixture.port, &rpc, &to, NULL, NULL));
	assert_string_equal(heard, "mad_encode: a directed route cannot have 64 hops\n");
	heard[0] = '\0';
	to.drpath.cnt = -1;
	assert_null(mad_rpc(fixture.port, &rpc, &to, NULL, NULL));
	assert_string_equal(heard, "mad_encode: a directed route cannot have -1 hops\n");
	heard[0] = '\0';
	assert_null(mad_encode(mad, &rpc, NULL, NULL));
	assert_string_equal(heard, "mad_encode: a MAD with a directed route needs a path\n");
}

TEST(a_request_with_a_good_route_is_reported_if_it_cannot_be_made)
{
	ib_rpc_t rpc = {.mgtclass = IB_SMI_DIRECT_CLASS,
			.method = IB_MAD_METHOD_GET,
			.dataoffs = IB_SMP_DATA_OFFS,
			.datasz = IB_MAD_SIZE};
	ib_portid_t to = {.drpath = {.cnt = 1, .p = {0, 3}}};
	uint8_t data[IB_MAD_SIZE] = {0};

	assert_null(mad_rpc(fixture.port, &rpc, &to, data, NULL));
	assert_string_equal(heard,
			    "mad_rpc: the request cannot be made: Message too long\n"
			    "mad_rpc: the request to DR path slid 0; dlid 0; 0,3 failed\n");
	/* the local node */
	heard[0] = '\0';
	to.drpath.cnt = 0;
	assert_null(mad_rpc(fixture.port, &rpc, &to, data, NULL));
	assert_string_equal(heard,
			    "mad_rpc: the request cannot be made: Message too long\n"
			    "mad_rpc: the request to DR path slid 0; dlid 0; 0 failed\n");
}

TEST(data_that_begins_outside_of_a_mad_is_not_reported)
{
	ib_rpc_t rpc = {.mgtclass = IB_SA_CLASS, .method = IB_MAD_METHOD_GET};
	ib_portid_t to = {.lid = 5};

	for (int i = 0; i < 2; i++) {
		rpc.dataoffs = i ? IB_MAD_SIZE + 1 : -1;
		assert_fails_null(mad_rpc_rmpp(fixture.port, &rpc, &to, NULL, NULL), EINVAL);
	}
	assert_string_equal(heard, "");
}

TEST(a_query_that_fails_is_reported)
{
	ib_portid_t sm = {.lid = 3}, nobody = {0};
	uint8_t record[IB_SA_DATA_SIZE];
	ibmad_gid_t gid = {0};

	respond_with(IB_SA_CLASS, IB_SA_ATTR_PATHRECORD, 0x300, NULL, 0);
	respond_with(IB_SA_CLASS, IB_SA_ATTR_NODERECORD, 0x300, NULL, 0);
	assert_int_equal(ib_path_query_via(fixture.port, gid, gid, &sm, record), -1);
	assert_int_equal(ib_node_query_via(fixture.port, 1, &sm, record), -1);
	assert_string_equal(heard, "ib_path_query_via: the query for a path record failed\n"
				   "ib_node_query_via: the query for a node record failed\n");
	heard[0] = '\0';
	ib_node_query_via(fixture.port, 1, &nobody, record);
	assert_string_equal(heard, "sa_rpc_call: the subnet administrator needs a LID\n"
				   "ib_node_query_via: the query for a node record failed\n");
}

TEST(what_is_no_address_or_number_is_reported)
{
	char address[] = "1", text[64];
	ib_bm_call_t call = {0};
	uint64_t value = 1;
	ib_portid_t to;

	ib_resolve_portid_str_via(&to, address, (enum MAD_DEST)77, NULL, fixture.port);
	to = (ib_portid_t){0};
	bm_call_via(text, &to, &call, fixture.port);
	mad_dump_int(text, sizeof(text), &value, 9);
	mad_dump_uint(text, sizeof(text), &value, 0);
	mad_dump_hex(text, sizeof(text), &value, 10);
	mad_dump_rhex(text, sizeof(text), &value, -1);
	assert_string_equal(heard, "ib_resolve_portid_str_via: 77 is no kind of address\n"
				   "bm_call_via: baseboard management needs a LID\n"
				   "mad_dump_int: a number cannot have 9 bytes\n"
				   "mad_dump_uint: a number cannot have 0 bytes\n"
				   "mad_dump_hex: a number cannot have 10 bytes\n"
				   "mad_dump_rhex: a number cannot have -1 bytes\n");
}

TEST(a_port_that_cannot_be_opened_is_reported)
{
	int classes[300] = {IB_SMI_CLASS, 0x99};
	char ca_name[] = "no\nsuch";

	assert_fails_null(mad_rpc_open_port(ca_name, 3, classes, 1), ENODEV);
	assert_fails_null(mad_rpc_open_port(NULL, 0, classes, 2), EINVAL);
	assert_null(mad_rpc_open_port(NULL, 0, classes, 300));
	assert_fails_null(mad_rpc_open_port2(ca_name, 3, classes, 1, 0), ENODEV);
	assert_string_equal(heard,
			    "mad_rpc_open_port: cannot open no?such port 3\n"
			    "mad_rpc_open_port: cannot register class 153 on (any) port 0\n"
			    "mad_rpc_open_port: 300 classes are too many\n"
			    "mad_rpc_open_port2: cannot open no?such port 3\n");
}

TEST(that_ib_umad_is_not_loaded_is_reported)
{
	int classes[] = {IB_SMI_CLASS};
	char ca_name[] = "none";

	device_file("/sys/class/infiniband_mad/abi_version", NULL);
	assert_null(mad_rpc_open_port(ca_name, 0, classes, 1));
	assert_null(mad_rpc_open_port2(ca_name, 0, classes, 1, 0));
	assert_string_equal(heard, "/sys/class/infiniband_mad/abi_version cannot be read "
				   "(No such file or directory): is ib_umad loaded?\n"
				   "mad_rpc_open_port: cannot open none port 0\n"
				   "/sys/class/infiniband_mad/abi_version cannot be read "
				   "(No such file or directory): is ib_umad loaded?\n"
				   "mad_rpc_open_port2: cannot open none port 0\n");
}

static int time_out(const struct device_packet *packet, void *arg)
{
	(void)arg;
	device_time_out(packet);
	return 0;
}

/* The hook may call functions of the port: no lock is held. */
static void ask_again(enum umad_log_level level, const char *text, void *user)
{
	bool *asking = user;

	hear(level, text, NULL);
	if (*asking)
		return;
	*asking = true;
	get(71);
}

TEST(a_further_attempt_is_reported_with_no_lock_held)
{
	ib_rpc_t rpc = {.mgtclass = IB_SMI_CLASS, .method = IB_MAD_METHOD_SET, .timeout = 20};
	ib_portid_t to = {.lid = 70};
	bool asking = false;

	rpc.attr.id = IB_ATTR_PORT_INFO;
	mad_rpc_set_retries(fixture.port, 2);
	mad_rpc_set_timeout(fixture.port, 20);
	device_on_write(time_out, NULL);
	madrpc_show_errors(1);
	umad_set_log_hook(ask_again, &asking);
	assert_fails_null(mad_rpc(fixture.port, &rpc, &to, NULL, NULL), ETIMEDOUT);
	assert_non_null(strstr(heard, "mad_rpc: no response to attribute 0x15; 1 attempts"));
	assert_non_null(strstr(heard, "mad_rpc: the request to Lid 71 failed"));
	assert_non_null(strstr(heard, "mad_rpc: the request to Lid 70 failed"));
}

TEST(sent_and_received_mads_are_shown_with_ibdebug_2)
{
	const char *said;

	for (int level = 0; level <= 2; level++) {
		ibdebug = level;
		said = said_on_stderr();
		ibdebug = 0;
		assert_int_equal(strstr(said, "send\n") != NULL, level == 2);
		assert_int_equal(strstr(said, "receive\n") != NULL, level == 2);
	}
}
