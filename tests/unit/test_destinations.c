/* SPDX-License-Identifier: BSD-2-Clause */

/* The table of destinations. test_flow_accounts.c has what flow control knows of each. */

#include "port/destinations.h"
#include "test.h"

#include "fake_device.h"

#include <infiniband/mad.h>
#include <string.h>

#define COUNT 1000
#define KEPT  4096 /* entries without users */

static struct destinations destinations;
static struct destination *node;

static int setup(void)
{
	destinations_init(&destinations);
	node = destination_get(&destinations, 1);
	return node ? device_setup() : -1;
}

static int teardown(void)
{
	destinations_free(&destinations);
	return device_teardown();
}

FIXTURE(setup, teardown);

static void count_it(struct destination *destination, void *arg)
{
	(void)destination;
	++*(unsigned *)arg;
}

static unsigned count_all(void)
{
	unsigned count = 0;

	destinations_visit(&destinations, count_it, &count);
	return count;
}

/* --- entries -------------------------------------------------------------------- */

TEST(a_destination_is_found_by_its_key)
{
	struct destination *made[COUNT];

	for (uint64_t i = 0; i < COUNT; i++) {
		made[i] = destination_get(&destinations, (i + 1) * 64);
		assert_non_null(made[i]);
		assert_int_equal(made[i]->path.in_flight, 0);
		assert_true(list_is_empty(&made[i]->lanes));
	}
	for (uint64_t i = 0; i < COUNT; i++)
		assert_ptr_equal(destination_get(&destinations, (i + 1) * 64), made[i]);
	assert_int_equal(count_all(), COUNT + 1);
}

TEST(what_is_known_is_kept_when_no_request_is_left)
{
	struct flow_account account = {.path = &node->path};
	struct flow_control flow;

	flow_init(&flow);
	flow_sent(&flow, &account, 1000);
	flow_response(&flow, &account, 70000, false, 71000);
	flow_ended(&flow, &account);
	destination_put(&destinations, node);
	assert_ptr_equal(destination_get(&destinations, 1), node);
	flow_init(&flow);
	assert_int_equal(flow_late_after(&flow, &account), 3 * 70000);
}

TEST(an_entry_is_kept_while_it_has_a_user)
{
	assert_ptr_equal(destination_get(&destinations, 1), node);
	destination_put(&destinations, node);
	destinations_shrink(&destinations, 0);
	assert_int_equal(count_all(), 1);
	destination_put(&destinations, node);
	destinations_shrink(&destinations, 0);
	assert_int_equal(count_all(), 0);
}

static void note_key(struct destination *destination, void *arg)
{
	((bool *)arg)[destination->key] = true;
}

/* Entry 1 is in use. */
TEST(the_longest_unused_ones_are_forgotten)
{
	const unsigned count = KEPT + 100;
	bool there[KEPT + 100 + 2] = {false};

	for (unsigned i = 2; i < count + 2; i++)
		destination_put(&destinations, destination_get(&destinations, i));
	assert_in_range(count_all(), KEPT + 1, KEPT + 2);
	destinations_shrink(&destinations, KEPT / 2);
	destinations_visit(&destinations, note_key, there);
	for (unsigned i = 2; i < count + 2; i++)
		assert_int_equal(there[i], i >= count + 2 - KEPT / 2);
	assert_true(there[1]);
}

TEST(one_that_is_used_again_is_not_forgotten_soon)
{
	destination_put(&destinations, node);
	destination_put(&destinations, destination_get(&destinations, 2));
	destination_put(&destinations, destination_get(&destinations, 1));
	destinations_shrink(&destinations, 1);
	assert_int_equal(count_all(), 1);
	assert_ptr_equal(destination_get(&destinations, 1), node);
}

TEST(without_memory_there_is_no_destination)
{
	struct destinations none;

	destinations_init(&none);
	for (unsigned n = 1; n <= 2; n++) {
		device_fail_malloc(n);
		assert_null(destination_get(&none, 1));
	}
	device_fail_malloc(0);
	assert_non_null(destination_get(&none, 1));
	destinations_free(&none);
}

