/* SPDX-License-Identifier: BSD-2-Clause */

/* Registering agents: which registrations the kernel accepts beside others. */
#include "check.h"
#include "kernel_abi.h"
#include "mads.h"

#include <sys/ioctl.h>

#define OTHER_OUI 0x0002c9

static int fd;

static struct ib_user_mad_reg_req2 request_for(uint8_t mgmt_class)
{
	struct ib_user_mad_reg_req2 request = {
		.qpn = mgmt_class == 0x01 || mgmt_class == 0x81 ? 0 : 1,
		.mgmt_class = mgmt_class,
		.mgmt_class_version = 1,
		.oui = mgmt_class >= 0x30 && mgmt_class <= 0x4f ? OUI : 0,
	};

	return request;
}

static struct ib_user_mad_reg_req2 server_of(uint8_t mgmt_class, uint8_t method)
{
	struct ib_user_mad_reg_req2 request = request_for(mgmt_class);

	request.method_mask[method / 64] = 1ULL << method % 64;
	return request;
}

/*
 * By ioctl: libibumad would reject some of these. Returns the agent's number, or the negative
 * errno.
 */
static int ask(struct ib_user_mad_reg_req2 request)
{
	return ioctl(fd, IB_USER_MAD_REGISTER_AGENT2, &request) ? -errno : (int)request.id;
}

static int ask_class(uint8_t mgmt_class)
{
	return ask(request_for(mgmt_class));
}

static int ask_rmpp(uint8_t mgmt_class, uint8_t version)
{
	struct ib_user_mad_reg_req2 request = request_for(mgmt_class);

	request.rmpp_version = version;
	return ask(request);
}

static void opened(void)
{
	fd = open_port(&here);
}

static void the_lowest_free_id_is_given(void)
{
	opened();
	expect_equal(client(fd, 0), 0);
	expect_equal(client(fd, 0), 1);
	expect_equal(client(fd, 0), 2);
	expect_equal(umad_unregister(fd, 1), 0);
	expect_equal(client(fd, 0), 1);
	expect_equal(client(fd, 0), 3);
}

static void the_33rd_agent_is_one_too_many(void)
{
	opened();
	for (int id = 0; id < UMAD_CA_MAX_AGENTS; id++)
		expect_equal(client(fd, 0), id);
	expect_equal(umad_register(fd, CLASS, 1, 0, NULL), -EPERM);
	expect_equal(errno, ENOMEM);
	expect_equal(umad_unregister(fd, 31), 0);
	expect_equal(client(fd, 0), 31);
}

static void a_method_has_one_server(void)
{
	long methods[16 / sizeof(long)] = {1L << METHOD_GET};
	int other = open_port(&here);

	opened();
	server(other, METHOD_GET, 0);
	expect_equal(umad_register(fd, CLASS, 1, 0, methods), -EPERM);
	expect_equal(errno, EINVAL);
	expect(server(fd, METHOD_SET, 0) >= 0);
	expect_equal(umad_close_port(other), 0);
	expect(server(fd, METHOD_GET, 0) >= 0);
}

static void another_oui_or_version_is_another_service(void)
{
	struct ib_user_mad_reg_req2 request = server_of(CLASS, METHOD_GET);

	opened();
	expect_equal(ask(request), 0);
	expect_equal(ask(request), -EINVAL);
	request.oui = OTHER_OUI;
	expect_equal(ask(request), 1);
	request.oui = OUI;
	request.mgmt_class_version = 2;
	expect_equal(ask(request), 2);
	expect_equal(ask(server_of(CLASS + 1, METHOD_GET)), 3);
}

static void closing_gives_the_class_back_at_once(void)
{
	for (int i = 0; i < 50; i++) {
		int opened_now = open_port(&here);

		server(opened_now, METHOD_SEND, 1);
		expect_equal(umad_close_port(opened_now), 0);
	}
}

static void smps_need_qp0(void)
{
	int expected = here.ethernet ? -EPROTONOSUPPORT : 0;
	struct ib_user_mad_reg_req2 request = request_for(0x81);

	opened();
	request.qpn = 1;
	expect(ask(request) < 0);
	expect_equal(ask_class(0x01), expected);
	expect_equal(ask_class(0x81), here.ethernet ? expected : 1);
}

static void classes_that_there_are_not(void)
{
	opened();
	expect_equal(ask_class(0x50), -EINVAL);
	expect_equal(ask_class(0x7f), -EINVAL);
	expect_equal(ask_class(0xff), -EINVAL);
	expect_equal(ask_class(0x4f), 0);
	expect_equal(ask_class(0x02), 1);
}

