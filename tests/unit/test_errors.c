/* SPDX-License-Identifier: BSD-2-Clause */

/* Texts of errors: status, responses, the last failed call of a thread. */

#include "engine_fixture.h"
#include "test.h"

#include <infiniband/mad_counters.h>
#include <infiniband/mad_errors.h>
#include <infiniband/umad_ext.h>
#include <pthread.h>

#define MANY 4
#include "async_fixture.h"

FIXTURE(async_setup, async_teardown);

/* The text of the last expectation. */
#define SAME NULL

static char text[MAD_ERROR_TEXT_SIZE];
static uint8_t data[IB_MAD_SIZE];

static void expect_status(unsigned mgmt_class, unsigned status, const char *expected)
{
	assert_ptr_equal(mad_status_text(mgmt_class, status, text, sizeof(text)), text);
	assert_string_equal(text, expected);
}

/* --- the status of a MAD -------------------------------------------------------- */

PLAIN_TEST(a_status_has_its_words)
{
	expect_status(IB_PERFORMANCE_CLASS, IB_MAD_STS_OK, "success");
	expect_status(IB_PERFORMANCE_CLASS, IB_MAD_STS_BUSY, "busy");
	expect_status(IB_PERFORMANCE_CLASS, IB_MAD_STS_REDIRECT, "redirection required");
	expect_status(IB_SMI_CLASS, IB_MAD_STS_BAD_BASE_VER_OR_CLASS,
		      "base version or class version not supported");
	expect_status(IB_SMI_CLASS, IB_MAD_STS_METHOD_NOT_SUPPORTED, "method not supported");
	expect_status(IB_SMI_CLASS, IB_MAD_STS_METHOD_ATTR_NOT_SUPPORTED,
		      "attribute not supported with this method");
	expect_status(IB_SMI_CLASS, IB_MAD_STS_INV_ATTR_VALUE,
		      "invalid value in the attribute or its modifier");
	expect_status(IB_SA_CLASS, 0x0100, "SA: no resources");
	expect_status(IB_SA_CLASS, 0x0200, "SA: invalid request");
	expect_status(IB_SA_CLASS, 0x0300, "SA: no records");
	expect_status(IB_SA_CLASS, 0x0400, "SA: too many records");
	expect_status(IB_SA_CLASS, 0x0500, "SA: invalid GID");
	expect_status(IB_SA_CLASS, 0x0600, "SA: insufficient components");
	expect_status(IB_SA_CLASS, 0x0700, "SA: request denied");
	expect_status(IB_SA_CLASS, 0x0800, "SA: priority suggested");
	expect_status(IB_DEVICE_MGMT_CLASS, 0x0100,
		      "device management: no response of the I/O controller");
	expect_status(IB_DEVICE_MGMT_CLASS, 0x0200, "device management: no service entries");
	expect_status(IB_DEVICE_MGMT_CLASS, 0x8000,
		      "device management: failure of the I/O controller");
}

PLAIN_TEST(parts_of_a_status_are_composed)
{
	expect_status(IB_SA_CLASS, 0x0101, "busy; SA: no resources");
	expect_status(IB_SMI_CLASS, 0x001f,
		      "busy; redirection required; invalid value in the attribute or its "
		      "modifier");
	expect_status(IB_DEVICE_MGMT_CLASS, 0x8700,
		      "device management: no response of the I/O controller, no service "
		      "entries, failure of the I/O controller, status 0x0400");
}

PLAIN_TEST(what_is_not_defined_is_in_hex)
{
	expect_status(IB_SA_CLASS, 0x0900, "SA: status 0x0900");
	expect_status(IB_SA_CLASS, 0xff00, "SA: status 0xff00");
	expect_status(IB_SA_CLASS, 0x0091, "busy; status 0x0090");
	expect_status(IB_SMI_CLASS, 0x00e0, "status 0x00e0");
	expect_status(IB_SMI_CLASS, 0x000c | 0x00e0,
		      "attribute not supported with this method; status 0x00e0");
	expect_status(IB_SMI_CLASS, 0x10000, "status 0x10000");
	expect_status(IB_PERFORMANCE_CLASS, 0x0100, "performance management: status 0x0100");
	expect_status(IB_BOARD_MGMT_CLASS, 0x0100, "baseboard management: status 0x0100");
	expect_status(IB_CM_CLASS, 0x0100, "communication management: status 0x0100");
	expect_status(IB_SNMP_CLASS, 0x0100, "SNMP tunneling: status 0x0100");
	expect_status(IB_CC_CLASS, 0x0100, "congestion control: status 0x0100");
	expect_status(0x0a, 0x0300, "vendor class 0x0a: status 0x0300");
	expect_status(0x4f, 0x0300, "vendor class 0x4f: status 0x0300");
	expect_status(0x10, 0x0300, "class 0x10: status 0x0300");
	expect_status(0, 0x0300, "class 0x00: status 0x0300");
	expect_status(0xff, 0x0300, "class 0xff: status 0x0300");
}

