/* SPDX-License-Identifier: BSD-2-Clause */

#include "captured_output.h"
#include "fake.h"
#include "log.h"
#include "packet.h"
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <stdbool.h>
#include <unistd.h>

/* The last call of the hook, and the number of calls. */
static enum umad_log_level hook_level;
static char hook_text[1024];
static void *hook_user;
static int hook_calls;

static void remember(enum umad_log_level level, const char *text, void *user)
{
	hook_level = level;
	snprintf(hook_text, sizeof(hook_text), "%s", text);
	hook_user = user;
	hook_calls++;
	errno = EXDEV;
}

static int setup(void)
{
	umad_debug(0);
	umad_set_log_hook(NULL, NULL);
	hook_calls = 0;
	return fake_setup();
}

FIXTURE(setup, fake_teardown);

/* The output on stderr of a function. */
static const char *stderr_of(void (*something)(void))
{
	capture_output(stderr);
	something();
	return captured_output();
}

static void say_everything(void)
{
	log_warning("something is %s", "wrong");
	log_info("something happened");
	log_debug("a packet");
}

TEST(levels_choose_what_is_said)
{
	assert_string_equal(stderr_of(say_everything), "libibumad: something is wrong\n");
	umad_debug(1);
	assert_string_equal(stderr_of(say_everything), "libibumad: something is wrong\n"
						       "libibumad: something happened\n");
	umad_debug(2);
	assert_string_equal(stderr_of(say_everything), "libibumad: something is wrong\n"
						       "libibumad: something happened\n"
						       "libibumad: a packet\n");
}

TEST(the_level_is_asked_for_by_a_negative_one)
{
	assert_int_equal(umad_debug(1), 1);
	assert_int_equal(umad_debug(-1), 1);
	assert_int_equal(umad_debug(5), 5);
	assert_int_equal(umad_debug(0), 0);
}

TEST(a_hook_takes_what_stderr_would_get)
{
	int user;

	umad_set_log_hook(remember, &user);
	assert_string_equal(stderr_of(say_everything), "");
	assert_int_equal(hook_calls, 1);
	assert_int_equal(hook_level, UMAD_LOG_WARNING);
	assert_string_equal(hook_text, "something is wrong");
	assert_ptr_equal(hook_user, &user);
	umad_debug(2);
	say_everything();
	assert_int_equal(hook_calls, 4);
	assert_int_equal(hook_level, UMAD_LOG_DEBUG);
	umad_set_log_hook(NULL, NULL);
	umad_debug(0);
	assert_string_equal(stderr_of(say_everything), "libibumad: something is wrong\n");
	assert_int_equal(hook_calls, 4);
}

TEST(a_message_is_one_line_whatever_a_caller_passes)
{
	umad_debug(1);
	umad_set_log_hook(remember, NULL);
	log_info("device %s", "bad\nlibibumad: forged\t\x1b[31m");
	assert_string_equal(hook_text, "device bad?libibumad: forged??[31m");
}

TEST(messages_leave_errno_alone)
{
	umad_set_log_hook(remember, NULL);
	errno = EDOM;
	say_everything();
	assert_int_equal(errno, EDOM);
}

