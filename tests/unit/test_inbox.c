/* SPDX-License-Identifier: BSD-2-Clause */

/* Messages that are stored for mad_receive_via(). */

#include "fake_device.h"
#include "engine/inbox.h"

#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct inbox inbox;
static _Alignas(8) uint8_t umad[512];

static int setup(void **state)
{
	(void)state;
	inbox_init(&inbox);
	memset(umad, 0, sizeof(umad));
	umad[umad_size() + 3] = IB_MAD_METHOD_GET;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	inbox_free(&inbox);
	return 0;
}

#define INBOX_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void a_message_without_a_whole_mad_header_is_not_kept(void **state)
{
	(void)state;
	assert_false(inbox_add(&inbox, umad, 23));
	assert_null(inbox_take(&inbox));
	assert_true(inbox_add(&inbox, umad, 24));
	free(inbox_take(&inbox));
}

static void an_inbox_is_empty_after_it_was_freed(void **state)
{
	struct message *message;

	(void)state;
	assert_true(inbox_add(&inbox, umad, IB_MAD_SIZE));
	inbox_free(&inbox);
	assert_null(inbox.first);
	assert_int_equal(inbox.count, 0);
	assert_int_equal(inbox.bytes, 0);
	assert_true(inbox_add(&inbox, umad, IB_MAD_SIZE));
	message = inbox_take(&inbox);
	assert_non_null(message);
	free(message);
	assert_null(inbox_take(&inbox));
}

static void an_inbox_keeps_1024_messages(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 1024; i++)
			assert_true(inbox_add(&inbox, umad, 24));
		assert_false(inbox_add(&inbox, umad, 24));
		free(inbox_take(&inbox));
		assert_true(inbox_add(&inbox, umad, 24));
		assert_false(inbox_add(&inbox, umad, 24));
		for (unsigned i = 0; i < 1024; i++)
			free(inbox_take(&inbox));
		assert_null(inbox_take(&inbox));
	}
}

/* With their headers. */
static void an_inbox_keeps_64_mib(void **state)
{
	int length = (1 << 24) - (int)umad_size();
	uint8_t *message = calloc(1, umad_size() + (size_t)length);

	(void)state;
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

/* The library's own responses have no such ID, and no response is expected twice. */
static void a_response_is_kept_if_it_is_expected(void **state)
{
	(void)state;
	umad[umad_size() + 3] = IB_MAD_METHOD_GET_RESPONSE;
	assert_false(inbox_add(&inbox, umad, IB_MAD_SIZE)); /* its ID is 0 */
	inbox_expect(&inbox, 7);
	for (uint32_t i = 100; i < 100 + INBOX_TIDS - 1; i++)
		inbox_expect(&inbox, i);
	umad[umad_size() + 15] = 7;
	assert_true(inbox_add(&inbox, umad, IB_MAD_SIZE));
	assert_false(inbox_add(&inbox, umad, IB_MAD_SIZE));
	umad[umad_size() + 15] = 1;
	assert_false(inbox_add(&inbox, umad, IB_MAD_SIZE));
	umad[umad_size() + 15] = 7;
	inbox_expect(&inbox, 7);
	for (uint32_t i = 2000; i < 2000 + INBOX_TIDS; i++)
		inbox_expect(&inbox, i);
	assert_false(inbox_add(&inbox, umad, IB_MAD_SIZE)); /* too long ago */
	free(inbox_take(&inbox));
	assert_null(inbox_take(&inbox));
}

static void only_requests_are_kept(void **state)
{
	(void)state;
	umad[umad_size() + 3] = IB_MAD_METHOD_TRAP_REPRESS;
	assert_false(inbox_add(&inbox, umad, IB_MAD_SIZE));
	umad[umad_size() + 3] = IB_MAD_METHOD_TRAP;
	assert_true(inbox_add(&inbox, umad, IB_MAD_SIZE));
	((struct ib_user_mad *)(void *)umad)->status = ETIMEDOUT;
	assert_false(inbox_add(&inbox, umad, IB_MAD_SIZE));
	free(inbox_take(&inbox));
}

static void an_inbox_of_several_messages_is_freed(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++)
		assert_true(inbox_add(&inbox, umad, IB_MAD_SIZE));
	inbox_free(&inbox);
	assert_null(inbox_take(&inbox));
}

/* In a child, an inbox that a thread of the parent was changing. */
static void an_inbox_that_begins_anew_is_empty(void **state)
{
	struct message *message;

	(void)state;
	assert_true(inbox_add(&inbox, umad, IB_MAD_SIZE));
	message = inbox.first;
	inbox_init(&inbox);
	assert_null(inbox_take(&inbox));
	free(message);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		INBOX_TEST(a_message_without_a_whole_mad_header_is_not_kept),
		INBOX_TEST(an_inbox_is_empty_after_it_was_freed),
		INBOX_TEST(an_inbox_keeps_1024_messages),
		INBOX_TEST(an_inbox_keeps_64_mib),
		INBOX_TEST(a_response_is_kept_if_it_is_expected),
		INBOX_TEST(only_requests_are_kept),
		INBOX_TEST(an_inbox_of_several_messages_is_freed),
		INBOX_TEST(an_inbox_that_begins_anew_is_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
