/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The calls that make a request and wait: the MADs of each management class, the data that
 * comes back, messages of any length, receiving and responding, errors and their texts.
 */

#include "captured_output.h"
#include "requests.h"

#include <infiniband/mad_counters.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define M_KEY        0x1122334455667788

static struct mad_async *async;
static ib_portid_t to;
static uint8_t buf[256], before[256];
static char text[MAD_ERROR_TEXT_SIZE];

static int setup(void)
{
	if (requests_setup())
		return -1;
	async = mad_async_create(port);
	to = (ib_portid_t){.lid = machine_lid("n1")};
	for (unsigned i = 0; i < sizeof(buf); i++)
		buf[i] = before[i] = (uint8_t)(i + 1);
	errno = 0;
	return 0;
}

static int teardown(void)
{
	madrpc_show_errors(0);
	ibdebug = 0;
	mad_async_free(async);
	return requests_teardown();
}

FIXTURE(setup, teardown);

/* --- the MADs of the calls ------------------------------------------------------ */

/* "offset:hex ...", over size bytes of the buffer at an offset; the TID is not compared. */
static void expect_mad(unsigned offset, unsigned size, const char *bytes)
{
	const uint8_t *mad = arrivals[0].bytes;
	uint8_t expected[MACHINE_MAD] = {0};
	unsigned byte;
	char *at;

	memcpy(expected + offset, before, size);
	while (*bytes) {
		size_t place = strtoul(bytes, &at, 10);

		for (at++; sscanf(at, "%2x", &byte) == 1 && *at != ' '; at += 2)
			expected[place++] = (uint8_t)byte;
		bytes = at + strspn(at, " ");
	}
	memcpy(expected + 8, mad + 8, 8);
	if (mad[1] == IB_SMI_DIRECT_CLASS) { /* on its way: the hop pointer, the return path */
		expected[6] = mad[6];
		memcpy(expected + 192, mad + 192, 64);
	}
	assert_memory_equal(mad, expected, MACHINE_MAD);
}

static uint8_t sevens[64];

static void begin_call(void)
{
	memcpy(buf, before, sizeof(buf));
	memset(sevens, 7, sizeof(sevens));
	response.data = sevens;
	response.size = sizeof(sevens);
	arrived = 0;
}

static void check_call(unsigned offset, unsigned size, const char *mad)
{
	bool smp, responds = *script != '-';

	assert_int_equal(errno, 0);
	machine_pass(1);
	assert_int_equal(arrived, 1);
	expect_mad(offset, size, mad);
	smp = (arrivals[0].bytes[1] & 0x7f) == IB_SMI_CLASS;
	assert_int_equal(arrivals[0].mad.qp, !smp);
	assert_int_equal(arrivals[0].mad.qkey, smp ? 0 : IB_DEFAULT_QP1_QKEY);
	assert_int_equal(arrivals[0].mad.sl, smp ? 0 : 4);
	assert_false(arrivals[0].mad.grh);
	assert_memory_equal(buf + data_offset(arrivals[0].bytes[1]) - offset,
			    responds ? sevens : before, 64);
	assert_memory_equal(buf + 232, before + 232, sizeof(buf) - 232);
}

/* The MAD of a call, with data of the buffer and other bytes. 7s come back in the buffer. */
#define expect_call(call, offset, size, mad)   \
	do {                                   \
		begin_call();                  \
		assert_ptr_equal(call, buf);   \
		check_call(offset, size, mad); \
	} while (0)

TEST(smps_have_no_sl_qp_or_key_and_a_set_has_the_m_key)
{
	const ib_portid_t directed = {.lid = -5, .drpath = {.cnt = 2, .p = {0, 1, 2}}};

	expect_call(smp_query_via(buf, &to, IB_ATTR_PORT_INFO, 0x12345678, 0, port), 64, 64,
		    "0:01010101 17:15 20:12345678");
	smp_mkey_set(port, M_KEY);
	to = (ib_portid_t){.lid = 11, .qp = 5, .qkey = 5, .sl = 3, .pkey_idx = 1};
	expect_call(smp_set_via(buf, &to, IB_ATTR_PORT_INFO, 1, 0, port), 64, 64,
		    "0:01010102 17:15 23:01 24:1122334455667788");
	to = directed;
	expect_call(smp_set_via(buf, &to, IB_ATTR_NODE_INFO, 0, 0, port), 64, 64,
		    "0:01810102 7:02 17:11 24:1122334455667788ffffffff 129:0102");
	smp_mkey_set(port, 0);
	expect_call(smp_query_via(buf, &to, IB_ATTR_NODE_INFO, 0, 0, port), 64, 64,
		    "0:01810101 7:02 17:11 32:ffffffff 129:0102");
	/* a permissive end makes the route directed */
	mad_rpc_set_retries(port, 1);
	to = (ib_portid_t){.lid = 11, .drpath = {.drslid = 0x21, .drdlid = 0xffff}};
	arrived = 0;
	smp_query_via(buf, &to, IB_ATTR_NODE_INFO, 0, 0, port);
	assert_int_equal(arrivals[0].bytes[1], IB_SMI_DIRECT_CLASS);
	machine_on_arrival(NULL, NULL);
	to.drpath = (ib_dr_path_t){.drslid = 0xffff};
	assert_non_null(smp_query_via(buf, &to, IB_ATTR_NODE_INFO, 0, 0, port));
	assert_true(mad_get_field64(buf, 0, IB_NODE_PORT_GUID_F) == machine_guid("host"));
}

TEST(counters_have_a_port_and_their_resets_a_mask_or_all_counters)
{
	static const struct {
		unsigned attribute, mask;
		const char *mad;
	} resets[] = {
		{IB_GSI_PORT_COUNTERS, 0x12345678, "0:01040102 17:12 65:015678 82:34"},
		{IB_GSI_PORT_COUNTERS_EXT, 0x12345678, "0:01040102 17:1d 65:015678 70:1234"},
		{IB_GSI_PORT_COUNTERS, 0, "0:01040102 17:12 65:01ffff 82:ff"},
		{IB_GSI_PORT_COUNTERS_EXT, 0, "0:01040102 17:1d 65:01ffff 70:ffff"},
	};

	to.sl = 4;
	smp_mkey_set(port, M_KEY);
	expect_call(pma_query_via(buf, &to, 0x203, 0, IB_GSI_PORT_COUNTERS, port), 64, 192,
		    "0:01040101 17:12 65:03");
	for (size_t i = 0; i < COUNT(resets); i++)
		expect_call(performance_reset_via(buf, &to, 1, resets[i].mask, 0,
						  resets[i].attribute, port),
			    64, 0, resets[i].mad);
}

