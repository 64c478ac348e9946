/* SPDX-License-Identifier: BSD-2-Clause */

/* Registrations: memberships and subscriptions last although the SA forgets them. */

#define MANY 1
#include "keeper_fixture.h"

FIXTURE(keeper_setup, keeper_teardown);

/* --- what the SA forgets ---------------------------------------------------------- */

TEST(a_hundred_memberships_share_one_check)
{
	for (unsigned i = 0; i < GROUPS; i++)
		assert_int_equal(begin(i), 0);
	pass(async, 60 * S);
	assert_int_equal(sa.sets, GROUPS);
	assert_in_range(sa.checks, 11, 12);
	for (unsigned i = 0; i < GROUPS; i++)
		assert_int_equal(told[i].joined, 1);
	printf("%u memberships: %u checks in 60 s\n", GROUPS, sa.checks);
	forget();
	pass(async, WITHIN);
	assert_int_equal(sa.sets, 2 * GROUPS);
	for (unsigned i = 0; i < GROUPS; i++)
		assert_int_equal(told[i].joined, 2);
}

TEST(a_program_chooses_the_interval_of_checks)
{
	const struct mad_notices_options options = {.check_ms = 60000};
	struct mad_notices *notices;

	assert_int_equal(
		mad_notices_start(async, &options, tell_notice, &told_notices, &notices), 0);
	pass(async, 600 * S);
	assert_in_range(sa.checks, 9, 10);
	join(0); /* its interval is shorter */
	pass(async, 600 * S);
	assert_in_range(sa.checks, 110, 130);
	mad_notices_stop(notices);
	leave(0);
	sa.checks = 0;
	pass(async, 600 * S); /* nothing is registered */
	assert_int_equal(sa.checks, 0);
}

TEST(one_membership_that_is_missing_is_joined_again)
{
	join(0);
	join(1);
	pass(async, 7 * S);
	sa.members[1] = false;
	pass(async, WITHIN);
	assert_int_equal(told[0].joined, 1);
	assert_int_equal(told[1].joined, 2);
	assert_int_equal(sa.sets, 3);
}

TEST(a_membership_whose_join_state_is_missing_is_joined_again)
{
	unsigned sets;

	join(0);
	sets = sa.sets;
	sa.lost_state = true;
	pass(async, WITHIN);
	assert_true(sa.sets > sets);
}

TEST(another_mlid_is_told)
{
	join(0);
	assert_int_equal(told[0].changed, 0);
	forget();
	pass(async, WITHIN);
	assert_int_equal(told[0].joined, 2);
	assert_int_equal(told[0].changed, 0);
	pass(async, WITHIN);
	forget();
	sa.mlid = 0xc005;
	pass(async, WITHIN);
	assert_int_equal(told[0].joined, 3);
	assert_int_equal(told[0].changed, 1);
	assert_int_equal(told[0].mlid, 0xc005);
}

static void expect_renewed(const struct told *here, unsigned before, int64_t forgot,
			   int64_t ready)
{
	assert_true(here->joined > before);
	assert_int_equal(here->error, 0);
	assert_true(here->at <= ready + WITHIN);
	assert_true(here->gap_begin > 0);
	assert_true(here->gap_begin <= forgot);
	assert_true(here->gap_end >= here->gap_begin);
}

/*
 * SMs are restarted at random times, are away for random times, and have the same LID or
 * another one. Each time the SA has all registrations again within the promised time, and the
 * program knows the gap.
 */
TEST(whatever_happens_to_the_sm_the_sa_has_all_registrations_again)
{
	unsigned seed = test_seed();
	int64_t worst = 0, forgot, ready, renewed;
	unsigned joined, subscribed;

	join(0);
	join(1);
	subscribe();
	for (unsigned i = 0; i < 300; i++) {
		pass(async, rand_r(&seed) % 40000 * MS);
		joined = told[0].joined;
		subscribed = told_notices.joined;
		forgot = clock_now;
		sa.silent = true;
		pass(async, rand_r(&seed) % 3 ? 0 : rand_r(&seed) % 30000 * MS);
		forget();
		sa.silent = false;
		sa.sm_lid = rand_r(&seed) % 2 ? 1 : 2;
		ready = clock_now;
		pass(async, WITHIN);
		assert_true(sa.members[0] && sa.members[1] && sa.subscribed);
		expect_renewed(&told[0], joined, forgot, ready);
		expect_renewed(&told_notices, subscribed, forgot, ready);
		renewed = told[0].at > told_notices.at ? told[0].at : told_notices.at;
		if (renewed - ready > worst)
			worst = renewed - ready;
	}
	printf("300 restarts: renewed within %.1f s\n", (double)worst / 1e6);
	assert_true(sa.least_us >= S - MS);
}

