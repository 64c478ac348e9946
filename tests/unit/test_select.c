/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"
#include "devices.h"
#include "test.h"

#include <limits.h>

/* Sets an attribute of a port that fake_port() made. */
static void set(const char *ca_name, int portnum, const char *attribute, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d/%s", ca_name, portnum,
		 attribute);
	fake_file(path, "%s\n", text);
}

static void port_is(const char *ca_name, int portnum, const char *state, const char *phys)
{
	fake_port(ca_name, portnum, 1);
	set(ca_name, portnum, "state", state);
	set(ca_name, portnum, "phys_state", phys);
}

#define ACTIVE_PORT "4: ACTIVE", "5: LinkUp"
#define LINKED      "2: INIT", "5: LinkUp"
#define POLLING     "1: DOWN", "2: Polling"
#define DISABLED    "1: DOWN", "3: Disabled"

/* The ports that have_port() made: each with the umad device of its index. */
static struct port_choice owners[8];
static int owner_count;

/* The machine begins without ports, and the list is empty. */
static int setup(void)
{
	owner_count = 0;
	if (fake_setup())
		return -1;
	fake_file("/sys/class/infiniband_mad/abi_version", "5\n");
	return 0;
}

FIXTURE(setup, fake_teardown);

/* A port, its device, and a umad device for it. */
static void have_port(const char *ca_name, int portnum, const char *state, const char *phys)
{
	struct port_choice *owner = &owners[owner_count];
	bool known = false;
	int i;

	for (i = 0; i < owner_count; i++) {
		known |= !strcmp(owners[i].ca_name, ca_name);
		if (!strcmp(owners[i].ca_name, ca_name) && owners[i].portnum == portnum)
			break;
	}
	if (!known)
		fake_ca(ca_name);
	port_is(ca_name, portnum, state, phys);
	if (i < owner_count)
		return;
	assert_true(owner_count < 8);
	snprintf(owner->ca_name, sizeof(owner->ca_name), "%s", ca_name);
	owner->portnum = portnum;
	fake_umad(owner_count++, ca_name, portnum);
}

/* --- rows ----------------------------------------------------------------------- */

/*
 * A row has a sentence and a line of steps:
 *
 *	CA/PORT WORD ...	the port is active, linked, polling or disabled; then
 *				ethernet, ib, no-layer, cap=HEX, or without a file: no-cap,
 *				no-state, no-phys, no-gids, no-pkeys, no-sl or no-rate; or it
 *				is gone
 *	CA WORD			a device without ports (ca); the device is a switch, router
 *				or rnic, has no-guid, or is gone
 *	open NAME > RESULT	NAME is CA, CA/PORT, any or any/PORT. select_port(),
 *				umad_open_port() and umad_get_port() choose this port, or
 *				fail with this errno.
 *	smi NAME > RESULT	likewise select_port() and umad_open_smi_port()
 */
struct row {
	const char *behaviour, *line;
};

/* The errors in the rows. */
static const char *error_name(int error)
{
	switch (error) {
	case -ENODEV:
		return "ENODEV";
	case -EINVAL:
		return "EINVAL";
	case -ENOENT: /* public calls store it in errno */
	case -EIO:
		return "EIO";
	default:
		return strerror(-error);
	}
}

/* The port that a call opened, or the error. */
static const char *opened_by(int (*open_port)(const char *, int), const char *ca_name,
			     int portnum)
{
	static char text[256];
	char name[32];
	int fd;

	errno = 0;
	fd = open_port(ca_name, portnum);
	if (fd < 0) {
		assert_int_equal(errno, fd == -EIO ? ENOENT : -fd);
		return error_name(fd);
	}
	text[0] = '\0';
	for (int i = 0; i < owner_count; i++) {
		snprintf(name, sizeof(name), "umad%d", i);
		if (!fake_device(name)->opened)
			continue;
		assert_string_equal(text, "");
		snprintf(text, sizeof(text), "%s/%d", owners[i].ca_name, owners[i].portnum);
	}
	assert_int_equal(umad_close_port(fd), 0);
	return text;
}