TEST(congestion_control_has_a_key_and_its_log_begins_earlier)
{
	uint8_t payload[IB_CC_DATA_SZ] = {0x77};

	to.sl = 4;
	to.qp = 77; /* always by QP1 */
	expect_call(cc_query_status_via(buf, &to, IB_CC_ATTR_CONGESTION_INFO, 5, 0, NULL, port,
					M_KEY),
		    64, 192, "0:01210201 17:11 23:05 24:1122334455667788");
	expect_call(
		cc_query_status_via(buf, &to, IB_CC_ATTR_CONGESTION_LOG, 0, 0, NULL, port, 1),
		32, 224, "0:01210201 17:13 31:01");
	expect_call(cc_config_status_via(payload, buf, &to, IB_CC_ATTR_CA_CONGESTION_SETTING, 0,
					 0, NULL, port, 2),
		    64, 0, "0:01210202 17:16 31:02 64:77");
	errno = EBADF; /* no buffer: no result, and no error */
	assert_null(cc_config_status_via(buf, NULL, &to, 0x16, 0, 0, NULL, port, 0));
	assert_int_equal(errno, 0);
	assert_ptr_equal(cc_config_status_via(NULL, buf, &to, 0x16, 0, 0, NULL, port, 0), buf);
}

TEST(vendors_have_an_oui_and_baseboards_a_key_and_a_send_does_not_wait)
{
	/* the first three have a response */
	static const unsigned methods[] = {
		IB_MAD_METHOD_GET,          IB_MAD_METHOD_SET,          IB_MAD_METHOD_TRAP,
		IB_MAD_METHOD_TRAP_REPRESS, IB_MAD_METHOD_GET_RESPONSE, 0x10};
	ib_vendor_call_t vendor = {.method = IB_MAD_METHOD_GET,
				   .mgmt_class = VENDOR_1,
				   .attrid = 0x50,
				   .mod = 4,
				   .oui = 0x123456,
				   .timeout = 5};
	ib_bm_call_t bm = {.method = IB_MAD_METHOD_GET,
			   .attrid = IB_BM_ATTR_BKEYINFO,
			   .mod = 3,
			   .bkey = 0xaabbccddeeff0011,
			   .timeout = 5};

	to.sl = 4;
	expect_call(ib_vendor_call_via(buf, &to, &vendor, port), 24, 232,
		    "0:010a0101 17:50 23:04");
	expect_call(bm_call_via(buf, &to, &bm, port), 64, 192,
		    "0:01050101 17:10 23:03 24:aabbccddeeff0011");
	vendor.mgmt_class = VENDOR_2;
	vendor.method = IB_MAD_METHOD_SET;
	expect_call(ib_vendor_call_via(buf, &to, &vendor, port), 40, 216,
		    "0:01330102 17:50 23:04 37:123456");
	use_script("-");
	vendor.mgmt_class = VENDOR_1;
	vendor.method = bm.method = IB_MAD_METHOD_SEND;
	expect_call(ib_vendor_call_via(buf, &to, &vendor, port), 24, 232,
		    "0:010a0103 17:50 23:04");
	expect_call(bm_call_via(buf, &to, &bm, port), 64, 192,
		    "0:01050103 17:10 23:03 24:aabbccddeeff0011");
	for (size_t i = 0; i < COUNT(methods); i++) {
		vendor.method = bm.method = methods[i];
		assert_ptr_equal(ib_vendor_call_via(buf, &to, &vendor, port),
				 i < 3 ? NULL : buf);
		assert_ptr_equal(bm_call_via(buf, &to, &bm, port), i < 3 ? NULL : buf);
	}
	vendor.method = IB_MAD_METHOD_SEND;
	machine_fail(MACHINE_WRITE, 1, ENOMEM);
	assert_fails_null(ib_vendor_call_via(buf, &to, &vendor, port), ENOMEM);
}

/* --- failures ------------------------------------------------------------------- */

static void expect_failure(int error, unsigned mgmt_class, const char *expected)
{
	assert_int_equal(mad_last_failure()->error, error);
	assert_int_equal(mad_last_failure()->mgmt_class, mgmt_class);
	assert_string_equal(mad_failure_text(NULL, text, sizeof(text)), expected);
}

#define expect_heard(expected)                        \
	do {                                          \
		assert_string_equal(heard, expected); \
		heard[0] = '\0';                      \
	} while (0)

/* Another failure, so that each test checks its own. */
static void fail_otherwise(void)
{
	ib_rpc_t rpc = {.mgtclass = 0x60, .dataoffs = 64};

	to = to_node("n1");
	mad_rpc(port, &rpc, &to, NULL, NULL);
	expect_failure(-EPROTONOSUPPORT, 0x60,
		       "class 0x60: the class is not registered on the port");
	assert_int_equal(mad_last_failure()->transmissions, 0);
	heard[0] = '\0';
}

/* A call fails with an errno, which the last failure has, too. */
#define expect_fails(fails, error, failure_kind, mgmt_class, text)        \
	do {                                                              \
		fail_otherwise();                                         \
		errno = 0;                                                \
		assert_true(fails);                                       \
		assert_int_equal(errno, error);                           \
		assert_int_equal(mad_last_failure()->kind, failure_kind); \
		expect_failure(-(error), mgmt_class, text);               \
	} while (0)

#define refused(fails, mgmt_class) \
	expect_fails(fails, EINVAL, MAD_FAILURE_REQUEST, mgmt_class, "an argument is wrong")
#define wrong_argument(fails) \
	expect_fails(fails, EINVAL, MAD_FAILURE_OTHER, 0, "an argument is wrong")

TEST(a_status_is_an_error_and_stored_and_leaves_the_buffer)
{
	ib_vendor_call_t vendor = {
		.method = IB_MAD_METHOD_GET, .mgmt_class = VENDOR_1, .attrid = 0x77};
	static const char why[] = "attribute not supported with this method";
	int smp = -1, cc = -1;

	use_script("c");
	assert_fails_null(smp_query_status_via(buf, &to, 0x77, 0, 0, &smp, port), EIO);
	expect_failure(-EIO, IB_SMI_CLASS, why);
	assert_fails_null(cc_query_status_via(buf, &to, 0x99, 0, 0, &cc, port, 0), EIO);
	expect_failure(-EIO, IB_CC_CLASS, why);
	assert_memory_equal(buf, before, sizeof(buf));
	assert_fails_null(ib_vendor_call_via(buf, &to, &vendor, port), EIO);
	expect_failure(-EIO, VENDOR_1, why);
	assert_int_equal(mad_last_failure()->method, IB_MAD_METHOD_GET);
	assert_int_equal(mad_last_failure()->attribute, 0x77);
	assert_int_equal(mad_last_failure()->transmissions, 1);
	assert_int_equal(smp + cc, 2 * 0xc);
	to = (ib_portid_t){.drpath = {.cnt = 2, .p = {0, 1, 2}}};
	assert_fails_null(smp_set_status_via(buf, &to, 0x77, 0, 0, &smp, port), EIO);
	assert_int_equal(smp, 0xc); /* without the direction bit */
	use_script("ok");
	assert_non_null(smp_query_status_via(buf, &to, 0x11, 0, 0, &smp, port));
	assert_int_equal(smp, 0);
	assert_int_equal(mad_last_failure()->status, 0xc); /* success leaves the failure */
	use_script("-");
	to.lid = 11;
	smp = -1;
	assert_fails_null(smp_set_status_via(buf, &to, 0x11, 0, 5, &smp, port), ETIMEDOUT);
	assert_int_equal(smp, 0);
	assert_in_range(mad_last_failure()->elapsed_ms, 15, 100);
}