TEST(an_sa_that_does_not_respond_is_told_and_so_is_its_return)
{
	join(0);
	pass(async, 10 * S);
	sa.silent = true;
	pass(async, 30 * S);
	assert_int_equal(told[0].failed, 1);
	assert_int_equal(told[0].error, -ETIMEDOUT);
	sa.silent = false;
	pass(async, WITHIN);
	assert_int_equal(told[0].joined, 2); /* the SA has not forgotten it */
	assert_int_equal(sa.sets, 1);
	assert_true(told[0].gap_end - told[0].gap_begin >= 30 * S);
}

TEST(an_sa_that_is_busy_tells_nothing)
{
	join(0);
	sa.tables = IB_MAD_STS_BUSY;
	pass(async, 60 * S);
	sa.tables = 0;
	pass(async, WITHIN);
	assert_int_equal(told[0].joined, 1);
	assert_int_equal(told[0].failed, 0);
	assert_int_equal(sa.sets, 1);
}

TEST(a_port_that_was_down_or_has_another_prefix_joins_again)
{
	const uint8_t gid[16] = {0xfe, 0xc0, [14] = 0x11, [15] = 0x22};

	join(0);
	sa.state = MAD_PORT_DOWN;
	pass(async, 3 * S);
	assert_int_equal(told[0].failed, 1);
	assert_int_equal(told[0].error, -ENETDOWN);
	sa.state = MAD_PORT_ACTIVE;
	pass(async, 3 * S);
	assert_int_equal(told[0].joined, 2);
	assert_true(told[0].gap_end > told[0].gap_begin);
	sa.prefix = UINT64_C(0xfec0) << 48;
	pass(async, 3 * S);
	assert_int_equal(told[0].joined, 3);
	assert_memory_equal(sa.portgid, gid, sizeof(gid));
}

/* --- errors of the SA ------------------------------------------------------------- */

TEST(a_refusal_is_told_once_and_the_join_is_tried_again)
{
	sa.status = 0x600;
	assert_int_equal(begin(0), 0);
	pass(async, 31 * S); /* at 0, 1, 3, 7, 15, 23 and 31 s */
	assert_in_range(sa.sets, 6, 7);
	assert_int_equal(told[0].failed, 1);
	assert_int_equal(told[0].error, -EIO);
	assert_int_equal(told[0].status, 0x600);
	sa.status = 0;
	pass(async, WITHIN);
	assert_int_equal(told[0].joined, 1);
	assert_int_equal(told[0].gap_end, 0);
}

TEST(retries_of_many_memberships_are_one_a_second)
{
	sa.status = 0x600;
	for (unsigned i = 0; i < GROUPS; i++)
		assert_int_equal(begin(i), 0);
	pass(async, 2 * S);
	assert_in_range(sa.sets, GROUPS, GROUPS + 2);
	pass(async, 50 * S);
	assert_in_range(sa.sets, GROUPS + 40, GROUPS + 52);
}

/* The first 30 groups do not exist, and group 30 only if sa.mlid is not 1. */
static int refuse_most(const struct device_packet *packet, void *arg)
{
	if (packet->mad[1] == IB_SA_CLASS && packet->mad[3] == IB_MAD_METHOD_SET &&
	    packet->mad[17] == IB_SA_ATTR_MCRECORD)
		sa.status = packet->mad[56 + 15] <= 30 || sa.mlid == 1 ? INVALID : 0;
	return respond(packet, arg);
}

TEST(each_of_many_that_are_refused_has_its_turn)
{
	device_on_write(refuse_most, NULL);
	sa.mlid = 1;
	for (unsigned i = 0; i <= 30; i++)
		assert_int_equal(begin(i), 0);
	pass(async, 60 * S);
	assert_int_equal(told[30].joined, 0);
	sa.mlid = 0xc001;
	pass(async, 60 * S);
	assert_int_equal(told[30].joined, 1);
}

