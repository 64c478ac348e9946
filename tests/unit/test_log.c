/* SPDX-License-Identifier: BSD-2-Clause */

#include "captured_output.h"
#include "fake.h"
#include "kept_log.h"
#include "log.h"
#include "packet.h"
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static int setup(void)
{
	end_log();
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

#define WARNING "libibumad: something is wrong\n"
#define INFO    "libibumad: something happened\n"

TEST(levels_choose_what_is_said)
{
	assert_string_equal(stderr_of(say_everything), WARNING);
	assert_int_equal(umad_debug(1), 1);
	assert_string_equal(stderr_of(say_everything), WARNING INFO);
	/* a negative level asks for it */
	assert_int_equal(umad_debug(-1), 1);
	assert_int_equal(umad_debug(2), 2);
	assert_string_equal(stderr_of(say_everything), WARNING INFO "libibumad: a packet\n");
	assert_int_equal(umad_debug(5), 5);
	assert_int_equal(umad_debug(0), 0);
}

TEST(a_hook_takes_what_stderr_would_get_and_leaves_errno_alone)
{
	int user;

	keep_log(0);
	umad_set_log_hook(keep_message, &user);
	errno = EDOM;
	assert_string_equal(stderr_of(say_everything), "");
	assert_int_equal(kept.count, 1);
	assert_int_equal(kept.level, UMAD_LOG_WARNING);
	assert_string_equal(kept.text, "something is wrong");
	assert_ptr_equal(kept.user, &user);
	umad_debug(2);
	errno = EDOM;
	say_everything();
	assert_int_equal(errno, EDOM);
	assert_int_equal(kept.count, 4);
	assert_int_equal(kept.level, UMAD_LOG_DEBUG);
	end_log();
	assert_string_equal(stderr_of(say_everything), WARNING);
	assert_int_equal(kept.count, 4);
}

TEST(a_message_is_one_line_that_may_be_cut)
{
	char text[2000];

	keep_log(1);
	log_info("device %s", "bad\nlibibumad: forged\t\x1b[31m");
	assert_string_equal(kept.text, "device bad?libibumad: forged??[31m");
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_warning("%s", text);
	assert_in_range(strlen(kept.text), 100, 1000);
}

/* --- what an opening says ------------------------------------------------------- */

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
	assert_int_equal(umad_close_port(umad_open_port("mlx5_0", 1)), 0);
}

static void open_with_an_old_abi(void)
{
	fake_file("/sys/class/infiniband_mad/abi_version", "0\n");
	assert_int_equal(umad_open_port(NULL, 0), -EOPNOTSUPP);
}

static void open_without_abi(void)
{
	fake_remove("/sys/class/infiniband_mad");
	assert_int_equal(umad_open_port(NULL, 0), -EOPNOTSUPP);
}

TEST(an_opening_says_what_it_found)
{
	static const struct {
		void (*open)(void);
		const char *text;
	} rows[] = {
		{fail_to_look, "libibumad: cannot look for a port: Too many open files\n"},
		{open_another,
		 "libibumad: no port to open for mlx5_9 port 1: No such device\n"},
		{fail_to_open, "libibumad: /dev/infiniband/umad0 cannot be opened: "
			       "Permission denied\n"},
		{open_and_close, "libibumad: mlx5_0 port 1 is open as /dev/infiniband/umad0, "
				 "handle "},
		{open_with_an_old_abi, "libibumad: mlx5_0 port 1: state 4, physical state 5, "
				       "link layer InfiniBand\n"
				       "libibumad: mlx5_0 port 1 is chosen for (any) port 0\n"
				       "libibumad: the kernel's user_mad ABI is 0, "
				       "the oldest supported is 5\n"},
	};

	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	for (int level = 0; level < 2; level++) {
		umad_debug(level);
		fake_umad(0, "mlx5_0", 1);
		fake_file("/sys/class/infiniband_mad/abi_version", "5\n");
		for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
			const char *said = stderr_of(rows[i].open);

			assert_ptr_equal(level ? strstr(said, rows[i].text) : said, said);
			assert_true(level || !*said);
		}
	}
	/* a kernel without user_mad is warned of */
	umad_debug(0);
	assert_non_null(strstr(stderr_of(open_without_abi), "abi_version"));
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

/* --- threads and children ------------------------------------------------------- */

static void silent(enum umad_log_level level, const char *text, void *user)
{
	(void)level;
	(void)text;
	assert_null(user);
}

static void count(enum umad_log_level level, const char *text, void *user)
{
	assert_int_equal(level, UMAD_LOG_INFO);
	assert_string_equal(text, "many times");
	atomic_fetch_add((atomic_int *)user, 1);
}

struct hooks_of_a_thread {
	atomic_bool done;
	atomic_int counted;
};

static void *set_hooks(void *arg)
{
	struct hooks_of_a_thread *hooks = arg;

	while (!atomic_load(&hooks->done)) {
		umad_set_log_hook(silent, NULL);
		umad_set_log_hook(count, &hooks->counted);
	}
	return NULL;
}

/* A hook never gets the argument of another hook; whatever a thread of the parent was doing. */
TEST(hooks_may_be_set_while_messages_go_out_and_children_start)
{
	struct hooks_of_a_thread hooks = {false, 0};
	pthread_t thread;
	int status;
	pid_t child;

	umad_debug(1);
	umad_set_log_hook(silent, NULL);
	assert_int_equal(pthread_create(&thread, NULL, set_hooks, &hooks), 0);
	for (int i = 0; i < 1000; i++) {
		log_info("many times");
		if (i % 3)
			continue;
		child = fork();
		if (!child) {
			alarm(60);
			log_info("many times");
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	atomic_store(&hooks.done, true);
	pthread_join(thread, NULL);
	assert_in_range(atomic_load(&hooks.counted), 0, 1000);
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