TEST(calls_with_wrong_arguments_are_refused)
{
	static const unsigned classes[] = {0x04, 0x08,  0x10,  0x2f,
					   0x50, 0x10a, 0x133, 0xffffffff};
	ib_portid_t nowhere = {.lid = -1}, far = {.drpath = {.cnt = 64}};
	ib_vendor_call_t vendor = {.mgmt_class = VENDOR_1, .method = IB_MAD_METHOD_GET};
	ib_bm_call_t bm = {.method = IB_MAD_METHOD_GET};
	ib_sa_call_t sa = {0};

	refused(!smp_query_via(buf, &far, 0x11, 0, 0, port), IB_SMI_DIRECT_CLASS);
	refused(!smp_query_via(buf, NULL, 0x11, 0, 0, port), IB_SMI_CLASS);
	refused(!smp_set_via(buf, &to, 0x11, 0, 0, NULL), IB_SMI_CLASS);
	refused(!pma_query_via(buf, &nowhere, 1, 0, 0x12, port), IB_PERFORMANCE_CLASS);
	refused(!pma_query_via(buf, NULL, 1, 0, 0x12, port), IB_PERFORMANCE_CLASS);
	refused(!pma_query_via(NULL, &to, 1, 0, 0x12, port), IB_PERFORMANCE_CLASS);
	refused(!performance_reset_via(buf, &nowhere, 1, 0, 0, 0x12, port),
		IB_PERFORMANCE_CLASS);
	refused(!cc_query_status_via(buf, NULL, 0x11, 0, 0, NULL, port, 0), IB_CC_CLASS);
	refused(!sa_rpc_call(port, buf, &nowhere, &sa, 0), IB_SA_CLASS);
	refused(!bm_call_via(buf, &nowhere, &bm, port), IB_BOARD_MGMT_CLASS);
	refused(!bm_call_via(buf, NULL, &bm, port), IB_BOARD_MGMT_CLASS);
	refused(!bm_call_via(buf, &to, NULL, port), IB_BOARD_MGMT_CLASS);
	refused(!ib_vendor_call_via(buf, &nowhere, &vendor, port), VENDOR_1);
	refused(!ib_vendor_call_via(buf, NULL, &vendor, port), VENDOR_1);
	refused(!ib_vendor_call_via(buf, &to, NULL, port), 0);
	for (size_t i = 0; i < COUNT(classes); i++) {
		vendor.mgmt_class = classes[i];
		refused(!ib_vendor_call_via(buf, &to, &vendor, port), classes[i] & 0xff);
	}
	machine_pass(1);
	assert_int_equal(arrived, 0);
}

TEST(requests_that_make_no_sense_are_refused)
{
	ib_rpc_t good = get_request(), bad = good;
	struct mad_message message;

	refused(!mad_rpc(NULL, &good, &to, buf, buf), IB_SMI_CLASS);
	refused(!mad_rpc(port, NULL, &to, buf, buf), 0);
	refused(!mad_rpc(port, &good, NULL, buf, buf), IB_SMI_CLASS);
	for (int i = 0; i < 2; i++) {
		bad.dataoffs = i ? IB_MAD_SIZE + 1 : -1;
		refused(!mad_rpc(port, &bad, &to, NULL, buf), IB_SMI_CLASS);
		refused(!mad_rpc_rmpp(port, &bad, &to, NULL, NULL), IB_SMI_CLASS);
		assert_string_equal(heard, "");
	}
	bad = good;
	bad.datasz = -1;
	refused(!mad_rpc(port, &bad, &to, buf, buf), IB_SMI_CLASS);
	refused(!mad_rpc_rmpp(port, &bad, &to, NULL, buf), IB_SMI_CLASS);
	bad.datasz = 1000; /* no RMPP in this class */
	expect_fails(!mad_rpc(port, &bad, &to, buf, buf), EMSGSIZE, MAD_FAILURE_REQUEST,
		     IB_SMI_CLASS, "the request is too long");

	assert_fails(mad_rpc_message(port, &good, &to, buf, 1, NULL), EINVAL);
	assert_fails(mad_rpc_message(NULL, &good, &to, buf, 1, &message), EINVAL);
	assert_fails(mad_rpc_message(port, NULL, &to, buf, 1, &message), EINVAL);
	assert_fails(mad_rpc_message(port, &good, NULL, buf, 1, &message), EINVAL);
	assert_fails(mad_rpc_message(port, &good, &to, buf, 1000, &message), EMSGSIZE);
	assert_null(message.mad);
	bad = table_request();
	assert_fails(mad_rpc_message(port, &bad, &to, buf, SIZE_MAX, &message), EMSGSIZE);
	/* less than two gigabytes: 31 bits are the length of a message for the kernel */
	assert_fails(mad_rpc_message(port, &bad, &to, buf, INT32_MAX - 639, &message),
		     EMSGSIZE);
	machine_fail(MACHINE_MALLOC, 1, ENOMEM);
	assert_fails(mad_rpc_message(port, &bad, &to, buf, INT32_MAX - 640, &message), ENOMEM);
	/* by RMPP, and shorter than its headers */
	bad.method = IB_MAD_METHOD_GETMULTI;
	bad.dataoffs = 0;
	bad.mask = UINT64_MAX;
	assert_fails(mad_rpc_message(port, &bad, &to, NULL, 0, &message), EINVAL);
	machine_pass(1);
	assert_int_equal(arrived, 0);
}

