/* SPDX-License-Identifier: BSD-2-Clause */

/* Messages that are stored for mad_receive_via(). */

#include "fake_device.h"
#include "engine/inbox.h"

#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <stdlib.h>
#include <string.h>

static struct inbox inbox;
static uint8_t umad[512];

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
		INBOX_TEST(an_inbox_that_begins_anew_is_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
