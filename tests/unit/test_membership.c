/* SPDX-License-Identifier: BSD-2-Clause */

/* Memberships: they begin and end, by the program or otherwise. */

#define MANY 1
#include "keeper_fixture.h"

FIXTURE(keeper_setup, keeper_teardown);

/* --- joining and leaving ---------------------------------------------------------- */

TEST(a_membership_has_the_gid_of_the_port_and_the_components_of_the_program)
{
	const uint8_t gid[16] = {0xfe, 0x80, [14] = 0x11, [15] = 0x22};

	join(3);
	assert_int_equal(told[3].mlid, 0xc001);
	assert_int_equal(told[3].gap_end, 0);
	assert_memory_equal(sa.portgid, gid, sizeof(gid));
	assert_int_equal(sa.mask, UMAD_SA_MCM_COMP_MASK_MGID | UMAD_SA_MCM_COMP_MASK_PORT_GID |
					  UMAD_SA_MCM_COMP_MASK_JOIN_STATE |
					  UMAD_SA_MCM_COMP_MASK_QKEY);
	leave(3);
	assert_int_equal(told[3].error, 0);
	assert_int_equal(told[3].status, 0);
	assert_int_equal(sa.deletes, 1);
	assert_false(sa.members[3]);
}

TEST(a_group_that_the_sa_chooses_is_the_group_from_then_on)
{
	struct umad_sa_mcmember_record member = {.qkey = 0};
	const struct mad_membership_options any = {.member = &member, .join_state = 1};

	assert_int_equal(mad_membership_start(async, &any, tell, &told[0], &told[0].membership),
			 0);
	pass(async, S);
	assert_int_equal(told[0].joined, 1);
	assert_true(sa.members[7]);
	pass(async, 60 * S);
	assert_int_equal(sa.sets, 1);
	forget();
	pass(async, WITHIN);
	assert_true(sa.members[7]);
}

TEST(a_membership_that_was_never_granted_ends_without_a_request)
{
	assert_int_equal(begin(0), 0);
	leave(0);
	assert_int_equal(told[0].error, 0);
	assert_int_equal(sa.deletes, 0);
}

TEST(a_group_that_the_sa_has_forgotten_is_left_without_an_error)
{
	struct mad_notices *notices = subscribe();

	join(0);
	forget();
	mad_notices_stop(notices);
	leave(0);
	assert_int_equal(told[0].error, 0);
	assert_int_equal(told[0].status, INVALID);
	assert_int_equal(told_notices.ends, 1);
	assert_int_equal(told_notices.error, 0);
	assert_int_equal(told_notices.status, INVALID);
}

TEST(an_sa_that_does_not_respond_is_told_at_the_end)
{
	join(0);
	sa.silent = true;
	leave(0);
	assert_int_equal(told[0].error, -ETIMEDOUT);
	assert_int_equal(told[0].failure.method, IB_MAD_METHOD_DELETE);
	assert_true(told[0].failure.transmissions > 0);
}

/* The failure of an earlier request has the same error. */
TEST(an_error_that_is_of_no_request_has_no_request_in_its_text)
{
	char text[MAD_ERROR_TEXT_SIZE];

	join(0);
	sa.silent = true;
	forget();
	pass(async, 60 * S);
	assert_int_equal(told[0].error, -ETIMEDOUT);
	assert_true(told[0].failure.transmissions > 0);
	sa.state = MAD_PORT_DOWN;
	pass(async, 10 * S);
	assert_int_equal(told[0].error, -ENETDOWN);
	assert_int_equal(told[0].failure.transmissions, 0);
	assert_int_equal(told[0].failure.method, 0);
	mad_failure_text(&told[0].failure, text, sizeof(text));
	assert_string_equal(text, "the local port is not active, or has no SM");
}

TEST(without_a_link_the_group_cannot_be_left)
{
	join(0);
	sa.state = MAD_PORT_DOWN;
	pass(async, 2 * S);
	leave(0);
	assert_int_equal(told[0].error, -ENETDOWN);
	assert_int_equal(sa.deletes, 0);
}

TEST(a_callback_may_end_its_membership)
{
	told[0].stops = true;
	assert_int_equal(begin(0), 0);
	pass(async, 2 * S);
	assert_int_equal(told[0].joined, 1);
	assert_int_equal(told[0].ends, 1);
	assert_int_equal(sa.deletes, 1);
	assert_int_equal(mad_async_wait(async, -1), 0); /* nothing is left */
}

/* The local port is read again after a second. */
TEST(a_stop_in_a_callback_is_not_lost_when_the_keeper_sets_its_timer)
{
	sa.state = MAD_PORT_DOWN;
	told[0].stops = true;
	assert_int_equal(begin(0), 0);
	pass(async, S / 10);
	assert_int_equal(told[0].failed, 1);
	assert_int_equal(told[0].ends, 1);
}

static const struct device_packet *deletion;

/* The first Delete is answered just after a PortInfo that names another SM. */
static int answer_deletion_late(const struct device_packet *packet, void *arg)
{
	bool is_smp = packet->mad[1] == IB_SMI_DIRECT_CLASS;

	if (!is_smp && packet->mad[3] == IB_MAD_METHOD_DELETE && !sa.deletes) {
		deletion = packet;
		sa.deletes++;
		return note_packet(packet, arg);
	}
	if (is_smp && deletion) {
		sa.sm_lid = 2;
		respond(packet, arg);
		device_respond(deletion, 0, 0, NULL, 0);
		deletion = NULL;
		return 0;
	}
	return respond(packet, arg);
}