static const char *found_by_get_port(const char *ca_name, int portnum)
{
	static char text[256];
	umad_port_t port;
	int ret;

	errno = 0;
	ret = umad_get_port(ca_name, portnum, &port);
	if (ret) {
		assert_int_equal(errno, ret == -EIO ? ENOENT : -ret);
		return error_name(ret);
	}
	snprintf(text, sizeof(text), "%s/%d", port.ca_name, port.portnum);
	umad_release_port(&port);
	return text;
}

static const char *selected(const char *ca_name, int portnum, bool smi_only)
{
	static char text[256];
	struct port_choice choice;
	int ret = select_port(ca_name, portnum, smi_only, &choice);

	if (ret)
		return error_name(ret);
	snprintf(text, sizeof(text), "%s/%d", choice.ca_name, choice.portnum);
	return text;
}

static const char *line_of_row;

static void expect_choice(const char *call, const char *name, const char *seen,
			  const char *wanted)
{
	if (strcmp(seen, wanted) != 0)
		fail_msg("\"%s\"\nat \"%s > %s\": %s: %s", line_of_row, name, wanted, call,
			 seen);
}

static void choose(const char *name, bool smi, const char *wanted)
{
	char copy[32], *slash, *ca_name = copy;
	int portnum = 0;

	snprintf(copy, sizeof(copy), "%s", name);
	slash = strchr(copy, '/');
	if (slash) {
		*slash = '\0';
		portnum = atoi(slash + 1);
	}
	if (!strcmp(copy, "any"))
		ca_name = NULL;
	expect_choice("select_port()", name, selected(ca_name, portnum, smi), wanted);
	if (smi) {
		expect_choice("umad_open_smi_port()", name,
			      opened_by(umad_open_smi_port, ca_name, portnum), wanted);
		return;
	}
	expect_choice("umad_open_port()", name, opened_by(umad_open_port, ca_name, portnum),
		      wanted);
	expect_choice("umad_get_port()", name, found_by_get_port(ca_name, portnum), wanted);
}

static void change_port(const char *ca_name, int portnum, const char *word)
{
	static const struct {
		const char *word, *attribute, *text; /* NULL: the file is removed */
	} words[] = {
		{"ethernet", "/link_layer", "Ethernet"},
		{"ib", "/link_layer", "IB"},
		{"no-layer", "/link_layer", NULL},
		{"no-state", "/state", NULL},
		{"no-phys", "/phys_state", NULL},
		{"no-cap", "/cap_mask", NULL},
		{"no-gids", "/gids", NULL},
		{"no-pkeys", "/pkeys", NULL},
		{"no-sl", "/sm_sl", NULL},
		{"no-rate", "/rate", NULL},
		{"gone", "", NULL},
	};
	size_t i;
	char path[128];

	if (!strcmp(word, "active"))
		have_port(ca_name, portnum, ACTIVE_PORT);
	else if (!strcmp(word, "linked"))
		have_port(ca_name, portnum, LINKED);
	else if (!strcmp(word, "polling"))
		have_port(ca_name, portnum, POLLING);
	else if (!strcmp(word, "disabled"))
		have_port(ca_name, portnum, DISABLED);
	else if (!strncmp(word, "cap=", 4)) {
		snprintf(path, sizeof(path), "0x%s", word + 4);
		set(ca_name, portnum, "cap_mask", path);
	} else {
		for (i = 0; strcmp(word, words[i].word) != 0;)
			assert_true(++i < sizeof(words) / sizeof(words[0]));
		if (words[i].text) {
			set(ca_name, portnum, words[i].attribute + 1, words[i].text);
			return;
		}
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d%s", ca_name,
			 portnum, words[i].attribute);
		fake_remove(path);
	}
}

static void change_ca(const char *ca_name, const char *word)
{
	static const char *const types[] = {"1: CA", "2: switch", "3: router", "4: RNIC"};
	static const char *const words[] = {"ca", "switch", "router", "rnic"};
	char path[128];
	size_t i;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s", ca_name);
	if (!strcmp(word, "gone") || !strcmp(word, "no-guid")) {
		strcat(path, *word == 'n' ? "/node_guid" : "");
		fake_remove(path);
		return;
	}
	for (i = 0; strcmp(word, words[i]) != 0;)
		assert_true(++i < 4);
	if (!i)
		fake_ca(ca_name);
	strcat(path, "/node_type");
	fake_file(path, "%s\n", types[i]);
}