PLAIN_TEST(the_direction_bit_is_no_status)
{
	expect_status(IB_SMI_DIRECT_CLASS, 0x8000, "success");
	expect_status(IB_SMI_DIRECT_CLASS, 0x800c, "attribute not supported with this method");
	expect_status(IB_SMI_DIRECT_CLASS, 0x8100, "directed SMP: status 0x0100");
	expect_status(IB_SMI_CLASS, 0x8000, "SMP: status 0x8000");
	/* mgtclass of a request may have additional bits */
	expect_status(IB_SA_CLASS | IB_MAD_RPC_VERSION1, 0x0600, "SA: insufficient components");
}

/* Every value of each part of the status: no text is empty, and no two are equal. */
PLAIN_TEST(each_status_has_a_text_of_its_own)
{
	static const unsigned classes[] = {IB_SMI_CLASS, IB_SA_CLASS, IB_DEVICE_MGMT_CLASS,
					   VENDOR_CLASS, 0x60};
	static char texts[511][MAD_ERROR_TEXT_SIZE];

	for (unsigned c = 0; c < sizeof(classes) / sizeof(*classes); c++)
		for (unsigned i = 0; i < 511; i++) {
			mad_status_text(classes[c], i < 256 ? i : (i - 255) << 8, texts[i],
					sizeof(texts[i]));
			assert_true(*texts[i]);
			for (unsigned j = 0; j < i; j++)
				assert_string_not_equal(texts[i], texts[j]);
		}
}

PLAIN_TEST(every_text_fits)
{
	size_t longest = 0;

	for (unsigned status = 0; status < 0x10000; status++) {
		static const unsigned classes[] = {IB_SA_CLASS, IB_DEVICE_MGMT_CLASS,
						   IB_PERFORMANCE_CLASS};
		char big[1024];

		for (int i = 0; i < 3; i++) {
			mad_status_text(classes[i], status | 0xffff0000u, big, sizeof(big));
			if (strlen(big) > longest)
				longest = strlen(big);
		}
	}
	print_message("the longest status has %d characters\n", (int)longest);
	assert_true(longest < MAD_ERROR_TEXT_SIZE);
}

PLAIN_TEST(a_text_is_cut_to_its_buffer)
{
	static const char full[] = "SA: no records";

	for (size_t size = 1; size <= sizeof(full); size++) {
		char *small = malloc(size); /* the sanitizer detects a write beyond */

		assert_non_null(small);
		assert_ptr_equal(mad_status_text(IB_SA_CLASS, 0x0300, small, size), small);
		assert_int_equal(strlen(small), size - 1);
		assert_memory_equal(small, full, size - 1);
		free(small);
	}
	text[0] = 'x';
	assert_string_equal(mad_status_text(IB_SA_CLASS, 0x0300, text, 0), "");
	assert_string_equal(mad_status_text(IB_SA_CLASS, 0x0300, NULL, 10), "");
	assert_string_equal(mad_failure_text(NULL, NULL, 0), "");
	assert_int_equal(text[0], 'x');
}

/* --- the completion of a request ------------------------------------------------ */

static void expect_reply(struct mad_reply reply, const char *expected)
{
	const struct mad_failure failure = {
		.error = reply.error,
		.mgmt_class = reply.mad ? reply.mad[1] : 0,
		.status = reply.status,
		.transmissions = reply.transmissions,
		.elapsed_ms = reply.elapsed_ms,
	};

	assert_ptr_equal(mad_failure_text(&failure, text, sizeof(text)), text);
	assert_string_equal(text, expected);
}