TEST(each_of_many_that_are_renewed_blindly_has_its_turn)
{
	unsigned count = 40;

	for (unsigned i = 0; i < count; i++)
		assert_int_equal(begin(i), 0);
	pass(async, 2 * S);
	sa.hides = true;
	pass(async, 120 * S);
	forget();
	pass(async, 60 * S);
	for (unsigned i = 0; i < count; i++)
		assert_true(sa.members[i]);
}

static unsigned lost_attribute; /* of the local port: no response comes */

static int lose(const struct device_packet *packet, void *arg)
{
	if (packet->mad[1] == IB_SMI_DIRECT_CLASS && packet->mad[17] == lost_attribute)
		return note_packet(packet, arg);
	return respond(packet, arg);
}

TEST(a_local_port_that_cannot_be_read_is_told)
{
	static const unsigned attributes[] = {IB_ATTR_PORT_INFO, IB_ATTR_NODE_INFO};

	for (unsigned i = 0; i < 2; i++) {
		lost_attribute = attributes[i];
		device_on_write(lose, NULL);
		assert_int_equal(begin(i), 0);
		pass(async, WITHIN);
		assert_int_equal(told[i].joined, 0);
		assert_int_equal(told[i].failed, 1);
		assert_int_equal(told[i].error, -ETIMEDOUT);
		device_on_write(respond, NULL);
		pass(async, WITHIN);
		assert_int_equal(told[i].joined, 1);
		mad_membership_stop(told[i].membership);
		pass(async, WITHIN);
	}
}

/* The SA may have the port: the response to the join, and that to the leave, were lost. */
TEST(an_end_that_the_sa_has_not_confirmed_has_an_error)
{
	sa.silent = true;
	assert_int_equal(begin(0), 0);
	assert_int_equal(begin(1), 0);
	pass(async, 5 * S);
	mad_membership_stop(told[0].membership);
	pass(async, 20 * S);
	assert_int_equal(told[0].ends, 1);
	assert_int_equal(told[0].error, -ETIMEDOUT);
	sa.state = MAD_PORT_DOWN;
	pass(async, 2 * S);
	mad_membership_stop(told[1].membership);
	pass(async, 2 * S);
	assert_int_equal(told[1].ends, 1);
	assert_int_equal(told[1].error, -ENETDOWN);
}

TEST(a_membership_leaves_at_the_new_sm_if_the_sm_changes_meanwhile)
{
	join(0);
	sa.silent = true;
	mad_membership_stop(told[0].membership);
	pass(async, S / 4);
	sa.sm_lid = 9;
	sa.silent = false;
	pass(async, 20 * S);
	assert_int_equal(told[0].ends, 1);
	assert_int_equal(told[0].error, 0);
	assert_false(sa.members[0]);
}

TEST(a_group_that_the_new_sm_does_not_have_is_joined_when_it_exists)
{
	join(0);
	forget();
	sa.status = 0x600;
	pass(async, WITHIN);
	assert_int_equal(told[0].failed, 1);
	assert_int_equal(told[0].status, 0x600);
	pass(async, 60 * S);
	assert_int_equal(told[0].failed, 1);
	sa.status = 0;
	pass(async, WITHIN);
	assert_int_equal(told[0].joined, 2);
	assert_true(told[0].gap_end - told[0].gap_begin >= 75 * S);
}

/* The SA has what it has forgotten again, although it does not tell. */
static void expect_blind_renewal(unsigned most_told)
{
	unsigned sets = sa.sets, joined = told[0].joined;

	assert_true(joined <= most_told);
	pass(async, 100 * S);
	assert_in_range(sa.sets, sets + 5, sets + 10);
	assert_int_equal(told[0].joined, joined); /* it is not known whether it was forgotten */
	forget();
	pass(async, WITHIN);
	assert_true(sa.members[0]);
}

TEST(without_tables_a_membership_is_renewed_every_ten_seconds)
{
	sa.tables = UNSUPPORTED;
	join(0);
	pass(async, 20 * S);
	expect_blind_renewal(1);
	assert_int_equal(told[0].failed, 0);
}

TEST(an_sa_that_lists_no_members_is_not_believed)
{
	sa.hides = true;
	join(0);
	pass(async, 60 * S);
	expect_blind_renewal(4);
	assert_int_equal(told[0].failed, 0);
}