static void run_line(const char *line)
{
	char copy[512], *rest = copy, *step, *subject, *word, *slash;

	line_of_row = line;
	assert_true(strlen(line) < sizeof(copy));
	strcpy(copy, line);
	while ((step = strsep(&rest, ";"))) {
		subject = strtok(step, " ");
		word = strtok(NULL, " ");
		slash = strchr(subject, '/');
		if (!strcmp(subject, "open") || !strcmp(subject, "smi")) {
			assert_string_equal(strtok(NULL, " "), ">");
			choose(word, *subject == 's', strtok(NULL, " "));
		} else if (slash) {
			*slash = '\0';
			for (; word; word = strtok(NULL, " "))
				change_port(subject, atoi(slash + 1), word);
		} else {
			change_ca(subject, word);
		}
	}
}

static void run_row(const struct row *row)
{
	run_line(row->line);
}

static const struct row rows[] = {
	{"without a device there is no port",
	 "open any > ENODEV; open any/1 > ENODEV; open mlx5_0 > ENODEV; smi any > ENODEV"},
	{"a port that is named in full is taken as it is",
	 "mlx5_0/1 disabled cap=400; rxe0/1 active ethernet; open mlx5_0/1 > mlx5_0/1; "
	 "open rxe0/1 > rxe0/1; smi mlx5_0/1 > mlx5_0/1"},
	{"of a device's ports the active one is taken",
	 "mlx5_0/1 linked; mlx5_0/2 active; mlx5_0/3 active; open mlx5_0 > mlx5_0/2"},
	{"without an active port the one whose link is up is taken",
	 "mlx5_0/1 polling; mlx5_0/2 linked; mlx5_0/3 linked; open mlx5_0 > mlx5_0/2"},
	{"without a link the first port that is not disabled is taken",
	 "mlx5_0/1 disabled; mlx5_0/2 polling; mlx5_0/3 polling; open mlx5_0 > mlx5_0/2"},
	{"each call looks at the ports again",
	 "mlx5_0/1 polling; mlx5_0/2 linked; mlx5_0/3 active; open mlx5_0 > mlx5_0/3; "
	 "mlx5_0/3 disabled; open mlx5_0 > mlx5_0/2; mlx5_0/2 polling; "
	 "open mlx5_0 > mlx5_0/1; mlx5_0/1 disabled; open mlx5_0 > mlx5_0/2; "
	 "mlx5_0/2 disabled; open mlx5_0 > ENODEV; open any > ENODEV; smi any > ENODEV"},
	{"disabled ports are not usable",
	 "mlx5_0 ca; open mlx5_0 > ENODEV; mlx5_0/1 disabled; open mlx5_0 > ENODEV; "
	 "open any > ENODEV"},
	/* a linked Ethernet port has no priority over a polling InfiniBand port before it */
	{"an Ethernet port counts only as not disabled",
	 "rxe0/1 active ethernet; rxe0/2 linked; open rxe0 > rxe0/2; rxe0/2 gone; "
	 "open rxe0 > rxe0/1; rxe0/1 linked ethernet; open any > rxe0/1"},
	{"a port without link_layer is InfiniBand",
	 "ibsim0/1 polling; ibsim0/2 active no-layer; open ibsim0 > ibsim0/2; "
	 "ibsim0/2 active ib; open ibsim0 > ibsim0/2"},
	{"the first device with an active port wins",
	 "mlx5_0/1 linked; mlx5_1/1 polling; mlx5_1/2 active; mlx5_2/1 active; "
	 "open any > mlx5_1/2; open mlx5_0 > mlx5_0/1; smi any > mlx5_1/2"},
	{"without any active port the first usable device wins",
	 "mlx5_0/1 disabled; mlx5_1/1 polling; mlx5_2/1 linked; open any > mlx5_1/1"},
	{"a port number restricts the choice",
	 "mlx5_0/1 active; mlx5_1/1 active; mlx5_1/2 polling; mlx5_2/2 active; "
	 "open any/2 > mlx5_2/2; mlx5_2/2 linked; open any/2 > mlx5_1/2; mlx5_2/2 disabled; "
	 "open any/2 > mlx5_1/2; open any/3 > ENODEV"},
	{"a port number needs a port that is not disabled",
	 "mlx5_0/2 polling; rxe0/1 disabled ethernet; open any/1 > ENODEV; "
	 "open any/2 > mlx5_0/2; rxe0/1 polling; open any/1 > rxe0/1"},
	{"by number an Ethernet port is the last choice",
	 "a/1 active ethernet; open any/1 > a/1; b/1 polling; open any/1 > b/1; "
	 "c/1 active ethernet; open any/1 > b/1; b/1 disabled; open any/1 > a/1; "
	 "open any > a/1"},
	{"for SMPs an Ethernet port is the last choice",
	 "a/1 active ethernet; smi any > a/1; smi a > a/1; b/1 polling; smi any > b/1; "
	 "open any > a/1; a/2 polling; smi a > a/2; open a > a/1"},
	{"a switch is its port 0",
	 "sw0/0 polling; sw0 switch; open sw0 > sw0/0; open any > sw0/0; open any/1 > sw0/0; "
	 "smi sw0 > sw0/0; sw0/0 active; smi sw0 > sw0/0; sw0/0 polling cap=400; "
	 "smi sw0 > ENODEV; open sw0 > sw0/0"},
	{"a router is judged as a CA is",
	 "mlx5_0/1 polling; mlx5_0/2 active; mlx5_0 router; open mlx5_0 > mlx5_0/2; "
	 "open any > mlx5_0/2"},
	{"an RNIC is chosen only by its name",
	 "iw0/1 active; iw0 rnic; open iw0 > iw0/1; open any > ENODEV; open any/1 > ENODEV; "
	 "mlx5_0/1 polling; open any > mlx5_0/1"},
	{"an SMI port must permit a subnet manager",
	 "mlx5_0/1 active cap=400; mlx5_0/2 polling; smi mlx5_0 > mlx5_0/2; "
	 "smi any > mlx5_0/2; smi any/1 > ENODEV; smi mlx5_0/1 > mlx5_0/1; "
	 "open mlx5_0 > mlx5_0/1"},
	{"of many capabilities only one matters for an SMI port",
	 "mlx5_0/1 active cap=2651ec48; mlx5_1/1 linked; open any > mlx5_0/1; "
	 "smi any > mlx5_1/1; smi any/1 > mlx5_1/1; smi mlx5_0 > ENODEV; "
	 "mlx5_0/1 active cap=2651e848; smi any > mlx5_0/1"},
	{"a port whose attributes cannot be read is not chosen",
	 "mlx5_0/1 active no-state; open mlx5_0 > ENODEV; mlx5_0/1 polling no-phys; "
	 "open mlx5_0 > ENODEV; mlx5_0/1 polling no-cap; smi mlx5_0 > ENODEV"},
	{"a negative port is refused",
	 "mlx5_0/1 active; open mlx5_0/-1 > EINVAL; open any/-1 > EINVAL; "
	 "open any/-2147483648 > EINVAL; smi any/-1 > EINVAL"},
	{"a device that cannot be read hides no other one",
	 "a/1 active no-gids; open any > EIO; b/1 polling; open any > b/1; open any/1 > b/1; "
	 "smi any > b/1; b/1 disabled; a/1 active no-pkeys; open any > EIO; b/1 active; "
	 "open any > b/1; a/1 active no-sl; open any > b/1; a/1 active no-rate; open any > "
	 "b/1; "
	 "a no-guid; a/1 active; open any > b/1"},
	{"a device that can be read in part is the last choice",
	 "a/1 active; a/2 active no-gids; open any > a/1; open a > a/1; b/1 polling; "
	 "open any > b/1; open any/1 > b/1; open a > a/1; a/1 active no-gids; open a > EIO; "
	 "a/2 polling; open a > a/2"},
};