/* Whichever allocation fails, the one before the entry's is for buckets. */
TEST(without_memory_for_more_buckets_all_are_found)
{
	unsigned before, grown = 0;

	for (uint64_t i = 2; i <= COUNT; i++) {
		before = device_allocations();
		device_fail_malloc(1);
		if (destination_get(&destinations, i))
			grown += device_allocations() > before + 1;
		else
			assert_int_equal(device_allocations(), before + 1);
		device_fail_malloc(0);
		assert_int_equal(destination_get(&destinations, i)->key, i);
	}
	assert_true(grown > 0);
	for (uint64_t i = 1; i <= COUNT; i++)
		assert_int_equal(destination_get(&destinations, i)->key, i);
	assert_int_equal(count_all(), COUNT);
}

/* One allocation for each entry. */
TEST(entries_that_were_forgotten_need_no_buckets)
{
	unsigned before;

	for (int round = 0; round < 100; round++) {
		before = device_allocations();
		for (uint64_t i = 2; i < 50; i++)
			destination_put(&destinations, destination_get(&destinations, i));
		assert_int_equal(device_allocations() - before, 48);
		destinations_shrink(&destinations, 0);
		assert_int_equal(count_all(), 1);
	}
}

static void mark(struct destination *destination, void *arg)
{
	((unsigned *)arg)[destination->key]++;
}

TEST(each_one_is_visited_once)
{
	unsigned seen[COUNT + 1] = {0};

	for (uint64_t i = 2; i <= COUNT; i++)
		destination_get(&destinations, i);
	destinations_visit(&destinations, mark, seen);
	for (uint64_t i = 1; i <= COUNT; i++)
		assert_int_equal(seen[i], 1);
}

/* --- keys ----------------------------------------------------------------------- */

static uint64_t key_of(uint8_t mgmt_class, int lid, uint8_t gid, uint8_t hop)
{
	uint8_t umad[64 + IB_MAD_SIZE] = {0};
	ib_mad_addr_t grh = {.gid = {gid}};
	uint8_t *mad = umad_get_mad(umad);

	umad_set_addr(umad, lid, 1, 0, 0);
	umad_set_grh(umad, gid ? &grh : NULL);
	mad[1] = mgmt_class;
	if (hop) {
		mad[7] = 3;
		mad[128 + 3] = hop;
		mad[128 + 4] = gid; /* beyond the route */
	}
	mad[12] = hop ^ gid; /* irrelevant bytes */
	return destination_key(umad, mad);
}

static uint64_t key_of_lid(int lid)
{
	return key_of(IB_PERFORMANCE_CLASS, lid, 0, 0);
}

static uint64_t key_of_gid(uint8_t gid)
{
	return key_of(IB_PERFORMANCE_CLASS, 1, gid, 0);
}

static uint64_t key_of_route(uint8_t hop)
{
	return key_of(IB_SMI_DIRECT_CLASS, 0xffff, 0, hop);
}

TEST(a_destination_is_a_lid_a_gid_or_a_route)
{
	assert_true(key_of_lid(1) == key_of_lid(1));
	assert_true(key_of_lid(1) != key_of_lid(2));
	assert_true(key_of_gid(1) != key_of_gid(2));
	assert_true(key_of_gid(1) != key_of_lid(1));
	assert_true(key_of_route(1) != key_of_route(2));
	assert_true(key_of_route(1) == key_of_route(1));
}

TEST(smps_and_gmps_have_a_destination_each)
{
	assert_true(key_of(IB_SMI_CLASS, 1, 0, 0) != key_of_lid(1));
	assert_true(key_of(IB_CC_CLASS, 1, 0, 0) == key_of_lid(1));
}

/* The lowest bits of the key choose the bucket. */
TEST(lids_are_spread_over_all_buckets)
{
	const int lids = 0xbfff, buckets = 256;
	int counts[256] = {0};

	for (int lid = 1; lid <= lids; lid++)
		counts[key_of_lid(lid) & 255]++;
	for (int i = 0; i < buckets; i++)
		assert_in_range(counts[i], 1, 2 * lids / buckets);
}
