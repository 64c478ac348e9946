/* SPDX-License-Identifier: BSD-2-Clause */

/* The files of a view, on a disk that is full: the size of files is limited to 0. */
#include "view.h"
#include "remove_tree.h"
#include "subnet_fixture.h"
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define PORT "sys/devices/umad-sim/0000:01:00.0/infiniband/mlx5_0/ports/1"

static char folder[] = "/tmp/view-XXXXXX";
static struct view *views;

static void port_changed(struct fabric *fabric, uint32_t port)
{
	views_port_changed(fabric, views, port);
}

static struct view *view_of_gamma(struct subnet *subnet)
{
	char why[256];
	struct view *view;

	assert_int_equal(view_find(&subnet->fabric, &views, folder, "gamma", &view, why), 0);
	assert_null(views_incomplete(views));
	subnet->fabric.port_changed = port_changed;
	return view;
}

static void forget(const struct view *view)
{
	remove_tree(view->folder);
	views_free(views);
	views = NULL;
}

static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The first line of a file; NULL: there is no file. */
static const char *content(const struct view *view, const char *file)
{
	static char text[256];
	char path[1024];
	FILE *stream;

	snprintf(path, sizeof(path), "%s/%s", view->folder, file);
	stream = fopen(path, "re");
	if (!stream)
		return NULL;
	if (!fgets(text, sizeof(text), stream))
		text[0] = '\0';
	fclose(stream);
	text[strcspn(text, "\n")] = '\0';
	return text;
}

static void assert_content(const struct view *view, const char *file, const char *expected)
{
	const char *text = content(view, file);

	assert_non_null(text);
	assert_string_equal(text, expected);
}

SUBNET_TEST(a_state_that_cannot_be_written_is_missing_until_there_is_space)
{
	struct view *view = view_of_gamma(subnet);

	assert_content(view, PORT "/state", "4: ACTIVE");
	limit_files(0);
	rule(subnet, "link down on gamma/1");
	assert_null(content(view, PORT "/state"));
	assert_null(content(view, PORT "/phys_state"));
	assert_null(content(view, PORT "/rate"));
	assert_content(view, "sys/devices/umad-sim/0000:01:00.0/infiniband/mlx5_0/node_type",
		       "1: CA");
	assert_content(view, PORT "/pkeys/0", "0xffff");
	assert_ptr_equal(views_incomplete(views), view);
	assert_int_equal(view->error, -EFBIG);
	views_repair(&subnet->fabric, views);
	assert_ptr_equal(views_incomplete(views), view);
	assert_null(content(view, PORT "/state"));
	limit_files(RLIM_INFINITY);
	views_repair(&subnet->fabric, views);
	assert_null(views_incomplete(views));
	assert_content(view, PORT "/state", "1: DOWN");
	assert_content(view, PORT "/phys_state", "2: Polling");
	assert_non_null(content(view, PORT "/rate"));
	forget(view);
}

SUBNET_TEST(a_counter_that_cannot_be_written_is_missing_until_there_is_space)
{
	struct view *view = view_of_gamma(subnet);

	assert_content(view, PORT "/counters/link_downed", "0");
	limit_files(0);
	rule(subnet, "link down on gamma/1");
	view_write_counters(&subnet->fabric, view, false);
	assert_null(content(view, PORT "/counters/link_downed"));
	assert_content(view, PORT "/counters/VL15_dropped", "0"); /* it has not changed */
	limit_files(RLIM_INFINITY);
	views_repair(&subnet->fabric, views);
	assert_content(view, PORT "/counters/link_downed", "1");
	assert_content(view, PORT "/counters/VL15_dropped", "0");
	forget(view);
}

/* A removed device has no entries, and gets them back although a part of the files is missing.
 */
SUBNET_TEST(entries_of_a_device_come_and_go_while_files_are_missing)
{
	struct view *view = view_of_gamma(subnet);

	limit_files(0);
	rule(subnet, "link down on gamma/1");
	views_device_changed(views, GAMMA, false);
	assert_null(content(view, "dev/infiniband/umad0"));
	assert_null(content(view, "sys/class/infiniband/mlx5_0/node_type"));
	subnet->fabric.nodes[GAMMA].removed = true;
	views_repair(&subnet->fabric, views);
	assert_null(content(view, "dev/infiniband/umad0"));
	subnet->fabric.nodes[GAMMA].removed = false;
	views_repair(&subnet->fabric, views);
	assert_content(view, "dev/infiniband/umad0", "");
	assert_content(view, "sys/class/infiniband/mlx5_0/node_type", "1: CA");
	assert_content(view, "sys/class/infiniband_mad/umad0/ibdev", "mlx5_0");
	limit_files(RLIM_INFINITY);
	views_repair(&subnet->fabric, views);
	assert_null(views_incomplete(views));
	assert_content(view, PORT "/state", "1: DOWN");
	forget(view);
}

SUBNET_TEST(a_view_is_complete_or_does_not_exist)
{
	char why[256], path[64];
	struct view *view;

	limit_files(0);
	assert_int_equal(view_find(&subnet->fabric, &views, folder, "gamma", &view, why),
			 -EFBIG);
	assert_null(views);
	limit_files(RLIM_INFINITY);
	snprintf(path, sizeof(path), "%s/view-1", folder);
	assert_int_equal(access(path, F_OK), -1);
	forget(view_of_gamma(subnet));
}

SUBNET_TEST(nodes_that_do_not_exist_are_named)
{
	char why[256];

	assert_int_equal(view_check_nodes(&subnet->fabric, "gamma", why), 0);
	assert_int_equal(view_check_nodes(&subnet->fabric, "gamma,alpha", why), 0);
	assert_int_equal(view_check_nodes(&subnet->fabric, "gamma,delta", why), -ENOENT);
	assert_string_equal(why, "no node \"delta\"");
	assert_int_equal(view_check_nodes(&subnet->fabric, "gamma,", why), -ENOENT);
	assert_string_equal(why, "empty node name in \"gamma,\"");
	assert_int_equal(view_check_nodes(&subnet->fabric, "gamma,,alpha", why), -ENOENT);
	assert_string_equal(why, "empty node name in \"gamma,,alpha\"");
}

static int make_folder(void)
{
	signal(SIGXFSZ, SIG_IGN);
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void)
{
	return rmdir(folder);
}

GROUP(make_folder, remove_folder);