PLAIN_TEST(each_error_of_a_reply_has_its_words)
{
	const uint8_t sa[IB_MAD_SIZE] = {1, IB_SA_CLASS};

	expect_reply((struct mad_reply){0}, "success");
	expect_reply((struct mad_reply){.error = -EIO, .status = 0x0600, .mad = sa},
		     "SA: insufficient components");
	expect_reply(
		(struct mad_reply){.error = -ETIMEDOUT, .transmissions = 3, .elapsed_ms = 3049},
		"no response to 3 transmissions in 3.0 s");
	expect_reply(
		(struct mad_reply){.error = -ETIMEDOUT, .transmissions = 1, .elapsed_ms = 999},
		"no response to 1 transmission in 999 ms");
	expect_reply((struct mad_reply){.error = -ETIMEDOUT}, "no response");
	expect_reply((struct mad_reply){.error = -ECANCELED}, "cancelled");
	expect_reply((struct mad_reply){.error = -ENODEV}, "the device is gone");
	expect_reply((struct mad_reply){.error = -EMSGSIZE, .transmissions = 1},
		     "the response is too long");
	expect_reply((struct mad_reply){.error = -EMSGSIZE}, "the request is too long");
	expect_reply((struct mad_reply){.error = -ELOOP}, "redirected too often");
	expect_reply((struct mad_reply){.error = -EHOSTUNREACH},
		     "redirected to a port to which there is no path");
	expect_reply((struct mad_reply){.error = -EOPNOTSUPP},
		     "a request of more than one MAD was redirected");
	expect_reply((struct mad_reply){.error = -ENOMEM}, "out of memory");
	expect_reply((struct mad_reply){.error = -EINVAL}, "an argument is wrong");
	/* of the kernel */
	expect_reply((struct mad_reply){.error = -EINVAL, .transmissions = 1},
		     "the MAD cannot be sent: Invalid argument");
	expect_reply((struct mad_reply){.error = -EIO, .transmissions = 1},
		     "the MAD cannot be sent: Input/output error");
	expect_reply((struct mad_reply){.error = -EACCES, .transmissions = 1},
		     "the MAD cannot be sent: Permission denied");
}

struct told {
	char text[MAD_ERROR_TEXT_SIZE];
	unsigned elapsed_ms, transmissions;
};

static void tell(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct told *told = arg;

	(void)engine;
	mad_failure_text(NULL, told->text, sizeof(told->text));
	told->elapsed_ms = reply->elapsed_ms;
	told->transmissions = reply->transmissions;
}

static struct told tell_of(ib_rpc_t rpc)
{
	struct told told = {0};

	submit_with(async, rpc, 1, tell, &told);
	assert_int_equal(mad_async_wait(async, -1), 1);
	return told;
}

static int respond_status(const struct device_packet *packet, void *arg)
{
	device_respond(packet, *(uint16_t *)arg, 0, NULL, 0);
	return 0;
}

static int refuse_write(const struct device_packet *packet, void *arg)
{
	(void)packet;
	return *(int *)arg;
}

/* A completion without its time, which depends on the machine. */
TEST(a_reply_tells_how_long_its_request_took)
{
	ib_rpc_t rpc = set_request();
	int64_t begin = now_ms();
	struct told told;
	unsigned most;

	mad_rpc_set_retries(port, 2);
	rpc.timeout = 30;
	told = tell_of(rpc);
	most = (unsigned)(now_ms() - begin) + 1;
	assert_int_equal(told.transmissions, 2);
	assert_in_range(told.elapsed_ms, 60, most);
	if (told.elapsed_ms < 1000) {
		snprintf(text, sizeof(text), "no response to 2 transmissions in %u ms",
			 told.elapsed_ms);
		assert_string_equal(told.text, text);
	}
}

TEST(a_request_that_was_not_sent_took_no_time)
{
	struct told told = {.elapsed_ms = 1};
	ib_rpc_t rpc = set_request();

	fix_flow(1);
	submit(async, rpc, 2, &outcomes[0], NULL);
	submit_with(async, rpc, 1, tell, &told);
	sleep_ms(3);
	assert_int_equal(mad_async_cancel(async, MAD_ASYNC_ALL), 0);
	assert_int_equal(mad_async_wait(async, -1), 2);
	assert_int_equal(told.transmissions, 0);
	assert_int_equal(told.elapsed_ms, 0);
	assert_string_equal(told.text, "cancelled");
}

TEST(the_words_of_a_response_are_those_of_its_status)
{
	uint16_t status = 0x0600;
	int error = -ENOSPC;

	device_on_write(respond_status, &status);
	assert_string_equal(tell_of(table_request()).text, "SA: insufficient components");
	device_on_write(refuse_write, &error);
	assert_string_equal(tell_of(set_request()).text,
			    "the MAD cannot be sent: No space left on device");
}

/* --- the last failed call of a thread ------------------------------------------- */

static void expect_failure(int error, unsigned mgmt_class, const char *expected)
{
	const struct mad_failure *failure = mad_last_failure();
	char same[MAD_ERROR_TEXT_SIZE];

	strcpy(same, text);
	assert_int_equal(failure->error, error);
	assert_int_equal(failure->mgmt_class, mgmt_class);
	assert_ptr_equal(mad_failure_text(NULL, text, sizeof(text)), text);
	assert_string_equal(text, expected ? expected : same);
}