static void vendor_range_2_has_an_oui(void)
{
	struct ib_user_mad_reg_req2 request = server_of(CLASS, METHOD_GET);

	opened();
	request.oui = 0;
	expect_equal(ask(request), -EINVAL);
	request.oui = 1 << 24;
	expect_equal(ask(request), -EINVAL);
}

static void there_are_two_queue_pairs(void)
{
	struct ib_user_mad_reg_req2 request = request_for(CLASS);

	opened();
	request.qpn = 2;
	expect_equal(ask(request), -EINVAL);
}

static void which_classes_know_rmpp(void)
{
	static const uint8_t with[] = {0x03, 0x06, 0x10, 0x12, 0x30, 0x3a, 0x4f};
	static const uint8_t without[] = {0x04, 0x05, 0x07, 0x08, 0x09, 0x21};

	opened();
	for (size_t i = 0; i < sizeof(with); i++)
		expect_equal(ask_rmpp(with[i], 1), (int)i);
	for (size_t i = 0; i < sizeof(without); i++)
		expect_equal(ask_rmpp(without[i], 1), -EINVAL);
	expect_equal(ask_rmpp(CLASS, 2), -EINVAL);
}

static void unknown_flags_bring_the_known_ones_back(void)
{
	struct umad_reg_attr attr = {.mgmt_class = CLASS,
				     .mgmt_class_version = 1,
				     .flags = 1 << 5 | UMAD_USER_RMPP,
				     .oui = OUI,
				     .rmpp_version = 1};
	uint32_t id = 99;

	opened();
	expect_equal(umad_register2(fd, &attr, &id), EINVAL);
	expect_equal(attr.flags, UMAD_USER_RMPP);
	expect_equal(umad_register2(fd, &attr, &id), 0);
	expect_equal(id, 0);
}

static void both_ways_to_register_make_the_same_agent(void)
{
	struct umad_reg_attr attr = {.mgmt_class = CLASS,
				     .mgmt_class_version = 1,
				     .oui = OUI,
				     .method_mask = {1ULL << METHOD_GET}};
	uint8_t oui[3] = {OUI >> 16, (OUI >> 8) & 0xff, OUI & 0xff};
	long methods[16 / sizeof(long)] = {1L << METHOD_GET};
	uint32_t id;

	opened();
	expect_equal(umad_register2(fd, &attr, &id), 0);
	expect_equal(umad_register_oui(fd, CLASS, 0, oui, methods), -EPERM);
	expect_equal(umad_unregister(fd, (int)id), 0);
	expect_equal(umad_register_oui(fd, CLASS, 0, oui, methods), 0);
	expect_equal(umad_register2(fd, &attr, &id), EINVAL);
}

static void only_what_is_registered_is_unregistered(void)
{
	opened();
	expect_equal(umad_unregister(fd, 0), -EINVAL);
	expect_equal(umad_unregister(fd, 32), -EINVAL);
	expect_equal(client(fd, 0), 0);
	expect_equal(umad_unregister(fd, 0), 0);
	expect_equal(umad_unregister(fd, 0), -EINVAL);
}

/* 128 methods as longs of the machine's size. */
static void a_mask_reaches_to_method_127(void)
{
	opened();
	for (int method = 8; method < 128; method += 17)
		server(fd, (uint8_t)method, 0);
	for (int method = 8; method < 128; method += 17) {
		struct ib_user_mad_reg_req2 request = server_of(CLASS, (uint8_t)method);

		expect_equal(ask(request), -EINVAL);
		request = server_of(CLASS, (uint8_t)(method - 1));
		expect(ask(request) >= 0);
	}
}

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		CHECK_ALONE(the_lowest_free_id_is_given),
		CHECK_ALONE(the_33rd_agent_is_one_too_many),
		CHECK_ALONE(a_method_has_one_server),
		CHECK_ALONE(another_oui_or_version_is_another_service),
		CHECK_ALONE(closing_gives_the_class_back_at_once),
		CHECK_ALONE(smps_need_qp0),
		CHECK_ALONE(classes_that_there_are_not),
		CHECK_ALONE(vendor_range_2_has_an_oui),
		CHECK_ALONE(there_are_two_queue_pairs),
		CHECK_ALONE(which_classes_know_rmpp),
		CHECK_ALONE(unknown_flags_bring_the_known_ones_back),
		CHECK_ALONE(both_ways_to_register_make_the_same_agent),
		CHECK_ALONE(only_what_is_registered_is_unregistered),
		CHECK_ALONE(a_mask_reaches_to_method_127),
	};

	set_environment(argc, argv);
	find_ports();
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
