/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"
#include "test.h"

FIXTURE(fake_setup, fake_teardown);

static void make_cas(int count)
{
	char path[128];

	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "/sys/class/infiniband/mlx5_%d/node_type", i);
		fake_file(path, "1: CA\n");
	}
}

/* The names of the list, each with a blank behind it. */
static const char *names_of(const struct umad_device_node *node)
{
	static char names[256];

	for (names[0] = '\0'; node; node = node->next)
		strcat(strcat(names, node->ca_name), " ");
	return names;
}

TEST(names_come_sorted)
{
	char names[4][UMAD_CA_NAME_LEN];

	make_cas(3);
	fake_file("/sys/class/infiniband/hfi1_0/node_type", "1: CA\n");
	assert_int_equal(umad_get_cas_names(names, 4), 4);
	assert_string_equal(names[0], "hfi1_0");
	assert_string_equal(names[1], "mlx5_0");
	assert_string_equal(names[3], "mlx5_2");
}

TEST(no_more_names_are_stored_than_asked_for)
{
	char names[3][UMAD_CA_NAME_LEN] = {"", "", "untouched"};

	make_cas(3);
	assert_int_equal(umad_get_cas_names(names, 2), 2);
	assert_string_equal(names[1], "mlx5_1");
	assert_string_equal(names[2], "untouched");
	assert_int_equal(umad_get_cas_names(names, 0), 0);
	assert_int_equal(umad_get_cas_names(NULL, 0), 0);
}

TEST(no_device_is_no_name)
{
	char names[1][UMAD_CA_NAME_LEN];

	assert_int_equal(umad_get_cas_names(names, 1), 0);
	fake_dir("/sys/class/infiniband");
	assert_int_equal(umad_get_cas_names(names, 1), 0);
}

TEST(what_is_no_infiniband_device_is_invisible)
{
	char names[4][UMAD_CA_NAME_LEN];

	make_cas(1);
	fake_file("/sys/class/infiniband/iw0/node_type", "4: RNIC\n");
	fake_file("/sys/class/infiniband/a_name_of_20_letters/node_type", "1: CA\n");
	fake_file("/sys/class/infiniband/.hidden/node_type", "1: CA\n");
	fake_dir("/sys/class/infiniband/empty");
	fake_link("/sys/class/infiniband/dangling", "../nowhere");
	assert_int_equal(umad_get_cas_names(names, 4), 1);
	assert_string_equal(names[0], "mlx5_0");
}

TEST(there_is_no_limit_to_devices)
{
	static char names[300][UMAD_CA_NAME_LEN];
	struct umad_device_node *list, *node;
	int count = 0;

	make_cas(300);
	assert_int_equal(umad_get_cas_names(names, 300), 300);
	assert_string_equal(names[299], "mlx5_99");
	list = umad_get_ca_device_list();
	for (node = list; node; node = node->next)
		count++;
	assert_int_equal(count, 300);
	umad_free_ca_device_list(list);
}

TEST(bad_arguments_are_refused)
{
	char names[1][UMAD_CA_NAME_LEN];

	assert_fails(umad_get_cas_names(NULL, 1), EINVAL);
	assert_int_equal(umad_get_cas_names(names, -1), -EINVAL);
	assert_int_equal(umad_sort_ca_device_list(NULL, 0), EINVAL);
	umad_free_ca_device_list(NULL);
}