TEST(other_calls_that_set_errno_store_it)
{
	_Alignas(8) uint8_t umad[512] = {0};
	ib_rpc_t rpc = {.mgtclass = IB_SMI_DIRECT_CLASS, .method = IB_MAD_METHOD_GET};
	ib_portid_t far = {.drpath = {.cnt = 64}};
	ib_dr_path_t path;

	wrong_argument(!mad_async_create(NULL));
	wrong_argument(!mad_receive_via(umad, 0, NULL));
	wrong_argument(mad_respond_via(NULL, NULL, 0, port) == -1);
	wrong_argument(mad_respond_via(umad, NULL, 0, port) == -1);
	wrong_argument(!mad_encode(umad, NULL, NULL, NULL));
	wrong_argument(mad_build_pkt(umad, NULL, NULL, NULL, NULL) == -1);
	wrong_argument(str2drpath(&path, (char[]){"0,x"}, 0, 0) == -1);
	expect_fails(!mad_receive_via(umad, 0, port), EAGAIN, MAD_FAILURE_OTHER, 0,
		     "Resource temporarily unavailable");
	expect_fails(!mad_receive_via(umad, 1, port), ETIMEDOUT, MAD_FAILURE_OTHER, 0,
		     "the time is over");
	for (int i = 0; i < 2; i++) {
		fail_otherwise();
		machine_fail(MACHINE_MALLOC, 1, ENOMEM);
		assert_fails_null(i ? (void *)mad_async_create(port) : mad_alloc(), ENOMEM);
		expect_failure(-ENOMEM, 0, "out of memory");
	}
	((uint8_t *)umad_get_mad(umad))[1] = IB_PERFORMANCE_CLASS;
	machine_fail(MACHINE_WRITE, 1, ENOSPC);
	assert_fails_minus_1(mad_respond_via(umad, NULL, 0, port), ENOSPC);
	expect_failure(-ENOSPC, IB_PERFORMANCE_CLASS, "No space left on device");
	assert_int_equal(mad_last_failure()->kind, MAD_FAILURE_OTHER);

	refused(ib_resolve_portid_str_via(&to, (char[]){"x"}, IB_DEST_LID, NULL, port) == -1,
		0);
	refused(mad_send_via(&rpc, &far, NULL, NULL, port) == -1, IB_SMI_DIRECT_CLASS);
	refused(mad_send_via(NULL, &far, NULL, NULL, port) == -1, 0);
	refused(mad_send_via(&rpc, &far, NULL, NULL, NULL) == -1, IB_SMI_DIRECT_CLASS);
	far.drpath.cnt = 1;
	machine_fail(MACHINE_WRITE, 1, ENOSPC);
	heard[0] = '\0';
	assert_fails_minus_1(mad_send_via(&rpc, &far, NULL, NULL, port), ENOSPC);
	expect_failure(-ENOSPC, IB_SMI_DIRECT_CLASS,
		       "the MAD cannot be sent: No space left on device");
	expect_heard("mad_send_via: the MAD cannot be sent: No space left on device\n");
}

/* --- the data of mad_rpc() and its relatives ------------------------------------ */

TEST(data_is_sent_from_the_payload_and_comes_back_in_the_buffer)
{
	ib_rpc_t rpc = get_request();
	uint8_t data[IB_SMP_DATA_SIZE + 1] = {0}, untouched = 0x5a;

	assert_ptr_equal(mad_rpc(port, &rpc, &to, buf, data), data);
	assert_memory_equal(data, buf, IB_SMP_DATA_SIZE);
	assert_int_equal(data[IB_SMP_DATA_SIZE], 0);
	assert_int_equal(rpc.rstatus, 0);
	errno = EPERM; /* without a buffer, errno tells success */
	assert_null(mad_rpc(port, &rpc, &to, NULL, NULL));
	assert_int_equal(errno, 0);
	rpc.datasz = 0;
	for (rpc.dataoffs = 0; rpc.dataoffs <= IB_MAD_SIZE; rpc.dataoffs += 128) {
		assert_ptr_equal(mad_rpc(port, &rpc, &to, &untouched, &untouched), &untouched);
		assert_ptr_equal(mad_rpc_rmpp(port, &rpc, &to, NULL, &untouched), &untouched);
	}
	assert_int_equal(untouched, 0x5a);
}

/* As from a kernel that receives MADs of another length. */
TEST(missing_data_of_a_short_response_is_zero)
{
	ib_rpc_t rpc = set_request();
	uint8_t data[IB_MAD_SIZE];

	mad_rpc_set_retries(port, 1);
	mad_rpc_set_timeout(port, 100);
	for (int length = 0; length < IB_MAD_SIZE; length += length == 35 ? 1 : 5) {
		machine_read_result((ssize_t)umad_size() + length);
		memset(data, 0x5a, sizeof(data));
		if (length < 36) { /* no header: it is no response */
			assert_fails_null(mad_rpc(port, &rpc, &to, buf, data), ETIMEDOUT);
			continue;
		}
		assert_non_null(mad_rpc(port, &rpc, &to, buf, data));
		for (int i = 0; i < rpc.datasz; i++)
			assert_int_equal(data[i], rpc.dataoffs + i < length ? buf[i] : 0);
	}
	rpc.dataoffs = IB_MAD_SIZE;
	rpc.datasz = 1;
	data[0] = data[1] = 0x5a;
	assert_ptr_equal(mad_rpc_rmpp(port, &rpc, &to, NULL, data), data);
	assert_int_equal(data[0], 0);
	assert_int_equal(data[1], 0x5a);
}

TEST(a_length_that_cannot_be_is_the_end_of_the_device)
{
	static const ssize_t results[] = {1, 63, 10000000, -EINVAL};

	for (int i = 0; i < 4; i++) {
		machine_read_result(results[i]);
		assert_int_equal(ask(set_request(), "n1"), ENODEV);
		teardown();
		setup();
	}
}

TEST(a_request_of_version_1_has_its_error)
{
	ib_rpc_v1_t rpc = {.mgtclass = IB_SMI_CLASS | IB_MAD_RPC_VERSION1,
			   .method = IB_MAD_METHOD_GET,
			   .dataoffs = IB_SMP_DATA_OFFS,
			   .datasz = IB_SMP_DATA_SIZE,
			   .error = -1};

	use_script("ok c");
	assert_non_null(mad_rpc(port, (ib_rpc_t *)(void *)&rpc, &to, buf, buf));
	assert_int_equal(rpc.error, 0);
	assert_null(mad_rpc(port, (ib_rpc_t *)(void *)&rpc, &to, buf, buf));
	assert_int_equal(rpc.error, EIO);
	assert_int_equal(rpc.rstatus, 0xc);
}