/* Another failure, so that each test checks its own. */
static void fail_otherwise(void)
{
	ib_portid_t to = to_lid(1);
	ib_rpc_t rpc = {.mgtclass = 0x60, .dataoffs = 64};

	mad_rpc(port, &rpc, &to, NULL, NULL);
	expect_failure(-EPROTONOSUPPORT, 0x60,
		       "class 0x60: the class is not registered on the port");
	assert_int_equal(mad_last_failure()->transmissions, 0);
	assert_int_equal(mad_last_failure()->elapsed_ms, 0);
}

TEST(calls_that_fail_with_a_status_store_it)
{
	uint16_t status = 0x0600;
	ib_portid_t to = to_lid(3);
	ib_sa_call_t sa = {.method = IB_MAD_METHOD_GET, .attrid = IB_SA_ATTR_PATHRECORD};
	ib_vendor_call_t vendor = {
		.method = IB_MAD_METHOD_GET, .mgmt_class = VENDOR_CLASS, .attrid = 0x77};

	device_on_write(respond_status, &status);
	assert_fails_null(sa_rpc_call(port, data, &to, &sa, 0), EIO);
	expect_failure(-EIO, IB_SA_CLASS, "SA: insufficient components");
	assert_int_equal(mad_last_failure()->status, 0x0600);
	assert_int_equal(mad_last_failure()->method, IB_MAD_METHOD_GET);
	assert_int_equal(mad_last_failure()->attribute, IB_SA_ATTR_PATHRECORD);
	assert_int_equal(mad_last_failure()->transmissions, 1);

	status = 0x000c;
	assert_null(ib_vendor_call_via(data, &to, &vendor, port));
	expect_failure(-EIO, VENDOR_CLASS, "attribute not supported with this method");
	assert_int_equal(mad_last_failure()->attribute, 0x77);
	assert_null(pma_query_via(data, &to, 1, 0, IB_GSI_PORT_COUNTERS, port));
	expect_failure(-EIO, IB_PERFORMANCE_CLASS, SAME);
	assert_int_equal(mad_last_failure()->method, IB_MAD_METHOD_GET);
	assert_null(performance_reset_via(data, &to, 1, 0, 0, IB_GSI_PORT_COUNTERS, port));
	assert_int_equal(mad_last_failure()->method, IB_MAD_METHOD_SET);
	assert_null(smp_query_via(data, &to, IB_ATTR_NODE_INFO, 0, 0, port));
	expect_failure(-EIO, IB_SMI_CLASS, SAME);
	to.lid = 0;
	assert_null(smp_set_via(data, &to, IB_ATTR_PORT_INFO, 1, 0, port));
	expect_failure(-EIO, IB_SMI_DIRECT_CLASS, SAME);
	to.lid = 3;
	assert_null(cc_query_status_via(data, &to, IB_CC_ATTR_CONGESTION_INFO, 0, 0, NULL, port,
					0));
	expect_failure(-EIO, IB_CC_CLASS, SAME);
}

TEST(calls_without_a_response_store_that)
{
	struct mad_message message;
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(3);

	mad_rpc_set_retries(port, 1);
	rpc.timeout = 20;
	for (int i = 0; i < 3; i++) {
		fail_otherwise();
		if (i == 0)
			assert_null(mad_rpc(port, &rpc, &to, data, data));
		else if (i == 1)
			assert_null(mad_rpc_rmpp(port, &rpc, &to, NULL, data));
		else
			assert_fails(mad_rpc_message(port, &rpc, &to, NULL, 0, &message),
				     ETIMEDOUT);
		assert_int_equal(mad_last_failure()->error, -ETIMEDOUT);
		assert_int_equal(mad_last_failure()->status, 0);
		assert_int_equal(mad_last_failure()->transmissions, 1);
		assert_true(mad_last_failure()->elapsed_ms >= 20);
		mad_failure_text(NULL, text, sizeof(text));
		assert_memory_equal(text, "no response to 1 transmission in ", 33);
	}
}