TEST_ROWS(run_row, rows);

/* --- names and attributes of any kind ------------------------------------------- */

static void chooses(const char *ca_name, int portnum, const char *wanted)
{
	assert_string_equal(selected(ca_name, portnum, false), wanted);
}

/* The choice does not look at the device. */
TEST(a_port_named_in_full_is_chosen_although_it_does_not_exist)
{
	chooses("mlx5_0", 1, "mlx5_0/1");
	chooses("mlx5_0", 300, "mlx5_0/300");
	assert_string_equal(opened_by(umad_open_port, "mlx5_0", 1), "ENODEV");
}

TEST(a_device_with_more_ports_than_umad_get_ca_can_hold_is_chosen)
{
	run_line("mlx5_0/12 active; open mlx5_0 > mlx5_0/12; open any > mlx5_0/12; "
		 "open any/12 > mlx5_0/12; mlx5_1/1 polling; open any > mlx5_1/1");
}

/* The opposite of the order of names. */
static bool greater(const char *name, const char *other)
{
	return strcmp(name, other) > 0;
}

TEST(devices_are_taken_in_the_order_of_the_directory)
{
	run_line("mlx5_2/1 active; mlx5_10/1 active; open any > mlx5_10/1; open any/1 > "
		 "mlx5_10/1");
	fake_order(greater);
	run_line(
		"open any > mlx5_2/1; open any/1 > mlx5_2/1; smi any > mlx5_2/1; "
		"mlx5_2/1 linked; open any > mlx5_10/1; mlx5_10/1 linked; open any > mlx5_2/1");
	fake_order(NULL);
}

