/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void make_cas(int count)
{
	char path[128];
	int i;

	for (i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "/sys/class/infiniband/mlx5_%d/node_type", i);
		fake_file(path, "1: CA\n");
	}
}

/* As the list says, one name after the other with a blank behind each. */
static const char *names_of(const struct umad_device_node *node)
{
	static char names[256];

	for (names[0] = '\0'; node; node = node->next)
		strcat(strcat(names, node->ca_name), " ");
	return names;
}

static void names_come_sorted(void **state)
{
	char names[4][UMAD_CA_NAME_LEN];

	(void)state;
	make_cas(3);
	fake_file("/sys/class/infiniband/hfi1_0/node_type", "1: CA\n");
	assert_int_equal(umad_get_cas_names(names, 4), 4);
	assert_string_equal(names[0], "hfi1_0");
	assert_string_equal(names[1], "mlx5_0");
	assert_string_equal(names[3], "mlx5_2");
}

static void no_more_names_are_stored_than_asked_for(void **state)
{
	char names[3][UMAD_CA_NAME_LEN] = {"", "", "untouched"};

	(void)state;
	make_cas(3);
	assert_int_equal(umad_get_cas_names(names, 2), 2);
	assert_string_equal(names[1], "mlx5_1");
	assert_string_equal(names[2], "untouched");
	assert_int_equal(umad_get_cas_names(names, 0), 0);
	assert_int_equal(umad_get_cas_names(NULL, 0), 0);
}

static void no_device_is_no_name(void **state)
{
	char names[1][UMAD_CA_NAME_LEN];

	(void)state;
	assert_int_equal(umad_get_cas_names(names, 1), 0);
	fake_dir("/sys/class/infiniband");
	assert_int_equal(umad_get_cas_names(names, 1), 0);
}

static void what_is_no_infiniband_device_is_invisible(void **state)
{
	char names[4][UMAD_CA_NAME_LEN];

	(void)state;
	make_cas(1);
	fake_file("/sys/class/infiniband/iw0/node_type", "4: RNIC\n");
	fake_file("/sys/class/infiniband/a_name_of_20_letters/node_type", "1: CA\n");
	fake_file("/sys/class/infiniband/.hidden/node_type", "1: CA\n");
	fake_dir("/sys/class/infiniband/empty");
	fake_link("/sys/class/infiniband/dangling", "../nowhere");
	assert_int_equal(umad_get_cas_names(names, 4), 1);
	assert_string_equal(names[0], "mlx5_0");
}

static void there_is_no_limit_to_devices(void **state)
{
	static char names[300][UMAD_CA_NAME_LEN];
	struct umad_device_node *list, *node;
	int count = 0;

	(void)state;
	make_cas(300);
	assert_int_equal(umad_get_cas_names(names, 300), 300);
	assert_string_equal(names[299], "mlx5_99");
	list = umad_get_ca_device_list();
	for (node = list; node; node = node->next)
		count++;
	assert_int_equal(count, 300);
	umad_free_ca_device_list(list);
}

static void bad_arguments_are_refused(void **state)
{
	char names[1][UMAD_CA_NAME_LEN];

	(void)state;
	errno = 0;
	assert_int_equal(umad_get_cas_names(NULL, 1), -EINVAL);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(umad_get_cas_names(names, -1), -EINVAL);
	assert_int_equal(umad_sort_ca_device_list(NULL, 0), EINVAL);
	umad_free_ca_device_list(NULL);
}

static void a_folder_that_cannot_be_read_is_an_error(void **state)
{
	char names[1][UMAD_CA_NAME_LEN];

	(void)state;
	make_cas(1);
	fake_fail_call(1, EACCES);
	assert_int_equal(umad_get_cas_names(names, 1), -EIO);
	assert_int_equal(errno, EACCES);
	fake_fail_call(1, EACCES);
	assert_null(umad_get_ca_device_list());
	assert_int_equal(errno, EACCES);
}

static void the_list_is_sorted_and_tells_no_device_from_an_error(void **state)
{
	struct umad_device_node *list;

	(void)state;
	errno = EBUSY;
	assert_null(umad_get_ca_device_list());
	assert_int_equal(errno, 0);
	make_cas(3);
	fake_file("/sys/class/infiniband/hfi1_0/node_type", "1: CA\n");
	fake_file("/sys/class/infiniband/iw0/node_type", "4: RNIC\n");
	list = umad_get_ca_device_list();
	assert_string_equal(names_of(list), "hfi1_0 mlx5_0 mlx5_1 mlx5_2 ");
	umad_free_ca_device_list(list);
}

static void every_allocation_may_fail(void **state)
{
	char names[40][UMAD_CA_NAME_LEN];
	struct umad_device_node *list;
	unsigned n;

	(void)state;
	make_cas(40);
	for (n = 1;; n++) {
		fake_fail_malloc(n);
		list = umad_get_ca_device_list();
		if (!fake_failed())
			break;
		assert_null(list);
		assert_int_equal(errno, ENOMEM);
	}
	fake_fail_malloc(0);
	umad_free_ca_device_list(list);
	assert_true(n > 40);
	fake_fail_malloc(1);
	assert_int_equal(umad_get_cas_names(names, 40), -ENOMEM);
	fake_fail_malloc(0);
}

static void sorting_orders_any_list(void **state)
{
	struct umad_device_node nodes[7], *head = nodes;
	static const char *const names[] = {"e", "b", "g", "a", "c", "f", "d"};
	size_t i, length;

	(void)state;
	for (length = 1; length <= 7; length++) {
		for (i = 0; i < length; i++) {
			nodes[i].ca_name = names[i];
			nodes[i].next = i + 1 < length ? &nodes[i + 1] : NULL;
		}
		head = nodes;
		assert_int_equal(umad_sort_ca_device_list(&head, length % 2 ? length : 0), 0);
		for (i = 0; i < length; i++, head = head->next)
			assert_true(!head->next ||
				    strcmp(head->ca_name, head->next->ca_name) < 0);
		assert_null(head);
	}
}

static void sorting_a_list_of_another_length_leaves_it_alone(void **state)
{
	struct umad_device_node b = {NULL, "b"}, c = {&b, "c"}, *head = &c;

	(void)state;
	assert_int_equal(umad_sort_ca_device_list(&head, 1), EINVAL);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(umad_sort_ca_device_list(&head, 3), EINVAL);
	assert_string_equal(names_of(head), "c b ");
	assert_int_equal(umad_sort_ca_device_list(&head, 2), 0);
	assert_string_equal(names_of(head), "b c ");
}

static void sorting_an_empty_list_is_fine(void **state)
{
	struct umad_device_node *head = NULL;

	(void)state;
	assert_int_equal(umad_sort_ca_device_list(&head, 0), 0);
	assert_int_equal(umad_sort_ca_device_list(&head, 1), EINVAL);
	assert_null(head);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(names_come_sorted),
		TEST(no_more_names_are_stored_than_asked_for),
		TEST(no_device_is_no_name),
		TEST(what_is_no_infiniband_device_is_invisible),
		TEST(there_is_no_limit_to_devices),
		TEST(bad_arguments_are_refused),
		TEST(a_folder_that_cannot_be_read_is_an_error),
		TEST(the_list_is_sorted_and_tells_no_device_from_an_error),
		TEST(every_allocation_may_fail),
		TEST(sorting_orders_any_list),
		TEST(sorting_a_list_of_another_length_leaves_it_alone),
		TEST(sorting_an_empty_list_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