TEST(calls_with_wrong_arguments_store_that)
{
	ib_portid_t nowhere = {0}, to = to_lid(1);
	ib_rpc_t rpc = set_request();
	struct mad_message message;
	ib_vendor_call_t vendor = {.mgmt_class = VENDOR_CLASS};
	ib_bm_call_t bm = {0};
	ib_sa_call_t sa = {0};

	fail_otherwise();
	assert_null(sa_rpc_call(port, data, &nowhere, &sa, 0));
	expect_failure(-EINVAL, IB_SA_CLASS, "an argument is wrong");
	assert_null(ib_vendor_call_via(data, &nowhere, &vendor, port));
	expect_failure(-EINVAL, VENDOR_CLASS, SAME);
	assert_null(pma_query_via(NULL, &to, 1, 0, IB_GSI_PORT_COUNTERS, port));
	expect_failure(-EINVAL, IB_PERFORMANCE_CLASS, SAME);
	assert_null(smp_query_via(data, NULL, IB_ATTR_NODE_INFO, 0, 0, port));
	expect_failure(-EINVAL, IB_SMI_CLASS, SAME);
	assert_null(cc_query_status_via(data, NULL, 0, 0, 0, NULL, port, 0));
	expect_failure(-EINVAL, IB_CC_CLASS, SAME);
	assert_null(bm_call_via(data, &nowhere, &bm, port));
	expect_failure(-EINVAL, IB_BOARD_MGMT_CLASS, SAME);
	fail_otherwise();
	assert_null(mad_rpc(NULL, &rpc, &to, data, data));
	expect_failure(-EINVAL, IB_PERFORMANCE_CLASS, "an argument is wrong");
	assert_null(mad_rpc(port, NULL, &to, data, data));
	expect_failure(-EINVAL, 0, SAME);
	assert_int_equal(mad_rpc_message(port, &rpc, &to, NULL, 0, NULL), -EINVAL);
	expect_failure(-EINVAL, IB_PERFORMANCE_CLASS, SAME);
	assert_int_equal(mad_send_via(&rpc, NULL, NULL, data, NULL), -1);
	expect_failure(-EINVAL, IB_PERFORMANCE_CLASS, SAME);
	fail_otherwise();
	assert_int_equal(mad_rpc_message(port, &rpc, &to, data, 100000, &message), -EMSGSIZE);
	expect_failure(-EMSGSIZE, IB_PERFORMANCE_CLASS, "the request is too long");
	assert_int_equal(ib_resolve_portid_str_via(&to, (char[]){"x"}, IB_DEST_LID, NULL, port),
			 -1);
	expect_failure(-EINVAL, 0, "an argument is wrong");
}

TEST(mad_send_via_stores_why_it_fails)
{
	ib_rpc_t rpc = {.mgtclass = IB_SMI_DIRECT_CLASS, .method = IB_MAD_METHOD_GET};
	ib_portid_t to = {.drpath = {.cnt = 64}};

	assert_fails_minus_1(mad_send_via(&rpc, &to, NULL, NULL, port), EINVAL);
	expect_failure(-EINVAL, IB_SMI_DIRECT_CLASS, "an argument is wrong");
	fail_otherwise();
	assert_int_equal(mad_send_via(NULL, &to, NULL, NULL, port), -1);
	expect_failure(-EINVAL, 0, "an argument is wrong");
	fail_otherwise();
	assert_int_equal(mad_send_via(&rpc, &to, NULL, NULL, NULL), -1);
	expect_failure(-EINVAL, IB_SMI_DIRECT_CLASS, "an argument is wrong");
	to.drpath.cnt = 1;
	device_fail(DEVICE_WRITE, 1, ENOSPC);
	assert_fails_minus_1(mad_send_via(&rpc, &to, NULL, NULL, port), ENOSPC);
	assert_int_equal(device_written(), 0);
	assert_int_equal(mad_last_failure()->error, -ENOSPC);
	assert_int_equal(mad_last_failure()->mgmt_class, IB_SMI_DIRECT_CLASS);
}

static void fail_with(const char *expected, int error, unsigned mgmt_class,
		      enum mad_failure_kind kind)
{
	assert_int_equal(errno, error);
	assert_int_equal(mad_last_failure()->kind, kind);
	expect_failure(-error, mgmt_class, expected);
	fail_otherwise();
	assert_int_equal(mad_last_failure()->kind, MAD_FAILURE_REQUEST);
	errno = 0;
}

static void not_opened(int mgmt_class, const char *expected, int error)
{
	assert_null(mad_rpc_open_port(NULL, 0, &mgmt_class, 1));
	fail_with(expected, error, 0, MAD_FAILURE_OPEN);
}

TEST(a_port_that_is_not_opened_says_why)
{
	int classes[256] = {IB_SMI_CLASS};
	char name[] = "mlx9_9";

	fail_otherwise();
	assert_null(mad_rpc_open_port(name, 0, classes, 1));
	fail_with("the port cannot be opened: No such device", ENODEV, 0, MAD_FAILURE_OPEN);
	device_fail(DEVICE_OPEN, 1, EACCES);
	not_opened(IB_SMI_CLASS, "the port cannot be opened: Permission denied", EACCES);
	device_fail_malloc(1);
	not_opened(IB_SMI_CLASS, "the port cannot be opened: Cannot allocate memory", ENOMEM);
	assert_null(mad_rpc_open_port(NULL, 0, NULL, 1));
	fail_with("the port cannot be opened: Invalid argument", EINVAL, 0, MAD_FAILURE_OPEN);
	assert_null(mad_rpc_open_port(NULL, 0, classes, 256));
	fail_with("the port cannot be opened: Invalid argument", EINVAL, 0, MAD_FAILURE_OPEN);
}

