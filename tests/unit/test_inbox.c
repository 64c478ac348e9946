/* SPDX-License-Identifier: BSD-2-Clause */

/* Messages that are stored for mad_receive_via(). */

#include "fake_device.h"
#include "port/inbox.h"
#include "test.h"

#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The IDs that are expected at most. */
#define EXPECTED 65536

static struct inbox inbox;
static _Alignas(8) uint8_t umad[512];

static int setup(void)
{
	inbox_init(&inbox);
	memset(umad, 0, sizeof(umad));
	umad[umad_size() + 3] = IB_MAD_METHOD_GET;
	return 0;
}

static int teardown(void)
{
	inbox_free(&inbox);
	return 0;
}

FIXTURE(setup, teardown);

TEST(a_message_without_a_whole_mad_header_is_not_kept)
{
	assert_false(inbox_add(&inbox, umad, 23));
	assert_null(inbox_take(&inbox));
	assert_true(inbox_add(&inbox, umad, 24));
	free(inbox_take(&inbox));
}

TEST(an_inbox_is_empty_after_it_was_freed)
{
	struct message *message;

	assert_true(inbox_add(&inbox, umad, IB_MAD_SIZE));
	inbox_free(&inbox);
	assert_null(inbox_take(&inbox));
	assert_true(inbox_add(&inbox, umad, IB_MAD_SIZE));
	message = inbox_take(&inbox);
	assert_non_null(message);
	free(message);
	assert_null(inbox_take(&inbox));
}

/* As many as a queue of the kernel has, and more. */
TEST(an_inbox_keeps_200000_mads)
{
	struct message *message;

	for (uint32_t i = 0; i < 200000; i++) {
		memcpy(umad + umad_size() + 12, &i, sizeof(i));
		assert_true(inbox_add(&inbox, umad, IB_MAD_SIZE));
	}
	for (uint32_t i = 0; i < 200000; i++) {
		message = inbox_take(&inbox);
		assert_non_null(message);
		assert_int_equal(message->length, IB_MAD_SIZE);
		assert_memory_equal(message->umad + umad_size() + 12, &i, sizeof(i));
		free(message);
	}
	assert_null(inbox_take(&inbox));
}

/* With their headers. */
TEST(an_inbox_keeps_64_mib)
{
	int length = (1 << 24) - (int)umad_size();
	uint8_t *message = calloc(1, umad_size() + (size_t)length);

	message[umad_size() + 3] = IB_MAD_METHOD_GET;
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 3; i++)
			assert_true(inbox_add(&inbox, message, length));
		assert_true(inbox_add(&inbox, message, length - 100));
		assert_false(inbox_add(&inbox, umad, 101 - (int)umad_size()));
		assert_true(inbox_add(&inbox, umad, 100 - (int)umad_size()));
		for (unsigned i = 0; i < 5; i++)
			free(inbox_take(&inbox));
		assert_null(inbox_take(&inbox));
	}
	free(message);
}

static void set_tid(uint32_t tid)
{
	const uint32_t bytes = htobe32(tid);

	umad[umad_size() + 1] = IB_SMI_CLASS;
	umad[umad_size() + 3] = IB_MAD_METHOD_GET_RESPONSE;
	memcpy(umad + umad_size() + 12, &bytes, sizeof(bytes));
}

/* Whether the response with this ID is kept. */
static bool is_kept(uint32_t tid)
{
	set_tid(tid);
	if (!inbox_add(&inbox, umad, IB_MAD_SIZE))
		return false;
	free(inbox_take(&inbox));
	return true;
}

/* The library's own responses have no such ID, and no response is expected twice. */
TEST(a_response_is_kept_if_it_is_expected)
{
	assert_false(is_kept(7)); /* no call so far */
	assert_false(is_kept(0));
	inbox_expect(&inbox, 0, IB_SMI_CLASS);
	assert_true(is_kept(0));
	assert_false(is_kept(0));
	inbox_expect(&inbox, 7, IB_SMI_CLASS);
	assert_false(is_kept(1));
	assert_true(is_kept(7));
	assert_false(is_kept(7));
	inbox_expect(&inbox, 7, IB_SMI_CLASS);
	assert_true(is_kept(7));
}

TEST(a_response_of_another_class_is_not_kept)
{
	inbox_expect(&inbox, 7, IB_SA_CLASS);
	assert_false(is_kept(7));
}

TEST(an_id_that_is_expected_twice_may_come_twice)
{
	inbox_expect(&inbox, 7, IB_SMI_CLASS);
	inbox_expect(&inbox, 7, IB_SMI_CLASS);
	assert_true(is_kept(7));
	assert_true(is_kept(7));
	assert_false(is_kept(7));
}

/* IDs follow one another, whatever the first one is. */
TEST(an_inbox_expects_65535_ids)
{
	const uint32_t first[] = {1, 30000, UINT32_MAX - 5000};

	for (int run = 0; run < 3; run++) {
		for (uint32_t i = 0; i < EXPECTED; i++)
			inbox_expect(&inbox, first[run] + i, IB_SMI_CLASS);
		for (uint32_t i = 1; i < EXPECTED; i++)
			assert_true(is_kept(first[run] + i));
		inbox_free(&inbox);
	}
}

/* IDs of other programs may be alike in all lower bits. */
TEST(ids_that_are_alike_are_expected_beside_each_other)
{
	for (uint32_t i = 1; i <= 8; i++)
		inbox_expect(&inbox, i << 16 | 5, IB_SMI_CLASS);
	/* one after another gives its place back */
	for (uint32_t i = 8; i >= 1; i--)
		assert_true(is_kept(i << 16 | 5));
}

TEST(an_id_replaces_one_of_long_ago)
{
	unsigned kept = 0;

	for (uint32_t i = 1; i <= 3 * EXPECTED; i++)
		inbox_expect(&inbox, i, IB_SMI_CLASS);
	for (uint32_t i = 1; i <= 3 * EXPECTED; i++)
		kept += is_kept(i);
	assert_int_equal(kept, EXPECTED);
	/* the latest one is always expected */
	for (uint32_t i = 1; i <= 3 * EXPECTED; i++)
		inbox_expect(&inbox, i, IB_SMI_CLASS);
	assert_true(is_kept(3 * EXPECTED));
}

TEST(without_memory_no_response_is_expected)
{
	device_fail_malloc(1);
	inbox_expect(&inbox, 7, IB_SMI_CLASS);
	device_fail_malloc(0);
	assert_false(is_kept(7));
	inbox_expect(&inbox, 7, IB_SMI_CLASS);
	set_tid(7);
	device_fail_malloc(1);
	assert_false(inbox_add(&inbox, umad, IB_MAD_SIZE));
	device_fail_malloc(0);
	assert_null(inbox_take(&inbox));
}

TEST(only_requests_are_kept)
{
	umad[umad_size() + 3] = IB_MAD_METHOD_TRAP_REPRESS;
	assert_false(inbox_add(&inbox, umad, IB_MAD_SIZE));
	umad[umad_size() + 3] = IB_MAD_METHOD_TRAP;
	assert_true(inbox_add(&inbox, umad, IB_MAD_SIZE));
	((struct ib_user_mad *)(void *)umad)->status = ETIMEDOUT;
	assert_false(inbox_add(&inbox, umad, IB_MAD_SIZE));
	free(inbox_take(&inbox));
}

TEST(an_inbox_of_several_messages_is_freed)
{
	for (unsigned i = 0; i < 3; i++)
		assert_true(inbox_add(&inbox, umad, IB_MAD_SIZE));
	inbox_free(&inbox);
	assert_null(inbox_take(&inbox));
}