TEST(a_request_writes_polls_and_reads_once_and_allocates_nothing)
{
	static const enum machine_call kinds[] = {MACHINE_WRITE, MACHINE_POLL, MACHINE_READ,
						  MACHINE_MALLOC};
	unsigned counts[COUNT(kinds)];

	/* the entry of a destination is allocated */
	assert_int_equal(ask(get_request(), "n1") + ask(set_request(), "n1"), 0);
	for (size_t i = 0; i < COUNT(kinds); i++)
		counts[i] = machine_calls(kinds[i]);
	assert_int_equal(ask(get_request(), "n1") + ask(set_request(), "n1"), 0);
	for (size_t i = 0; i < COUNT(kinds); i++)
		assert_int_equal(machine_calls(kinds[i]) - counts[i],
				 kinds[i] == MACHINE_MALLOC ? 0 : 2);
	use_script("1 ok");
	machine_fail(MACHINE_MALLOC, 1, ENOMEM); /* of another destination */
	assert_int_equal(ask(get_request(), "n2"), 0);
	/* a call that is interrupted is made again */
	for (size_t i = 0; i < 3; i++) {
		machine_fail(kinds[i], 1, EINTR);
		assert_int_equal(ask(set_request(), "n1"), 0);
	}
	machine_fail(MACHINE_WRITE, 1, EIO); /* the device still exists */
	assert_int_equal(ask(set_request(), "n1"), EIO);
	assert_int_equal(ask(set_request(), "n1"), 0);
}

/* Also those that the rate does not allow yet. */
TEST(a_device_that_goes_fails_all_requests)
{
	use_script("ok -");
	mad_port_set(port, MAD_PORT_RATE, 1);
	assert_int_equal(ask(set_request(), "n1"), 0);
	machine_rule("after 1500ms remove on host");
	for (int i = 0; i < 3; i++)
		assert_int_equal(ask(set_request(), "n1"), ENODEV);
	assert_int_equal(arrived, 2);
	assert_fails_null(mad_receive_via(NULL, 10, port), ENODEV);
}

/* No thread serves the engine: the blocking call judges the engine's timer itself. */
TEST(a_late_request_of_an_engine_gives_its_place_to_a_blocking_call)
{
	struct outcome outcome = {0};
	ib_rpc_t rpc = set_request();

	use_script("- ok");
	mad_rpc_set_retries(port, 1);
	mad_port_set(port, MAD_PORT_GMP_WINDOW, 1);
	rpc.timeout = 20;
	submit(async, rpc, "n2", &outcome, NULL);
	assert_int_equal(ask(set_request(), "n1"), 0);
	assert_int_equal(outcome.calls, 0);
	assert_int_equal(mad_async_wait(async, -1), 1);
	assert_int_equal(outcome.error, -ETIMEDOUT);
}

TEST(a_timeout_of_0_is_that_of_the_process)
{
	use_script("-");
	madrpc_set_timeout(0);
	mad_rpc_set_timeout(port, 0);
	assert_int_equal(ask(get_request(), "n1"), ETIMEDOUT);
	assert_in_range(machine_us(), 1000, 100000);
	madrpc_set_timeout(MAD_DEF_TIMEOUT_MS);
}

/* --- messages of any length ----------------------------------------------------- */

static int ask_table(struct mad_message *message)
{
	ib_rpc_t rpc = table_request();
	ib_portid_t sa = to_node("sm");

	return mad_rpc_message(port, &rpc, &sa, NULL, 0, message);
}

/* The table comes, or an error. */
static void expect_table(int error)
{
	struct mad_message message;

	assert_int_equal(ask_table(&message), error);
	assert_int_equal(message.mad != NULL, !error);
	mad_message_free(&message);
}

TEST(a_long_response_comes_whole_by_each_call)
{
	_Alignas(8) uint8_t umad[320];
	struct outcome outcome = {0};
	ib_portid_t sa = to_node("sm");
	ib_rpc_t rpc = table_request();
	ib_rmpp_hdr_t rmpp = {0};
	struct mad_message message;
	uint8_t records[2000];
	void *received;

	assert_int_equal(ask_table(&message), 0);
	assert_int_equal(message.length, IB_SA_DATA_OFFS + 11 * 112);
	assert_int_equal(message.status, 0);
	submit(async, rpc, "sm", &outcome, NULL);
	mad_async_wait(async, -1);
	assert_int_equal(outcome.length, message.length);
	assert_int_equal(outcome.data_size, message.length - IB_SA_DATA_OFFS);
	memset(records, 0xff, sizeof(records));
	rpc.datasz = sizeof(records);
	assert_ptr_equal(mad_rpc_rmpp(port, &rpc, &sa, &rmpp, records), records);
	assert_int_equal(rmpp.type, IB_RMPP_TYPE_DATA);
	assert_true(rmpp.flags & IB_RMPP_FLAG_ACTIVE);
	assert_int_equal(rpc.recsz, 14);
	assert_memory_equal(records, message.mad + IB_SA_DATA_OFFS, outcome.data_size);
	for (size_t i = outcome.data_size; i < sizeof(records); i++)
		assert_int_equal(records[i], 0);
	/* in a buffer for one MAD it has no room, and stays for a call without a buffer */
	rpc.datasz = 0;
	rpc.trid = 0;
	assert_int_equal(mad_send_via(&rpc, &sa, NULL, NULL, port), 0);
	assert_fails_null(mad_receive_via(umad, 100, port), EMSGSIZE);
	machine_fail(MACHINE_MALLOC, 1, ENOMEM);
	assert_fails_null(mad_receive_via(NULL, 100, port), ENOMEM);
	received = mad_receive_via(NULL, 100, port);
	assert_memory_equal((uint8_t *)umad_get_mad(received) + IB_SA_DATA_OFFS, records,
			    outcome.data_size);
	mad_free(received);

	mad_port_set(port, MAD_PORT_MAX_RESPONSE, message.length);
	expect_table(0);
	mad_port_set(port, MAD_PORT_MAX_RESPONSE, message.length - 1);
	expect_table(-EMSGSIZE);
	expect_failure(-EMSGSIZE, IB_SA_CLASS, "the response is too long");
	assert_fails_null(mad_rpc_rmpp(port, &rpc, &sa, NULL, records), EMSGSIZE);
	submit(async, rpc, "sm", &outcome, NULL);
	mad_async_wait(async, -1);
	assert_int_equal(outcome.error, -EMSGSIZE);
	assert_int_equal(ask(get_request(), "n1"), 0);
	mad_message_free(&message);
	assert_null(message.mad);
	mad_message_free(NULL);
}