TEST(a_pair_of_ports_that_is_not_opened_says_why)
{
	int classes[] = {IB_SMI_CLASS, IB_PERFORMANCE_CLASS};
	char name[] = "mlx9_9";

	fail_otherwise();
	assert_null(mad_rpc_open_port2(name, 0, classes, 2, 0));
	fail_with("the port cannot be opened: No such device", ENODEV, 0, MAD_FAILURE_OPEN);
	assert_null(mad_rpc_open_port2(NULL, 0, NULL, 2, 0));
	fail_with("the port cannot be opened: Invalid argument", EINVAL, 0, MAD_FAILURE_OPEN);
	device_fail(DEVICE_OPEN, 1, EACCES);
	assert_null(mad_rpc_open_port2(NULL, 0, classes, 2, 0));
	fail_with("the port cannot be opened: Permission denied", EACCES, 0, MAD_FAILURE_OPEN);
}

/* Whichever allocation fails, and whichever port it is for. */
TEST(a_pair_of_ports_without_memory_says_so)
{
	int classes[] = {IB_SMI_CLASS, IB_PERFORMANCE_CLASS};
	struct ibmad_ports_pair *pair = NULL;
	unsigned failed = 0;

	fail_otherwise();
	for (unsigned n = 1; !pair; n++) {
		device_fail_malloc(n);
		pair = mad_rpc_open_port2(NULL, 0, classes, 2, 0);
		device_fail_malloc(0);
		if (pair)
			break;
		failed++;
		assert_int_equal(mad_last_failure()->kind, MAD_FAILURE_OPEN);
		assert_int_equal(mad_last_failure()->error, -errno);
		fail_otherwise();
	}
	assert_true(failed >= 2);
	mad_rpc_close_port2(pair);
}

TEST(a_class_that_cannot_be_registered_is_named)
{
	int mgmt_class = IB_PERFORMANCE_CLASS;

	fail_otherwise();
	device_fail(DEVICE_IOCTL, 2, EPERM); /* the first one enables the P_Key index */
	assert_null(mad_rpc_open_port(NULL, 0, &mgmt_class, 1));
	fail_with("performance management: the class cannot be registered: Operation not "
		  "permitted",
		  EPERM, IB_PERFORMANCE_CLASS, MAD_FAILURE_REGISTER);
	mgmt_class = 0x60;
	assert_null(mad_rpc_open_port(NULL, 0, &mgmt_class, 1));
	fail_with("class 0x60: the class cannot be registered: Invalid argument", EINVAL, 0x60,
		  MAD_FAILURE_REGISTER);
	assert_int_equal(mad_register_client_via(0x60, 0, port), -1);
	fail_with("class 0x60: the class cannot be registered: Invalid argument", EINVAL, 0x60,
		  MAD_FAILURE_REGISTER);
	device_fail(DEVICE_IOCTL, 1, ENOMEM);
	assert_int_equal(mad_register_server_via(IB_SMI_CLASS, 0, NULL, 0, port), -1);
	fail_with("SMP: the class cannot be registered: Cannot allocate memory", ENOMEM,
		  IB_SMI_CLASS, MAD_FAILURE_REGISTER);
	assert_int_equal(mad_register_server_via(IB_SMI_CLASS, 0, NULL, 0, NULL), -1);
	fail_with("SMP: the class cannot be registered: Invalid argument", EINVAL, IB_SMI_CLASS,
		  MAD_FAILURE_REGISTER);
}