TEST(names_that_cannot_be_devices_are_no_device)
{
	static const char *const names[] = {"", "..", "../x", "a/b",
					    "a_name_that_is_far_too_long"};
	struct port_choice choice;
	size_t i;

	fake_remove("/sys/class/infiniband_mad");
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		chooses(names[i], 1, "ENODEV");
		assert_int_equal(select_ca(names[i], &choice), -ENODEV);
		assert_int_equal(umad_open_port(names[i], 1), -EOPNOTSUPP);
	}
	fake_umad(0, "mlx5_0", 1);
	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_int_equal(umad_open_port(names[i], 1), -ENODEV);
	/* only the ABI version was read: a failed open, then open, read, close */
	assert_int_equal(fake_calls(), i + 3 * i);
}

TEST(only_infiniband_by_its_full_name_is_infiniband)
{
	static const char *const others[] = {"Ethernet",
					     "InfiniBandX",
					     "Infini",
					     "infiniband",
					     "InfiniBand and nineteen more letters",
					     "\xff\xfe"};

	run_line("mlx5_0/1 active; mlx5_0/2 linked");
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		set("mlx5_0", 1, "link_layer", others[i]);
		run_line("open mlx5_0 > mlx5_0/2");
	}
	set("mlx5_0", 1, "link_layer", "InfiniBand");
	run_line("open mlx5_0 > mlx5_0/1");
}

TEST(a_state_that_makes_no_sense_is_not_chosen)
{
	static const char *const contents[] = {"", "ACTIVE", "-4", "\xff\xfe",
					       "99999999999999999999"};

	run_line("mlx5_1/1 polling");
	for (size_t i = 0; i < sizeof(contents) / sizeof(*contents); i++) {
		run_line("mlx5_0/1 active");
		set("mlx5_0", 1, "state", contents[i]);
		run_line("open mlx5_0 > ENODEV; open any > mlx5_1/1");
		run_line("mlx5_0/1 polling");
		set("mlx5_0", 1, "phys_state", contents[i]);
		run_line("open mlx5_0 > ENODEV; open any > mlx5_1/1");
	}
}

/* A device whose port has these states. */
static void slim_ca(const char *ca_name, const char *state, const char *phys)
{
	fake_ca(ca_name);
	port_is(ca_name, 1, state, phys);
}

TEST(there_is_no_limit_to_the_devices_to_choose_from)
{
	char name[UMAD_CA_NAME_LEN];

	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "mlx5_%03d", i);
		slim_ca(name, DISABLED);
	}
	chooses(NULL, 0, "ENODEV");
	slim_ca("mlx5_198", POLLING);
	chooses(NULL, 0, "mlx5_198/1");
	slim_ca("mlx5_199", ACTIVE_PORT);
	chooses(NULL, 0, "mlx5_199/1");
	chooses(NULL, 1, "mlx5_199/1");
}