TEST(faults_while_a_long_response_is_read)
{
	expect_table(0); /* the destination is known */
	mad_rpc_set_retries(port, 1);
	for (unsigned n = 1; n <= 2; n++) {
		machine_fail(MACHINE_READ, n, EINTR);
		expect_table(0);
	}
	/* another process has read the message; here it comes after all */
	machine_fail(MACHINE_READ, 2, EAGAIN);
	expect_table(0);
	machine_fail(MACHINE_MALLOC, 1, ENOMEM);
	expect_table(-ENOMEM);
	expect_table(0);
	mad_port_set(port, MAD_PORT_MAX_RESPONSE, 500);
	machine_fail(MACHINE_READ, 2, EINTR);
	expect_table(-EMSGSIZE);
	mad_port_set(port, MAD_PORT_MAX_RESPONSE, 5000);
	machine_fail(MACHINE_READ, 2, EIO);
	expect_table(-ENODEV);
	expect_table(-ENODEV);
}

TEST(the_message_of_one_mad_belongs_to_the_caller)
{
	struct mad_message message;
	ib_rpc_t rpc = get_request();

	assert_int_equal(mad_rpc_message(port, &rpc, &to, buf, 64, &message), 0);
	assert_int_equal(message.length, IB_MAD_SIZE);
	assert_memory_equal(message.mad + IB_SMP_DATA_OFFS, buf, 64);
	mad_message_free(&message);
	machine_fail(MACHINE_MALLOC, 1, ENOMEM);
	assert_fails(mad_rpc_message(port, &rpc, &to, NULL, 0, &message), ENOMEM);
	expect_failure(-ENOMEM, IB_SMI_CLASS, "out of memory");
	assert_null(message.mad);
	use_script("300");
	assert_fails(mad_rpc_message(port, &rpc, &to, NULL, 0, &message), EIO);
	assert_int_equal(message.status, 0x300);
	assert_int_equal(rpc.rstatus, 0x300);
	assert_null(message.mad);
	use_script("-");
	rpc.timeout = 20;
	assert_fails(mad_rpc_message(port, &rpc, &to, NULL, 0, &message), ETIMEDOUT);
	assert_int_equal(message.status, 0);
	assert_string_equal(heard, "");
}

/* --- messages of others --------------------------------------------------------- */

TEST(requests_of_others_are_received_and_get_responses)
{
	uint8_t mad[MACHINE_MAD] = {1, VENDOR_1, 1, IB_MAD_METHOD_GET};
	static const uint8_t zeros[8];
	uint8_t *umad = mad_alloc(), *received = umad_get_mad(umad);

	assert_true(mad_register_server_via(VENDOR_1, 0, NULL, 0, port) >= 0);
	machine_send("n3", mad, 0);
	assert_ptr_equal(mad_receive_via(umad, 100, port), umad);
	assert_int_equal(be16toh(umad_get_mad_addr(umad)->lid), machine_lid("n3"));
	use_script("-");
	assert_int_equal(mad_respond_via(umad, NULL, 0, port), 0);
	for (int i = 0; i < 2; i++) {
		memcpy(received, (uint8_t[]){1, i ? IB_PERFORMANCE_CLASS : IB_SA_CLASS, 1, 1},
		       4);
		memset(received + 24, 0x11, 32);
		assert_int_equal(mad_respond_via(umad, &to, 0xc, port), 0);
	}
	machine_pass(1000);
	assert_string_equal(arrivals[0].mad.node, "n3");
	assert_int_equal(arrivals[0].bytes[3], IB_MAD_METHOD_GET_RESPONSE);
	assert_string_equal(arrivals[1].mad.node, "n1");
	assert_int_equal(arrivals[1].bytes[5], 0xc);
	/* a response of the SA has no RMPP header, and no component mask */
	assert_memory_equal(arrivals[1].bytes + 24, zeros, 8);
	assert_memory_equal(arrivals[1].bytes + 48, zeros, 8);
	assert_int_equal(arrivals[2].bytes[48], 0x11);
	mad_free(umad);
}

/* --- texts of status and errors ------------------------------------------------- */

