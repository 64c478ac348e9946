/* SPDX-License-Identifier: BSD-2-Clause */

#include "captured_output.h"
#include "fake.h"
#include "kept_log.h"
#include "log.h"
#include "packet.h"
#include "test.h"

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
	umad_release_ca(&ca);
}

static void get_another_ca(void)
{
	umad_ca_t ca;

	assert_int_equal(umad_get_ca("mlx5_9", &ca), -ENODEV);
}

static void get_another_port(void)
{
	umad_port_t port;

	assert_int_equal(umad_get_port("mlx5_0", 7, &port), -EIO);
}

static void open_with_an_old_abi(void)
{
	fake_file("/sys/class/infiniband_mad/abi_version", "0\n");
	assert_int_equal(umad_open_port("mlx5_1", 1), -EOPNOTSUPP);
}

static void open_without_abi(void)
{
	fake_remove("/sys/class/infiniband_mad");
	assert_int_equal(umad_open_port("mlx5_1", 1), -EOPNOTSUPP);
}

/* Two ports that are not chosen, and why; and the one that is. */
#define CHOICE                                                                            \
	"libibumad: mlx5_0 port 1: state 1, physical state 3, link layer InfiniBand\n"    \
	"libibumad: mlx5_1 port 1: state 4, physical state 5, link layer InfiniBand\n"    \
	"libibumad: mlx5_2 port 1: state (No such file or directory), physical state 5, " \
	"link layer Ethernet, no SMPs\n"                                                  \
	"libibumad: usb0 is left out: its node type cannot be used (No such device)\n"

#define NO_PORT_2(ca)                                                  \
	"libibumad: " ca " port 2: state (No such file or directory)," \
	" physical state (No such file or directory), link layer not known\n"

/* The beginning of what is said at level 1. Level 0 says nothing. */
TEST(a_call_says_what_it_had_and_what_it_took)
{
	static const struct {
		void (*call)(void);
		const char *text;
	} rows[] = {
		{fail_to_look, "libibumad: cannot look for a port: Too many open files\n"},
		{open_another,
		 "libibumad: no port to open for mlx5_9 port 1: No such device\n"},
		{fail_to_open, "libibumad: /dev/infiniband/umad0 cannot be opened: "
			       "Permission denied\n"},
		/* what the caller named is not chosen */
		{open_and_close, "libibumad: mlx5_0 port 1 is open as /dev/infiniband/umad0, "
				 "handle "},
		{open_any, CHOICE "libibumad: mlx5_1 port 1 is chosen for (any) port 0\n"
				  "libibumad: mlx5_1 port 1 is open as "},
		{get_any_ca, CHOICE "libibumad: mlx5_1 port 1 is chosen for (any) port 0\n"},
		{open_a_second_port, NO_PORT_2("mlx5_0") NO_PORT_2("mlx5_1") NO_PORT_2(
					     "mlx5_2") "libibumad: usb0 is left out: its node "
						       "type cannot be used (No such device)\n"
						       "libibumad: no port is chosen for (any) "
						       "port 2: No such device\n"},
		{get_another_ca, "libibumad: device mlx5_9 cannot be read: No such device\n"},
		{get_another_port,
		 "libibumad: /sys/class/infiniband/mlx5_0/ports/7/lid cannot be read: "
		 "No such file or directory\n"
		 "libibumad: port 7 of device mlx5_0 cannot be read: No such file or "
		 "directory\n"},
		{open_with_an_old_abi,
		 "libibumad: the kernel's user_mad ABI is 0, the oldest supported is 5\n"},
	};
	char name[] = "mlx5_0";

	for (int i = 0; i < 3; i++) {
		name[5] = (char)('0' + i);
		fake_ca(name);
		fake_port(name, 1, (uint32_t)i + 1);
	}
	fake_file("/sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
	fake_file("/sys/class/infiniband/mlx5_0/ports/1/phys_state", "3: Disabled\n");
	fake_remove("/sys/class/infiniband/mlx5_2/ports/1/state");
	fake_file("/sys/class/infiniband/mlx5_2/ports/1/link_layer", "Ethernet\n");
	fake_file("/sys/class/infiniband/mlx5_2/ports/1/cap_mask", "0x00000400\n");
	fake_dir("/sys/class/infiniband/usb0");
	for (int level = 0; level < 2; level++) {
		umad_debug(level);
		fake_umad(0, "mlx5_0", 1);
		fake_umad(1, "mlx5_1", 1);
		for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
			const char *said = stderr_of(rows[i].call);

			if (level ? strstr(said, rows[i].text) != said : *said != '\0')
				fail_msg("said: %s\nnot: %s", said, level ? rows[i].text : "");
		}
	}
	/* a kernel without user_mad is warned of */
	umad_debug(0);
	assert_non_null(strstr(stderr_of(open_without_abi), "abi_version"));
}

/* --- dumps ----------------------------------------------------------------------- */

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