/* --- faults --------------------------------------------------------------------- */

static void vanish(const char *path)
{
	if (!strcmp(path, "/sys/class/infiniband/mlx5_0/ports/1/state"))
		fake_remove("/sys/class/infiniband/mlx5_0");
}

TEST(a_device_that_vanishes_meanwhile_is_not_chosen)
{
	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, ACTIVE_PORT);
	fake_ca("mlx5_1");
	port_is("mlx5_1", 1, POLLING);
	fake_before_open(vanish);
	chooses(NULL, 0, "mlx5_1/1");
	chooses("mlx5_0", 0, "ENODEV");
}

TEST(a_failure_to_list_the_devices_is_told)
{
	fake_ca("mlx5_0");
	fake_fail_call(1, EACCES);
	chooses(NULL, 0, strerror(EACCES));
	fake_fail_malloc(1);
	chooses(NULL, 0, strerror(ENOMEM));
}

TEST(every_call_may_fail_and_the_next_best_is_chosen)
{
	struct port_choice choice;
	unsigned n;
	int ret;

	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, ACTIVE_PORT);
	fake_ca("mlx5_1");
	port_is("mlx5_1", 1, ACTIVE_PORT);
	for (n = 1;; n++) {
		fake_fail_call(n, EACCES);
		ret = select_port(NULL, 0, true, &choice);
		if (!fake_failed())
			break;
		assert_int_equal(ret, n == 1 ? -EACCES : 0);
	}
	fake_fail_call(0, 0);
	assert_int_equal(ret, 0);
	assert_string_equal(choice.ca_name, "mlx5_0");
	/*
	 * the list; type, ports, states, capability mask and link layer of the first device;
	 * and its GUIDs, ports, 9 numbers, a link layer, a GID and a P_Key
	 */
	assert_int_equal(n, 1 + 2 + 1 + 4 * 2 + 2 * 2 + 1 + 11 * 2 + 1);
}

TEST(every_call_of_an_opening_may_fail)
{
	unsigned n;
	int fd;

	run_line("mlx5_0/1 active");
	for (n = 1;; n++) {
		fake_fail_call(n, EACCES);
		errno = 0;
		fd = umad_open_port(NULL, 0);
		if (!fake_failed())
			break;
		if (fd >= 0) {
			assert_int_equal(umad_close_port(fd), 0);
			continue;
		}
		assert_true(fd == -EOPNOTSUPP || fd == -ENODEV || fd == -EINVAL || fd == -EIO);
		assert_int_equal(errno, fd == -EIO ? EACCES : -fd);
	}
	fake_fail_call(0, 0);
	assert_true(n > 15);
	assert_int_equal(umad_close_port(fd), 0);
	run_line("open any > mlx5_0/1");
}

/* --- a device alone -------------------------------------------------------------- */

TEST(a_device_alone_is_chosen_likewise)
{
	struct port_choice choice;

	assert_int_equal(select_ca(NULL, &choice), -ENODEV);
	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, POLLING);
	fake_ca("mlx5_1");
	port_is("mlx5_1", 2, ACTIVE_PORT);
	set("mlx5_1", 2, "cap_mask", "0x400");
	assert_int_equal(select_ca(NULL, &choice), 0);
	assert_string_equal(choice.ca_name, "mlx5_1");
	assert_int_equal(select_ca("mlx5_0", &choice), 0);
	assert_string_equal(choice.ca_name, "mlx5_0");
	assert_int_equal(choice.portnum, 0);
}

TEST(a_device_alone_needs_a_usable_port_only_when_it_is_not_named)
{
	struct port_choice choice;

	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, DISABLED);
	assert_int_equal(select_ca(NULL, &choice), -ENODEV);
	assert_int_equal(select_ca("mlx5_0", &choice), 0);
	assert_string_equal(choice.ca_name, "mlx5_0");
	fake_fail_call(1, EACCES);
	assert_int_equal(select_ca(NULL, &choice), -EACCES);
	fake_fail_malloc(1);
	assert_int_equal(select_ca(NULL, &choice), -ENOMEM);
	fake_fail_malloc(0);
}