PLAIN_TEST(a_status_has_its_words)
{
	static const struct {
		unsigned mgmt_class, status;
		const char *text;
	} rows[] = {
		{IB_PERFORMANCE_CLASS, 0, "success"},
		{IB_PERFORMANCE_CLASS, 1, "busy"},
		{IB_PERFORMANCE_CLASS, 2, "redirection required"},
		{IB_SMI_CLASS, 4, "base version or class version not supported"},
		{IB_SMI_CLASS, 8, "method not supported"},
		{IB_SMI_DIRECT_CLASS, 0x800c, "attribute not supported with this method"},
		{IB_SMI_CLASS, 0x1c, "invalid value in the attribute or its modifier"},
		{IB_SA_CLASS, 0x100, "SA: no resources"},
		{IB_SA_CLASS, 0x200, "SA: invalid request"},
		{IB_SA_CLASS, 0x300, "SA: no records"},
		{IB_SA_CLASS, 0x400, "SA: too many records"},
		{IB_SA_CLASS, 0x500, "SA: invalid GID"},
		{IB_SA_CLASS | IB_MAD_RPC_VERSION1, 0x600, "SA: insufficient components"},
		{IB_SA_CLASS, 0x700, "SA: request denied"},
		{IB_SA_CLASS, 0x800, "SA: priority suggested"},
		{IB_DEVICE_MGMT_CLASS, 0x200, "device management: no service entries"},
		{IB_DEVICE_MGMT_CLASS, 0x8700,
		 "device management: no response of the I/O controller, no service entries, "
		 "failure of the I/O controller, status 0x0400"},
		{IB_SMI_CLASS, 0x1f,
		 "busy; redirection required; invalid value in the attribute or its modifier"},
		{IB_SA_CLASS, 0x900, "SA: status 0x0900"},
		{IB_SA_CLASS, 0x91, "busy; status 0x0090"},
		{IB_SMI_CLASS, 0x10000, "status 0x10000"},
		{IB_PERFORMANCE_CLASS, 0x100, "performance management: status 0x0100"},
		{IB_BOARD_MGMT_CLASS, 0x100, "baseboard management: status 0x0100"},
		{IB_CM_CLASS, 0x100, "communication management: status 0x0100"},
		{IB_SNMP_CLASS, 0x100, "SNMP tunneling: status 0x0100"},
		{IB_CC_CLASS, 0x100, "congestion control: status 0x0100"},
		{0x0a, 0x300, "vendor class 0x0a: status 0x0300"},
		{0x4f, 0x300, "vendor class 0x4f: status 0x0300"},
		{0x22, 0x300, "class 0x22: status 0x0300"},
		{0xff, 0x300, "class 0xff: status 0x0300"},
		{IB_SMI_DIRECT_CLASS, 0x8100, "directed SMP: status 0x0100"},
		{IB_SMI_CLASS, 0x8000, "SMP: status 0x8000"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_ptr_equal(
			mad_status_text(rows[i].mgmt_class, rows[i].status, text, sizeof(text)),
			text);
		assert_string_equal(text, rows[i].text);
	}
}

PLAIN_TEST(every_text_of_a_status_fits_or_is_cut_to_its_buffer)
{
	static const unsigned classes[] = {IB_SMI_CLASS, IB_SA_CLASS, IB_DEVICE_MGMT_CLASS};
	char large[1024], small[5] = "....";

	for (size_t c = 0; c < COUNT(classes); c++)
		for (unsigned status = 0; status < 0x10000; status++) {
			mad_status_text(classes[c], status | 0xffff0000u, large, sizeof(large));
			assert_in_range(strlen(large), 1, MAD_ERROR_TEXT_SIZE - 1);
		}
	assert_string_equal(mad_status_text(IB_SA_CLASS, 0x300, small, 5), "SA: ");
	assert_string_equal(mad_status_text(IB_SA_CLASS, 0x300, small, 4), "SA:");
	assert_string_equal(mad_status_text(IB_SA_CLASS, 0x300, small, 0), "");
	assert_string_equal(mad_status_text(IB_SA_CLASS, 0x300, NULL, 10), "");
	assert_string_equal(mad_failure_text(NULL, NULL, 0), "");
	assert_string_equal(small, "SA:");
}

PLAIN_TEST(each_failure_has_its_words)
{
	static const struct {
		struct mad_failure failure;
		const char *text;
	} rows[] = {
		{{.error = 0}, "success"},
		{{.error = -EIO, .status = 0x600, .mgmt_class = IB_SA_CLASS},
		 "SA: insufficient components"},
		{{.error = -ETIMEDOUT, .transmissions = 3, .elapsed_ms = 3049},
		 "no response to 3 transmissions in 3.0 s"},
		{{.error = -ETIMEDOUT, .transmissions = 1, .elapsed_ms = 999},
		 "no response to 1 transmission in 999 ms"},
		{{.error = -ETIMEDOUT}, "no response"},
		{{.error = -ECANCELED}, "cancelled"},
		{{.error = -ENODEV}, "the device is gone"},
		{{.error = -ELOOP}, "redirected too often"},
		{{.error = -EHOSTUNREACH}, "redirected to a port to which there is no path"},
		{{.error = -EOPNOTSUPP}, "a request of more than one MAD was redirected"},
		{{.error = -EINVAL, .transmissions = 1},
		 "the MAD cannot be sent: Invalid argument"},
		{{.error = -EIO, .transmissions = 1},
		 "the MAD cannot be sent: Input/output error"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_ptr_equal(mad_failure_text(&rows[i].failure, text, sizeof(text)), text);
		assert_string_equal(text, rows[i].text);
	}
}

static void keep_text(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	mad_failure_text(NULL, text, sizeof(text));
	note(engine, reply, arg);
}

static struct outcome submit_and_wait(ib_rpc_t rpc, bool cancelled)
{
	struct outcome outcome = {0};

	mad_async_submit(async, &rpc, &to, NULL, 0, keep_text, &outcome, NULL);
	machine_pass(3000);
	if (cancelled)
		assert_int_equal(mad_async_cancel(async, MAD_ASYNC_ALL), 0);
	mad_async_wait(async, -1);
	return outcome;
}

TEST(in_a_callback_the_last_failure_is_that_of_its_request)
{
	struct outcome outcome = {0}, other = {0};
	ib_rpc_t rpc = set_request();

	rpc.timeout = 30;
	mad_rpc_set_retries(port, 2);
	use_script("- - 600 -");
	outcome = submit_and_wait(rpc, false);
	assert_int_equal(outcome.transmissions, 2);
	assert_in_range(outcome.elapsed_ms, 60, 110);
	assert_memory_equal(text, "no response to 2 transmissions in ", 34);
	submit_and_wait(rpc, false);
	assert_string_equal(text, "performance management: status 0x0600");
	machine_fail(MACHINE_WRITE, 1, ENOSPC);
	submit_and_wait(rpc, false);
	assert_string_equal(text, "the MAD cannot be sent: No space left on device");
	/* a request that was not sent took no time */
	mad_port_set(port, MAD_PORT_GMP_WINDOW, 1);
	submit(async, rpc, "n2", &other, NULL);
	outcome = submit_and_wait(rpc, true);
	assert_int_equal(outcome.transmissions + outcome.elapsed_ms, 0);
	assert_string_equal(text, "cancelled");
}

static void *fail_in_thread(void *arg)
{
	bool *own = arg;

	*own = !mad_last_failure()->error;
	for (int i = 0; i < 100; i++)
		*own &= ask(set_request(), "n2") == EIO &&
			mad_last_failure()->mgmt_class == IB_PERFORMANCE_CLASS;
	return NULL;
}

TEST(each_thread_has_its_own_failure)
{
	pthread_t thread;
	bool own;

	use_script("c");
	pthread_create(&thread, NULL, fail_in_thread, &own);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(ask(get_request(), "n1"), EIO);
		assert_int_equal(mad_last_failure()->mgmt_class, IB_SMI_CLASS);
	}
	pthread_join(thread, NULL);
	assert_true(own);
}

/* --- the log -------------------------------------------------------------------- */

TEST(failures_are_reported_with_cause_and_destination)
{
	ib_portid_t route = {.lid = 0}, nowhere = route, sa = to_node("n1");
	struct mad_message message;
	ib_rpc_t rpc = get_request();
	ibmad_gid_t gid = {0};
	ib_bm_call_t bm = {0};

	use_script("- - - c");
	mad_rpc_set_timeout(port, 10);
	ask(set_request(), "n1");
	expect_heard("mad_rpc: no response: Connection timed out\n"
		     "mad_rpc: the request to Lid 11 failed\n");
	ask(rpc, "n1");
	expect_heard("");
	madrpc_show_errors(1);
	ask(rpc, "n1");
	expect_heard("mad_rpc: the response of Lid 11 has status 0xc\n");
	assert_int_equal(mad_rpc_message(port, &rpc, &to, NULL, 0, &message), -EIO);
	use_script("ok");
	ask(rpc, "n1");
	expect_heard("");
	madrpc_show_errors(0);
	rpc.mgtclass = IB_SMI_DIRECT_CLASS;
	rpc.datasz = IB_MAD_SIZE;
	assert_null(mad_rpc(port, &rpc, &route, buf, NULL));
	expect_heard("mad_rpc: the request cannot be made: Message too long\n"
		     "mad_rpc: the request to DR path slid 0; dlid 0; 0 failed\n");
	for (int i = 0; i < 2; i++) {
		route.drpath.cnt = i ? -1 : 64;
		assert_null(mad_rpc(port, &rpc, &route, NULL, NULL));
		expect_heard(i ? "mad_encode: a directed route cannot have -1 hops\n"
			       : "mad_encode: a directed route cannot have 64 hops\n");
	}
	use_script("300");
	ib_path_query_via(port, gid, gid, &sa, buf);
	ib_node_query_via(port, 1, &sa, buf);
	ib_node_query_via(port, 1, &nowhere, buf);
	ib_resolve_portid_str_via(&to, (char[]){"1"}, (enum MAD_DEST)77, NULL, port);
	bm_call_via(buf, &nowhere, &bm, port);
	mad_dump_int(text, 64, buf, 9);
	mad_dump_uint(text, 64, buf, 0);
	mad_dump_hex(text, 64, buf, 10);
	mad_dump_rhex(text, 64, buf, -1);
	expect_heard("ib_path_query_via: the query for a path record failed\n"
		     "ib_node_query_via: the query for a node record failed\n"
		     "sa_rpc_call: the subnet administrator needs a LID\n"
		     "ib_node_query_via: the query for a node record failed\n"
		     "ib_resolve_portid_str_via: 77 is no kind of address\n"
		     "bm_call_via: baseboard management needs a LID\n"
		     "mad_dump_int: a number cannot have 9 bytes\n"
		     "mad_dump_uint: a number cannot have 0 bytes\n"
		     "mad_dump_hex: a number cannot have 10 bytes\n"
		     "mad_dump_rhex: a number cannot have -1 bytes\n");
}

TEST(a_class_that_is_not_registered_has_an_error_of_its_own)
{
	static const char why[] = "device management: the class is not registered on the port";
	struct ibmad_port *other = mad_rpc_open_port(NULL, 0, (int[]){IB_SMI_CLASS}, 1);
	ib_rpc_t rpc = make_rpc(IB_DEVICE_MGMT_CLASS, 1, 0x10);
	struct mad_message message;
	struct mad_counters counters;

	for (int shown = 0; shown < 2; shown++) {
		madrpc_show_errors(shown);
		assert_int_equal(mad_async_submit(async, &rpc, &to, NULL, 0, note, NULL, NULL),
				 -EPROTONOSUPPORT);
		assert_fails(mad_rpc_message(port, &rpc, &to, NULL, 0, &message),
			     EPROTONOSUPPORT);
		expect_failure(-EPROTONOSUPPORT, IB_DEVICE_MGMT_CLASS, why);
		expect_heard(shown ? "mad_async_submit: class 0x06 is not registered on the "
				     "port\nmad_rpc_message: class 0x06 is not registered on "
				     "the port\n"
				   : "");
	}
	/* the errno and the messages of rdma-core's calls are theirs, but with ibdebug */
	for (int i = 0; i < 6; i++) {
		ibdebug = i >= 3;
		fail_otherwise();
		if (i % 3 == 0)
			assert_fails_null(mad_rpc(port, &rpc, &to, NULL, NULL), EINVAL);
		else if (i % 3 == 1)
			assert_fails_null(mad_rpc_rmpp(port, &rpc, &to, NULL, NULL), EINVAL);
		else
			assert_fails_minus_1(mad_send_via(&rpc, &to, NULL, NULL, port), EINVAL);
		assert_non_null(strstr(heard, "Invalid argument\n"));
		assert_int_equal(!strstr(heard, ": class 0x06 is not registered on the port"),
				 !ibdebug);
		expect_failure(-EPROTONOSUPPORT, IB_DEVICE_MGMT_CLASS, why);
	}
	assert_int_equal(mad_counters_read(other, &to, 1, NULL, &counters, sizeof(counters)),
			 -EPROTONOSUPPORT);
	assert_int_equal(mad_counters_reset(other, &to, 1, NULL), -EPROTONOSUPPORT);
	mad_rpc_close_port(other);
}

TEST(without_a_hook_reports_go_to_stderr)
{
	char expected[2][256];
	const char *said;

	use_script("- ok");
	mad_rpc_set_timeout(port, 10);
	mad_rpc_set_retries(port, 1);
	snprintf(expected[0], 256,
		 "ibwarn: [%d] mad_rpc: no response: Connection timed out\n"
		 "ibwarn: [%d] mad_rpc: the request to Lid 11 failed\n",
		 getpid(), getpid());
	snprintf(expected[1], 256, "ibwarn: [%d] mad_rpc: class 0x04 method 0x02 ", getpid());
	umad_set_log_hook(NULL, NULL);
	capture_output(stderr);
	ask(set_request(), "n1");
	assert_string_equal(captured_output(), expected[0]);
	for (int level = 0; level <= 2; level++) {
		capture_output(stderr);
		ibdebug = level;
		ask(set_request(), "n1");
		ibdebug = 0;
		said = captured_output();
		assert_int_equal(strstr(said, expected[1]) != NULL, level > 0);
		assert_int_equal(strstr(said, "send\n") != NULL, level == 2);
		assert_int_equal(strstr(said, "receive\n") != NULL, level == 2);
		assert_true(level || !*said);
	}
}

/* The hook may make calls on the port: no lock is held. */
static void ask_again(enum umad_log_level level, const char *line, void *arg)
{
	bool *asking = arg;

	hear(level, line, NULL);
	if (!*asking) {
		*asking = true;
		ask(get_request(), "n2");
	}
}

TEST(a_further_attempt_is_reported_with_no_lock_held)
{
	bool asking = false;

	use_script("-");
	mad_rpc_set_retries(port, 2);
	mad_rpc_set_timeout(port, 20);
	madrpc_show_errors(1);
	umad_set_log_hook(ask_again, &asking);
	assert_int_equal(ask(set_request(), "n1"), ETIMEDOUT);
	assert_non_null(strstr(heard, "mad_rpc: no response to attribute 0x12; 1 attempts"));
	assert_non_null(strstr(heard, "mad_rpc: the request to Lid 12 failed"));
	assert_non_null(strstr(heard, "mad_rpc: the request to Lid 11 failed"));
}

TEST(a_response_to_another_attribute_is_reported)
{
	struct outcome outcome = {0};

	madrpc_show_errors(1);
	use_script("ok+5");
	submit(async, get_request(), "n1", &outcome, NULL);
	machine_pass(1);
	arrivals[0].bytes[3] = IB_MAD_METHOD_GET_RESPONSE;
	arrivals[0].bytes[17]++;
	machine_send("n1", arrivals[0].bytes, 0);
	mad_async_wait(async, -1);
	assert_int_equal(outcome.error, 0);
	expect_heard("mad_rpc: a response from LID 11 does not match the request with its "
		     "transaction ID: class 0x01 method 0x81 attribute 0x12\n");
}