TEST(a_long_message_is_cut)
{
	char text[2000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	umad_set_log_hook(remember, NULL);
	log_warning("%s", text);
	assert_in_range(strlen(hook_text), 100, 1000);
}

static void call_the_library(void)
{
	umad_open_port(NULL, 0);
}

TEST(a_kernel_without_user_mad_is_warned_of)
{
	assert_non_null(strstr(stderr_of(call_the_library), "abi_version"));
	fake_file("/sys/class/infiniband_mad/abi_version", "4\n");
	assert_string_equal(stderr_of(call_the_library), "");
	umad_debug(1);
	assert_non_null(strstr(stderr_of(call_the_library), "ABI is 4"));
}

static void fail_to_look(void)
{
	fake_fail_call(1, EMFILE);
	assert_int_equal(umad_open_port("mlx5_0", 1), -EIO);
}

static void open_another(void)
{
	assert_int_equal(umad_open_port("mlx5_9", 1), -ENODEV);
}

static void fail_to_open(void)
{
	fake_device("umad0")->open_error = EACCES;
	assert_int_equal(umad_open_port("mlx5_0", 1), -EIO);
	fake_device("umad0")->open_error = 0;
}

static void open_and_close(void)
{
	int fd = umad_open_port("mlx5_0", 1);

	assert_true(fd >= 0);
	umad_close_port(fd);
}

TEST(an_opening_says_what_it_found)
{
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	fake_umad(0, "mlx5_0", 1);
	assert_string_equal(stderr_of(fail_to_look), "");
	assert_string_equal(stderr_of(open_another), "");
	assert_string_equal(stderr_of(fail_to_open), "");
	umad_debug(1);
	assert_string_equal(stderr_of(fail_to_look),
			    "libibumad: cannot look for a port: Too many open files\n");
	assert_non_null(strstr(stderr_of(open_another), "no port to open for mlx5_9 port 1"));
	assert_string_equal(stderr_of(fail_to_open),
			    "libibumad: /dev/infiniband/umad0 cannot be opened: "
			    "Permission denied\n");
	assert_non_null(strstr(stderr_of(open_and_close),
			       "mlx5_0 port 1 is open as /dev/infiniband/umad0"));
	fake_file("/sys/class/infiniband_mad/abi_version", "0\n");
	assert_string_equal(stderr_of(call_the_library),
			    "libibumad: mlx5_0 port 1: state 4, physical state 5, "
			    "link layer InfiniBand\n"
			    "libibumad: mlx5_0 port 1 is chosen for (any) port 0\n"
			    "libibumad: the kernel's user_mad ABI is 0, "
			    "the oldest supported is 5\n");
}

static void open_any(void)
{
	assert_int_equal(umad_close_port(umad_open_port(NULL, 0)), 0);
}

static void open_a_second_port(void)
{
	assert_int_equal(umad_open_port(NULL, 2), -ENODEV);
}

static void get_any_ca(void)
{
	umad_ca_t ca;

	assert_int_equal(umad_get_ca(NULL, &ca), 0);
	assert_string_equal(ca.ca_name, "mlx5_1");
	umad_release_ca(&ca);
}

/* Two ports that are not chosen, and why; and the one that is. */
TEST(a_choice_says_what_it_had_and_what_it_took)
{
	static const char taken[] =
		"libibumad: mlx5_0 port 1: state 1, physical state 3, link layer InfiniBand\n"
		"libibumad: mlx5_1 port 1: state 4, physical state 5, link layer InfiniBand\n"
		"libibumad: mlx5_2 port 1: state (No such file or directory), physical state "
		"5, "
		"link layer Ethernet, no SMPs\n"
		"libibumad: usb0 is left out: its node type cannot be used (No such device)\n"
		"libibumad: mlx5_1 port 1 is chosen for (any) port 0\n";
	char name[] = "mlx5_0";

	for (int i = 0; i < 3; i++) {
		name[5] = (char)('0' + i);
		fake_ca(name);
		fake_port(name, 1, (uint32_t)i + 1);
		fake_umad(i, name, 1);
	}
	fake_file("/sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
	fake_file("/sys/class/infiniband/mlx5_0/ports/1/phys_state", "3: Disabled\n");
	fake_remove("/sys/class/infiniband/mlx5_2/ports/1/state");
	fake_file("/sys/class/infiniband/mlx5_2/ports/1/link_layer", "Ethernet\n");
	fake_file("/sys/class/infiniband/mlx5_2/ports/1/cap_mask", "0x00000400\n");
	fake_dir("/sys/class/infiniband/usb0");
	assert_string_equal(stderr_of(open_any), "");
	umad_debug(1);
	assert_ptr_equal(strstr(stderr_of(open_any), taken), captured.text);
	assert_string_equal(stderr_of(get_any_ca), taken);
	assert_non_null(
		strstr(stderr_of(open_a_second_port),
		       "libibumad: no port is chosen for (any) port 2: No such device"));
	/* what the caller named is not chosen */
	assert_null(strstr(stderr_of(open_and_close), "chosen"));
}

static void silent(enum umad_log_level level, const char *text, void *user)
{
	(void)level;
	(void)text;
	(void)user;
}

static void count(enum umad_log_level level, const char *text, void *user)
{
	assert_int_equal(level, UMAD_LOG_INFO);
	assert_string_equal(text, "many times");
	atomic_fetch_add((atomic_int *)user, 1);
}

static void *set_hooks(void *arg)
{
	for (int i = 0; i < 1000; i++)
		umad_set_log_hook(i % 2 ? silent : count, arg);
	return NULL;
}

TEST(hooks_may_be_set_while_messages_go_out)
{
	atomic_int counted = 0;
	pthread_t thread;

	umad_debug(1);
	umad_set_log_hook(count, &counted);
	assert_int_equal(pthread_create(&thread, NULL, set_hooks, &counted), 0);
	for (int i = 0; i < 1000; i++)
		log_info("many times");
	pthread_join(thread, NULL);
	/* a hook never gets the argument of another hook */
	assert_in_range(counted, 0, 1000);
	umad_set_log_hook(NULL, NULL);
}

static void *set_hooks_for_ever(void *arg)
{
	while (!atomic_load((atomic_bool *)arg))
		umad_set_log_hook(silent, NULL);
	return NULL;
}

/* Whatever a thread of the parent was doing. */
TEST(a_child_has_its_messages)
{
	atomic_bool done = false;
	pthread_t thread;
	int status;
	pid_t child;

	umad_debug(1);
	umad_set_log_hook(silent, NULL);
	assert_int_equal(pthread_create(&thread, NULL, set_hooks_for_ever, &done), 0);
	for (int i = 0; i < 300; i++) {
		child = fork();
		if (!child) {
			alarm(60);
			log_info("from a child");
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	done = true;
	pthread_join(thread, NULL);
	umad_set_log_hook(NULL, NULL);
}

static struct ib_user_mad umad = {
	.agent_id = 3,
	.retries = 5,
	.length = 320,
	.addr = {.grh_present = 1, .gid = {0xfe, 0x80, [15] = 1}},
};

static void dump_all(void)
{
	umad_dump(&umad);
	umad_addr_dump(&umad.addr);
	umad_dump(NULL);
	umad_addr_dump(NULL);
}

TEST(dumps_go_to_stderr)
{
	const char *text;

	umad.addr.lid = htobe16(77);
	text = stderr_of(dump_all);
	assert_non_null(strstr(text, "agent 3"));
	assert_non_null(strstr(text, "lid 77"));
	assert_non_null(strstr(text, "retries 5 length 320"));
	assert_non_null(strstr(text, "fe80::1"));
	/* the old layout has no such member */
	packet_set_layout(false);
	assert_null(strstr(stderr_of(dump_all), "pkey_index"));
	packet_set_layout(true);
	assert_non_null(strstr(stderr_of(dump_all), "pkey_index 0"));
}