TEST(the_list_is_sorted_and_tells_no_device_from_an_error)
{
	struct umad_device_node *list;

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

TEST(sorting_orders_any_list)
{
	struct umad_device_node nodes[7], *head = nodes;
	static const char *const names[] = {"e", "b", "g", "a", "c", "f", "d"};

	for (size_t length = 1; length <= 7; length++) {
		for (size_t i = 0; i < length; i++) {
			nodes[i].ca_name = names[i];
			nodes[i].next = i + 1 < length ? &nodes[i + 1] : NULL;
		}
		head = nodes;
		assert_int_equal(umad_sort_ca_device_list(&head, length % 2 ? length : 0), 0);
		for (size_t i = 0; i < length; i++, head = head->next)
			assert_true(!head->next ||
				    strcmp(head->ca_name, head->next->ca_name) < 0);
		assert_null(head);
	}
}

TEST(sorting_a_list_of_another_length_leaves_it_alone)
{
	struct umad_device_node b = {NULL, "b"}, c = {&b, "c"}, *head = &c;

	assert_errno(assert_int_equal(umad_sort_ca_device_list(&head, 1), EINVAL), EINVAL);
	assert_int_equal(umad_sort_ca_device_list(&head, 3), EINVAL);
	assert_string_equal(names_of(head), "c b ");
	assert_int_equal(umad_sort_ca_device_list(&head, 2), 0);
	assert_string_equal(names_of(head), "b c ");
}

TEST(sorting_an_empty_list_is_fine)
{
	struct umad_device_node *head = NULL;

	assert_int_equal(umad_sort_ca_device_list(&head, 0), 0);
	assert_int_equal(umad_sort_ca_device_list(&head, 1), EINVAL);
	assert_null(head);
}

TEST(a_class_that_is_no_folder_is_an_error)
{
	char names[1][UMAD_CA_NAME_LEN];

	fake_file("/sys/class/infiniband", "no folder\n");
	assert_errno(assert_int_equal(umad_get_cas_names(names, 1), -EIO), ENOTDIR);
	assert_fails_null(umad_get_ca_device_list(), ENOTDIR);
}

TEST(the_longest_name_is_whole)
{
	char names[1][UMAD_CA_NAME_LEN];
	struct umad_device_node *list;

	fake_file("/sys/class/infiniband/a_name_of_19_letter/node_type", "3: router\n");
	assert_int_equal(umad_get_cas_names(names, 1), 1);
	assert_string_equal(names[0], "a_name_of_19_letter");
	list = umad_get_ca_device_list();
	assert_string_equal(names_of(list), "a_name_of_19_letter ");
	umad_free_ca_device_list(list);
}

static void vanish(const char *path)
{
	if (!strcmp(path, "/sys/class/infiniband/mlx5_1/node_type"))
		fake_remove("/sys/class/infiniband/mlx5_1");
}

TEST(a_device_that_vanishes_after_it_was_listed_is_left_out)
{
	char names[3][UMAD_CA_NAME_LEN];
	struct umad_device_node *list;

	make_cas(3);
	fake_before_open(vanish);
	assert_int_equal(umad_get_cas_names(names, 3), 2);
	assert_string_equal(names[1], "mlx5_2");
	make_cas(3);
	list = umad_get_ca_device_list();
	assert_string_equal(names_of(list), "mlx5_0 mlx5_2 ");
	umad_free_ca_device_list(list);
}

TEST(a_device_that_cannot_be_read_is_left_out_but_the_class_must_be)
{
	char names[3][UMAD_CA_NAME_LEN];
	struct umad_device_node *list, *node;
	int ret, count;
	unsigned n;

	make_cas(3);
	for (n = 1;; n++) {
		fake_fail_call(n, EACCES);
		errno = 0;
		ret = umad_get_cas_names(names, 3);
		if (!fake_failed())
			break;
		assert_int_equal(ret, n == 1 ? -EIO : 2);
		assert_true(n > 1 || errno == EACCES);

		fake_fail_call(n, EACCES);
		list = umad_get_ca_device_list();
		assert_int_equal(errno, n == 1 ? EACCES : 0);
		for (count = 0, node = list; node; node = node->next)
			count++;
		assert_int_equal(count, n == 1 ? 0 : 2);
		umad_free_ca_device_list(list);
	}
	fake_fail_call(0, 0);
	/* the list; open and read for each device */
	assert_int_equal(n, 8);
	assert_int_equal(ret, 3);
}

TEST(every_growth_of_the_names_may_fail)
{
	char names[40][UMAD_CA_NAME_LEN];
	unsigned n;
	int ret;

	make_cas(40);
	for (n = 1;; n++) {
		fake_fail_malloc(n);
		errno = 0;
		ret = umad_get_cas_names(names, 40);
		if (!fake_failed())
			break;
		assert_int_equal(ret, -ENOMEM);
		assert_int_equal(errno, ENOMEM);
	}
	fake_fail_malloc(0);
	assert_true(n > 2);
	assert_int_equal(ret, 40);
}

TEST(a_long_list_is_sorted_whether_counted_or_not)
{
	static char names[300][8];
	static struct umad_device_node nodes[300];
	struct umad_device_node *head;

	for (int round = 0; round < 2; round++) {
		/* 7 and 300 have no common factor: every number occurs, out of order */
		for (int i = 0; i < 300; i++) {
			snprintf(names[i], sizeof(names[i]), "ca%03d", i * 7 % 300);
			nodes[i].ca_name = names[i];
			nodes[i].next = i < 299 ? &nodes[i + 1] : NULL;
		}
		head = nodes;
		assert_int_equal(umad_sort_ca_device_list(&head, round ? 300 : 0), 0);
		for (int i = 0; i < 300; i++, head = head->next) {
			char wanted[8];

			snprintf(wanted, sizeof(wanted), "ca%03d", i);
			assert_non_null(head);
			assert_string_equal(head->ca_name, wanted);
		}
		assert_null(head);
	}
}

TEST(the_length_of_a_ring_is_not_counted_for_ever)
{
	struct umad_device_node b = {NULL, "b"}, a = {&b, "a"}, *head = &b;

	b.next = &a;
	assert_int_equal(umad_sort_ca_device_list(&head, 1), EINVAL);
	assert_int_equal(umad_sort_ca_device_list(&head, 5), EINVAL);
	assert_ptr_equal(head, &b);
	assert_ptr_equal(b.next, &a);
	assert_ptr_equal(a.next, &b);
}

TEST(a_list_can_be_sorted_again_and_freed)
{
	struct umad_device_node *list, *reversed = NULL, *next;

	make_cas(5);
	for (list = umad_get_ca_device_list(); list; list = next) {
		next = list->next;
		list->next = reversed;
		reversed = list;
	}
	assert_string_equal(names_of(reversed), "mlx5_4 mlx5_3 mlx5_2 mlx5_1 mlx5_0 ");
	assert_int_equal(umad_sort_ca_device_list(&reversed, 5), 0);
	assert_string_equal(names_of(reversed), "mlx5_0 mlx5_1 mlx5_2 mlx5_3 mlx5_4 ");
	umad_free_ca_device_list(reversed);
}

TEST(names_that_do_not_fit_are_never_stored)
{
	char names[40][UMAD_CA_NAME_LEN], path[256];

	make_cas(1);
	/* names so long, and so many, that they would exceed any array of names */
	for (int i = 0; i < 40; i++) {
		snprintf(path, sizeof(path), "/sys/class/infiniband/%0180d/node_type", i);
		fake_file(path, "1: CA\n");
	}
	assert_int_equal(umad_get_cas_names(names, 40), 1);
	assert_string_equal(names[0], "mlx5_0");
}