TEST(a_membership_that_is_stopped_tells_only_its_end)
{
	join(0);
	deletion = NULL;
	device_on_write(answer_deletion_late, NULL);
	mad_membership_stop(told[0].membership);
	pass(async, 5 * S);
	assert_int_equal(told[0].ends, 1);
	assert_int_equal(told[0].joined, 1);
	assert_int_equal(sa.deletes, 2); /* at the new SM, too */
}

TEST(the_engine_ends_memberships)
{
	join(0);
	assert_int_equal(begin(1), 0); /* not processed any more */
	mad_async_free(async);
	async = NULL;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(told[i].ends, 1);
		assert_int_equal(told[i].error, -ECANCELED);
	}
	assert_int_equal(sa.deletes, 0);
}

TEST(a_device_that_is_gone_ends_memberships)
{
	join(0);
	sa.silent = true;
	pass(async, 4 * S);
	device_remove();
	while (mad_async_process(async) >= 0)
		;
	assert_int_equal(told[0].ends, 1);
	assert_int_equal(told[0].error, -ENODEV);
}

static unsigned writes;

static int remove_at(const struct device_packet *packet, void *arg)
{
	if (!writes--)
		device_remove();
	return respond(packet, arg);
}

/* Whenever the device goes, mad_async_wait() returns after the last callback. */
TEST(a_wait_ends_after_the_last_callback_of_a_membership)
{
	for (unsigned last = 0; last < 4; last++) {
		memset(told, 0, sizeof(told));
		memset(sa.members, 0, sizeof(sa.members));
		writes = last;
		device_on_write(remove_at, NULL);
		assert_int_equal(begin(0), 0);
		mad_async_wait(async, -1);
		assert_int_equal(told[0].ends, 1);
		assert_int_equal(told[0].error, -ENODEV);
		keeper_teardown();
		keeper_setup();
	}
}

static int run_child(void)
{
	EXPECT(mad_async_wait(async, -1) >= 0);
	EXPECT(told[0].ends == 1);
	EXPECT(told[0].error == -ECANCELED);
	EXPECT(told_notices.ends == 1);
	EXPECT(told_notices.error == -ECANCELED);
	EXPECT(begin(1) == -ECANCELED);
	return 0;
}

TEST(a_child_has_no_registrations)
{
	subscribe();
	join(0);
	run_in_child(run_child);
	assert_int_equal(told[0].ends, 0);
	forget();
	pass(async, WITHIN);
	assert_true(sa.members[0] && sa.subscribed);
}

TEST(wrong_arguments_are_refused)
{
	struct umad_sa_mcmember_record member = {.qkey = 0};
	const struct mad_membership_options right = {.member = &member, .join_state = 1};
	const struct mad_membership_options wrong[] = {
		{.member = NULL, .join_state = 1},
		{.member = &member, .join_state = 0},
		{.member = &member, .join_state = 16},
		{.member = &member, .join_state = 1, .reserved = {1}},
		{.member = &member, .join_state = 1, .reserved = {[3] = 1}},
	};
	struct mad_membership *membership;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(
			mad_membership_start(async, &wrong[i], tell, NULL, &membership),
			-EINVAL);
	assert_int_equal(mad_last_failure()->error, -EINVAL);
	assert_int_equal(mad_membership_start(async, NULL, tell, NULL, &membership), -EINVAL);
	assert_int_equal(mad_membership_start(NULL, &right, tell, NULL, &membership), -EINVAL);
	assert_int_equal(mad_membership_start(async, &right, NULL, NULL, &membership), -EINVAL);
	assert_int_equal(mad_membership_start(async, &right, tell, NULL, NULL), -EINVAL);
	mad_membership_stop(NULL);
}

TEST(without_the_classes_there_is_no_membership)
{
	const int classes[] = {IB_SA_CLASS, IB_SMI_DIRECT_CLASS};

	for (unsigned i = 0; i < 2; i++) {
		int class = classes[i];
		struct ibmad_port *other = mad_rpc_open_port(NULL, 0, &class, 1);
		struct mad_async *engine = mad_async_create(other), *own = async;

		async = engine;
		assert_int_equal(begin(0), -EPROTONOSUPPORT);
		async = own;
		assert_null(told[0].membership);
		mad_async_free(engine);
		mad_rpc_close_port(other);
	}
}

TEST(each_lack_of_memory_is_survived)
{
	for (unsigned n = 1; n < 3; n++) {
		device_fail_malloc(n);
		assert_int_equal(begin(0), -ENOMEM);
		device_fail_malloc(0);
	}
	for (unsigned n = 1; n < 12; n++) {
		memset(told, 0, sizeof(told));
		device_fail_malloc(n);
		if (begin(0)) {
			device_fail_malloc(0);
			continue;
		}
		pass(async, 20 * S);
		device_fail_malloc(0);
		pass(async, WITHIN);
		assert_true(sa.members[0]);
		leave(0);
	}
}
