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

/* Opens a port, reads a device, or reads a port. */
enum call {
	OPEN,
	GET_CA,
	GET_PORT
};

static int make(enum call call, const char *ca_name, int portnum)
{
	umad_port_t port;
	umad_ca_t ca;
	int ret;

	switch (call) {
	case OPEN:
		ret = umad_open_port(ca_name, portnum);
		return ret < 0 ? ret : umad_close_port(ret);
	case GET_CA:
		ret = umad_get_ca(ca_name, &ca);
		umad_release_ca(&ca);
		return ret;
	default:
		ret = umad_get_port(ca_name, portnum, &port);
		umad_release_port(&port);
		return ret;
	}
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
static const struct {
	enum call call;
	const char *ca_name;
	int portnum;
	int fault, open_error; /* errno of the first system call, and of opening umad0 */
	const char *abi;
	int result;
	const char *text;
} rows[] = {
	{OPEN, "mlx5_0", 1, EMFILE, 0, "5", -EIO,
	 "libibumad: cannot look for a port: Too many open files\n"},
	{OPEN, "mlx5_9", 1, 0, 0, "5", -ENODEV,
	 "libibumad: no port to open for mlx5_9 port 1: No such device\n"},
	{OPEN, "mlx5_0", 1, 0, EACCES, "5", -EIO,
	 "libibumad: /dev/infiniband/umad0 cannot be opened: Permission denied\n"},
	/* what the caller named is not chosen */
	{OPEN, "mlx5_0", 1, 0, 0, "5", 0,
	 "libibumad: mlx5_0 port 1 is open as /dev/infiniband/umad0, handle "},
	{OPEN, NULL, 0, 0, 0, "5", 0,
	 CHOICE "libibumad: mlx5_1 port 1 is chosen for (any) port 0\n"
		"libibumad: mlx5_1 port 1 is open as "},
	{GET_CA, NULL, 0, 0, 0, "5", 0,
	 CHOICE "libibumad: mlx5_1 port 1 is chosen for (any) port 0\n"},
	{GET_PORT, "mlx5_1", 0, 0, 0, "5", 0,
	 "libibumad: mlx5_1 port 1: state 4, physical state 5, link layer InfiniBand\n"
	 "libibumad: mlx5_1 port 1 is chosen for mlx5_1 port 0\n"},
	{GET_PORT, "mlx5_9", 0, 0, 0, "5", -ENODEV,
	 "libibumad: mlx5_9 is left out: its node type cannot be used (No such device)\n"
	 "libibumad: no port is chosen for mlx5_9 port 0: No such device\n"},
	{OPEN, NULL, 2, 0, 0, "5", -ENODEV,
	 NO_PORT_2("mlx5_0") NO_PORT_2("mlx5_1") NO_PORT_2(
		 "mlx5_2") "libibumad: usb0 is left out: its node type cannot be used (No such "
			   "device)\n"
			   "libibumad: no port is chosen for (any) port 2: No such device\n"},
	{GET_CA, "mlx5_9", 0, 0, 0, "5", -ENODEV,
	 "libibumad: device mlx5_9 cannot be read: No such device\n"},
	{GET_PORT, "mlx5_0", 7, 0, 0, "5", -EIO,
	 "libibumad: /sys/class/infiniband/mlx5_0/ports/7/lid cannot be read: No such file or "
	 "directory\n"
	 "libibumad: port 7 of device mlx5_0 cannot be read: No such file or directory\n"},
	{OPEN, "mlx5_1", 1, 0, 0, "0", -EOPNOTSUPP,
	 "libibumad: the kernel's user_mad ABI is 0, the oldest supported is 5\n"},
};

TEST(a_call_says_what_it_had_and_what_it_took)
{
	char name[] = "mlx5_0";
	const char *said;

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
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(*rows); i++) {
		const int level = i % 2;

		umad_debug(level);
		fake_file("/sys/class/infiniband_mad/abi_version", "%s\n", rows[i / 2].abi);
		fake_device("umad0")->open_error = rows[i / 2].open_error;
		fake_fail_call(rows[i / 2].fault != 0, rows[i / 2].fault);
		capture_output(stderr);
		assert_int_equal(
			make(rows[i / 2].call, rows[i / 2].ca_name, rows[i / 2].portnum),
			rows[i / 2].result);
		said = captured_output();
		if (level ? strstr(said, rows[i / 2].text) != said : *said != '\0')
			fail_msg("said: %s\nnot: %s", said, level ? rows[i / 2].text : "");
	}
	/* nothing can be chosen, for a device and for a port */
	fake_remove("/sys/class/infiniband");
	for (int call = GET_CA; call <= GET_PORT; call++) {
		capture_output(stderr);
		assert_int_equal(make((enum call)call, NULL, 0), -ENODEV);
		said = captured_output();
		assert_non_null(strstr(said, "no port is chosen for (any) port 0: No such"));
		assert_non_null(strstr(said, "device (any) cannot be read: No such device"));
	}
	/* a kernel without user_mad is warned of */
	umad_debug(0);
	fake_remove("/sys/class/infiniband_mad");
	capture_output(stderr);
	assert_int_equal(make(OPEN, "mlx5_1", 1), -EOPNOTSUPP);
	assert_non_null(strstr(captured_output(), "abi_version"));
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