TEST(other_calls_that_set_errno_store_it)
{
	_Alignas(8) uint8_t umad[512] = {0};
	ib_dr_path_t path;

	fail_otherwise();
	assert_null(mad_async_create(NULL));
	fail_with("an argument is wrong", EINVAL, 0, MAD_FAILURE_OTHER);
	device_fail_malloc(1);
	assert_null(mad_async_create(port));
	fail_with("out of memory", ENOMEM, 0, MAD_FAILURE_OTHER);
	assert_null(mad_receive_via(umad, 0, NULL));
	fail_with("an argument is wrong", EINVAL, 0, MAD_FAILURE_OTHER);
	assert_null(mad_receive_via(umad, 0, port));
	fail_with("Resource temporarily unavailable", EAGAIN, 0, MAD_FAILURE_OTHER);
	assert_null(mad_receive_via(umad, 1, port));
	fail_with("the time is over", ETIMEDOUT, 0, MAD_FAILURE_OTHER);
	assert_int_equal(mad_respond_via(NULL, NULL, 0, port), -1);
	fail_with("an argument is wrong", EINVAL, 0, MAD_FAILURE_OTHER);
	assert_int_equal(mad_respond_via(umad, NULL, 0, port), -1);
	fail_with("an argument is wrong", EINVAL, 0, MAD_FAILURE_OTHER);
	((uint8_t *)umad_get_mad(umad))[1] = IB_PERFORMANCE_CLASS;
	device_fail(DEVICE_WRITE, 1, ENOSPC);
	assert_int_equal(mad_respond_via(umad, NULL, 0, port), -1);
	fail_with("No space left on device", ENOSPC, IB_PERFORMANCE_CLASS, MAD_FAILURE_OTHER);
	device_fail_malloc(1);
	assert_null(mad_alloc());
	fail_with("out of memory", ENOMEM, 0, MAD_FAILURE_OTHER);
	assert_null(mad_encode(umad, NULL, NULL, NULL));
	fail_with("an argument is wrong", EINVAL, 0, MAD_FAILURE_OTHER);
	assert_int_equal(mad_build_pkt(umad, NULL, NULL, NULL, NULL), -1);
	fail_with("an argument is wrong", EINVAL, 0, MAD_FAILURE_OTHER);
	assert_int_equal(str2drpath(&path, (char[]){"0,x"}, 0, 0), -1);
	fail_with("an argument is wrong", EINVAL, 0, MAD_FAILURE_OTHER);
}

/* From the first byte, or none at all. */
TEST(data_may_begin_anywhere_in_the_mad)
{
	static const int offsets[] = {0, 256};
	ib_rpc_t rpc = set_request();

	device_on_write(echo, NULL);
	rpc.datasz = 0;
	for (int i = 0; i < 2; i++) {
		rpc.dataoffs = offsets[i];
		submit_with(async, rpc, 1, note, &outcomes[i]);
		assert_int_equal(mad_async_wait(async, -1), 1);
		assert_int_equal(outcomes[i].error, 0);
		assert_int_equal(outcomes[i].data_size, 256 - offsets[i]);
	}
}

/* A number of 31 bits is the length of a message for the kernel. */
TEST(a_request_has_less_than_two_gigabytes)
{
	size_t most = INT32_MAX - 2 * (64 + IB_MAD_SIZE);
	ib_portid_t to = to_lid(1);
	ib_rpc_t rpc = table_request();
	struct mad_message message;

	device_fail_malloc(1);
	assert_int_equal(mad_rpc_message(port, &rpc, &to, data, most, &message), -ENOMEM);
	assert_int_equal(mad_rpc_message(port, &rpc, &to, data, most + 1, &message), -EMSGSIZE);
	assert_int_equal(device_written(), 0);
}

TEST(data_that_does_not_begin_in_the_mad_is_a_wrong_argument)
{
	static const int offsets[] = {-1, 257};
	ib_portid_t to = to_lid(1);
	ib_rpc_t rpc = set_request();

	device_on_write(echo, NULL);
	for (unsigned i = 0; i < 2; i++) {
		rpc.dataoffs = offsets[i];
		fail_otherwise();
		assert_fails_null(mad_rpc(port, &rpc, &to, NULL, data), EINVAL);
		expect_failure(-EINVAL, IB_PERFORMANCE_CLASS, "an argument is wrong");
		assert_int_equal(mad_last_failure()->transmissions, 0);
	}
	assert_int_equal(device_written(), 0);
}

/*
 * Its headers are written, although they are longer than the message: the buffer is large
 * enough.
 */
TEST(a_request_by_rmpp_that_is_shorter_than_its_headers_is_refused)
{
	ib_portid_t to = to_lid(1);
	ib_rpc_t rpc = table_request();
	struct mad_message message;

	rpc.method = IB_MAD_METHOD_GETMULTI;
	rpc.dataoffs = 0;
	rpc.mask = UINT64_MAX;
	assert_int_equal(mad_rpc_message(port, &rpc, &to, NULL, 0, &message), -EINVAL);
	assert_int_equal(device_written(), 0);
}

TEST(without_an_sm_a_call_that_resolves_it_says_so)
{
	ib_portid_t sm;

	device_on_write(echo, NULL);
	assert_fails_minus_1(ib_resolve_smlid_via(&sm, 0, port), ENXIO);
	expect_failure(-ENXIO, 0, "no SM is known");
}

TEST(a_call_that_succeeds_leaves_the_failure)
{
	ib_portid_t to = to_lid(3);

	fail_otherwise();
	device_on_write(echo, NULL);
	assert_non_null(smp_query_via(data, &to, IB_ATTR_NODE_INFO, 0, 0, port));
	assert_int_equal(mad_last_failure()->error, -EPROTONOSUPPORT);
	assert_int_equal(mad_last_failure()->mgmt_class, 0x60);
}

struct failing {
	pthread_t thread;
	ib_rpc_t rpc;
	int before, wrong;
};

#define ROUNDS 500

/* Fails in its own way, repeatedly. */
static void *fail_often(void *arg)
{
	struct failing *failing = arg;
	ib_portid_t to = to_lid(3);

	failing->before = mad_last_failure()->error;
	for (int i = 0; i < ROUNDS; i++) {
		ib_rpc_t rpc = failing->rpc;

		failing->wrong += mad_rpc(port, &rpc, &to, NULL, NULL) != NULL;
		failing->wrong += mad_last_failure()->mgmt_class != (unsigned)rpc.mgtclass ||
				  mad_last_failure()->status != 0x000c;
	}
	return NULL;
}

TEST(each_thread_has_its_own_failure)
{
	struct failing threads[2] = {{.rpc = set_request()}, {.rpc = get_request()}};
	uint16_t status = 0x000c;

	fail_otherwise();
	device_on_write(respond_status, &status);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			pthread_create(&threads[i].thread, NULL, fail_often, &threads[i]), 0);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i].thread, NULL);
		assert_int_equal(threads[i].before, 0);
		assert_int_equal(threads[i].wrong, 0);
	}
	assert_int_equal(mad_last_failure()->mgmt_class, 0x60);
}

/* --- a class that is not registered --------------------------------------------- */

static char heard[1024];

static void hear(enum umad_log_level level, const char *line, void *arg)
{
	(void)level;
	(void)arg;
	strcat(heard, line);
	strcat(heard, "\n");
}

static int mute(void)
{
	madrpc_show_errors(0);
	umad_set_log_hook(NULL, NULL);
	return async_teardown();
}

static int listen_setup(void)
{
	heard[0] = '\0';
	umad_set_log_hook(hear, NULL);
	return async_setup();
}

TEST_WITH(a_class_that_is_not_registered_has_an_error_of_its_own, listen_setup, mute)
{
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);
	struct mad_message message;

	rpc.mgtclass = IB_DEVICE_MGMT_CLASS;
	for (int shown = 0; shown < 2; shown++) {
		const char *expected[] = {
			"", "mad_async_submit: class 0x06 is not registered on the port\n"
			    "mad_rpc_message: class 0x06 is not registered on the port\n"};

		madrpc_show_errors(shown);
		assert_int_equal(
			mad_async_submit(async, &rpc, &to, NULL, 0, note, outcomes, NULL),
			-EPROTONOSUPPORT);
		assert_fails(mad_rpc_message(port, &rpc, &to, NULL, 0, &message),
			     EPROTONOSUPPORT);
		expect_failure(-EPROTONOSUPPORT, IB_DEVICE_MGMT_CLASS,
			       "device management: the class is not registered on the port");
		assert_string_equal(heard, expected[shown]);
	}
	assert_int_equal(device_written(), 0);
}

TEST_WITH(a_reading_without_its_class_has_that_error, listen_setup, mute)
{
	int class = IB_SMI_CLASS;
	struct ibmad_port *other = mad_rpc_open_port(NULL, 0, &class, 1);
	struct mad_counters counters;
	ib_portid_t to = to_lid(1);

	assert_int_equal(mad_counters_read(other, &to, 1, NULL, &counters, sizeof(counters)),
			 -EPROTONOSUPPORT);
	assert_int_equal(mad_counters_reset(other, &to, 1, NULL), -EPROTONOSUPPORT);
	mad_rpc_close_port(other);
}

/* Its errno and its messages are those of rdma-core, but for a message with ibdebug. */
TEST_WITH(mad_rpc_keeps_its_errno_for_such_a_class, listen_setup, mute)
{
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);

	rpc.mgtclass = IB_DEVICE_MGMT_CLASS;
	for (int i = 0; i < 9; i++) {
		madrpc_show_errors(i >= 3);
		ibdebug = i >= 6;
		heard[0] = '\0';
		fail_otherwise();
		heard[0] = '\0';
		if (i % 3 == 0)
			assert_null(mad_rpc(port, &rpc, &to, NULL, NULL));
		else if (i % 3 == 1)
			assert_null(mad_rpc_rmpp(port, &rpc, &to, NULL, NULL));
		else
			assert_fails_minus_1(mad_send_via(&rpc, &to, NULL, NULL, port), EINVAL);
		assert_non_null(strstr(heard, "Invalid argument\n"));
		if (ibdebug)
			assert_non_null(
				strstr(heard, ": class 0x06 is not registered on the port"));
		else
			assert_null(strstr(heard, "registered"));
		expect_failure(-EPROTONOSUPPORT, IB_DEVICE_MGMT_CLASS,
			       "device management: the class is not registered on the port");
	}
	ibdebug = 0;
}
