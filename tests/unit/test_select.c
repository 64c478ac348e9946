/* SPDX-License-Identifier: BSD-2-Clause */

/* Which port a call chooses (select.c), and the pairs of devices (pairs.c). */

#include "at.h"
#include "fake.h"
#include "devices.h"
#include "test.h"

#include <unistd.h>

FIXTURE(fake_setup, fake_teardown);

/* Sets an attribute of a port that fake_port() made. */
static void set(const char *ca_name, int portnum, const char *attribute, const char *text)
{
	fake_file(at("/sys/class/infiniband/%s/ports/%d/%s", ca_name, portnum, attribute),
		  "%s\n", text);
}

/* --- rows ----------------------------------------------------------------------- */

/*
 * A row has a sentence and a line of steps:
 *
 *	CA WORD			a device without ports (ca)
 *	CA/PORT WORD ...	the port is active, linked, polling or disabled: a new port
 *				has a GUID of its own. Then ethernet, no-sm (IsSMDisabled)
 *				or guid=HEX.
 *
 *	Of either:		FILE=TEXT; without this FILE: no-FILE; or it is gone
 *
 *	get NAME > RESULT	NAME is CA, CA/PORT, any or any/PORT. select_port() and
 *				umad_get_port() choose this port, or fail with this errno.
 *	smi NAME > RESULT	likewise select_port(), for SMPs
 *	pairs > SMI=GSI ...	umad_get_smi_gsi_pairs(); "none"
 *	pair NAME > RESULT	umad_get_smi_gsi_pair_by_ca_name(): SMI/PORT=GSI/PORT
 *	smi-pair NAME > RESULT	likewise, with enforce_smi
 */
struct row {
	const char *behaviour, *line;
};

/* The errors in the rows: an attribute that is missing is -ENOENT, and -EIO of a public call.
 */
static const char *error_name(int error)
{
	return error == -ENODEV ? "ENODEV" : error == -EINVAL ? "EINVAL" : "EIO";
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

static const char *all_pairs(void)
{
	static char text[256];
	struct umad_ca_pair pairs[8];
	int count = umad_get_smi_gsi_pairs(pairs, 8);

	assert_true(count >= 0);
	strcpy(text, count ? "" : "none");
	for (int i = 0; i < count; i++) {
		assert_int_equal(pairs[i].smi_preferred_port + pairs[i].gsi_preferred_port, 0);
		snprintf(text + strlen(text), 64, "%s%s=%s", i ? " " : "", pairs[i].smi_name,
			 pairs[i].gsi_name);
	}
	return text;
}

static const char *pair_of(const char *ca_name, int portnum, bool enforce_smi)
{
	static char text[256];
	struct umad_ca_pair pair, none = {0};
	int ret;

	memset(&pair, 0x5a, sizeof(pair));
	errno = 0;
	ret = umad_get_smi_gsi_pair_by_ca_name(ca_name, (uint8_t)portnum, &pair, enforce_smi);
	if (ret) {
		assert_int_equal(errno, -ret);
		assert_memory_equal(&pair, &none, sizeof(pair));
		return error_name(ret);
	}
	snprintf(text, sizeof(text), "%s/%u=%s/%u", pair.smi_name, pair.smi_preferred_port,
		 pair.gsi_name, pair.gsi_preferred_port);
	return text;
}

static const char *line_of_row;

static void expect(const char *call, const char *step, const char *seen, const char *wanted)
{
	if (strcmp(seen, wanted) != 0)
		fail_msg("\"%s\"\nat \"%s > %s\": %s: %s", line_of_row, step, wanted, call,
			 seen);
}

/* Carries out a step that has a result. */
static void choose(const char *step, const char *wanted)
{
	const char *ca_name, *number;
	char copy[64], *save;
	int portnum;

	if (!strcmp(step, "pairs")) {
		expect("umad_get_smi_gsi_pairs()", step, all_pairs(), wanted);
		return;
	}
	snprintf(copy, sizeof(copy), "%s", strchr(step, ' ') + 1);
	ca_name = strtok_r(copy, "/", &save);
	number = strtok_r(NULL, "/", &save);
	portnum = number ? atoi(number) : 0;
	if (!strcmp(ca_name, "any"))
		ca_name = NULL;
	if (!strncmp(step, "pair ", 5) || !strncmp(step, "smi-pair ", 9)) {
		expect("umad_get_smi_gsi_pair_by_ca_name()", step,
		       pair_of(ca_name, portnum, *step == 's'), wanted);
	} else {
		expect("select_port()", step, selected(ca_name, portnum, *step == 's'), wanted);
		if (*step == 'g')
			expect("umad_get_port()", step, found_by_get_port(ca_name, portnum),
			       wanted);
	}
}

/* Makes the port in this state, if the word is one. */
static bool make_port(const char *ca_name, int portnum, const char *word)
{
	static const char *const states[][3] = {{"active", "4: ACTIVE", "5: LinkUp"},
						{"linked", "2: INIT", "5: LinkUp"},
						{"polling", "1: DOWN", "2: Polling"},
						{"disabled", "1: DOWN", "3: Disabled"}};
	static uint32_t guid;

	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
		if (strcmp(word, states[i][0]) != 0)
			continue;
		if (access(fake_real_path(at("/sys/class/infiniband/%s/node_type", ca_name)),
			   F_OK))
			fake_ca(ca_name);
		fake_port(ca_name, portnum, ++guid);
		set(ca_name, portnum, "state", states[i][1]);
		set(ca_name, portnum, "phys_state", states[i][2]);
		return true;
	}
	return false;
}

/* Changes a file in the folder of a device or port. */
static void change(const char *folder, const char *word)
{
	const char *value = strchr(word, '=');

	if (!strcmp(word, "ethernet"))
		fake_file(at("%s/link_layer", folder), "Ethernet\n");
	else if (!strcmp(word, "no-sm"))
		fake_file(at("%s/cap_mask", folder), "0x400\n");
	else if (!strncmp(word, "guid=", 5))
		fake_file(at("%s/gids/0", folder), "fe80:0:0:0:0:0:0:%s\n", value + 1);
	else if (value)
		fake_file(at("%s/%.*s", folder, (int)(value - word), word), "%s\n", value + 1);
	else if (!strncmp(word, "no-", 3))
		fake_remove(at("%s/%s", folder, word + 3));
	else if (!strcmp(word, "gone"))
		fake_remove(folder);
	else
		fail_msg("\"%s\": no such word: %s", line_of_row, word);
}

static void run_line(const char *line)
{
	char copy[512], folder[96], *rest = copy, *step, *result, *subject, *word, *slash;

	line_of_row = line;
	assert_true(strlen(line) < sizeof(copy));
	strcpy(copy, line);
	while ((step = strsep(&rest, ";"))) {
		step += strspn(step, " ");
		result = strstr(step, " > ");
		if (result) {
			*result = '\0';
			choose(step, result + 3);
			continue;
		}
		subject = strtok(step, " ");
		slash = strchr(subject, '/');
		if (slash)
			*slash = '\0';
		snprintf(folder, sizeof(folder), "/sys/class/infiniband/%s%s%s", subject,
			 slash ? "/ports/" : "", slash ? slash + 1 : "");
		while ((word = strtok(NULL, " ")))
			if (!strcmp(word, "ca"))
				fake_ca(subject);
			else if (!slash || !make_port(subject, atoi(slash + 1), word))
				change(folder, word);
	}
}

static void run_row(const struct row *row)
{
	run_line(row->line);
}

/* test_hosts.c has each rank of ports and devices. */
static const struct row rows[] = {
	{"a port that is named in full is taken as it is",
	 "a/1 disabled no-sm; r/1 active ethernet; get a/1 > a/1; get r/1 > r/1; "
	 "smi a/1 > a/1"},
	{"each call looks at the ports again",
	 "get any > ENODEV; get any/1 > ENODEV; get a > ENODEV; a ca; get a > ENODEV; "
	 "a/1 polling; a/2 linked; a/3 active; get a > a/3; a/3 disabled; get a > a/2; "
	 "a/2 polling; get a > a/1; a/1 disabled; get a > a/2; a/2 disabled; "
	 "get a > ENODEV; get any > ENODEV; smi any > ENODEV"},
	{"by number an Ethernet port is the last choice",
	 "a/1 active ethernet; get any/1 > a/1; b/1 polling; get any/1 > b/1; "
	 "c/1 active ethernet; get any/1 > b/1; b/1 disabled; get any/1 > a/1; get any > a/1"},
	{"a switch is its port 0",
	 "w/0 polling; w node_type=2; get w > w/0; get any/1 > w/0; smi w > w/0; "
	 "w/0 polling no-sm; smi w > ENODEV; get w > w/0"},
	{"a device that cannot be read hides no other one",
	 "a/1 active no-gids; get any > EIO; b/1 polling; get any > b/1; get any/1 > b/1; "
	 "smi any > b/1; b/1 disabled; a/1 active no-pkeys; get any > EIO"},
	{"a device that can be read in part is the last choice",
	 "a/1 active; a/2 active no-gids; get any > a/1; get a > a/1; b/1 polling; "
	 "get any > b/1; get any/1 > b/1; get a > a/1; a/1 active no-gids; get a > EIO; "
	 "a/2 polling; get a > a/2"},
	{"a device with more ports than umad_get_ca() can hold is chosen",
	 "a/12 active; get a > a/12; get any > a/12; get any/12 > a/12; b/1 polling; "
	 "get any > b/1"},
};

TEST_ROWS(run_row, rows);

/* A planarized port: the planes s and t under the port GUIDs of a and b. */
#define PLANES                                                                     \
	"a/1 active guid=10 no-sm; b/1 active guid=11 no-sm; s/1 active guid=10; " \
	"t/1 active guid=11; "

static const struct row pair_rows[] = {
	{"a usual device is both sides",
	 "a/1 active; a/2 active; b/1 active; pairs > a=a b=b; pair c > ENODEV"},
	{"a planarized port has a device for each side, and either name finds it",
	 PLANES "pairs > s=a t=b; pair t > t/1=b/1; smi-pair b > t/1=b/1; pair c > ENODEV"},
	{"the default pair is the default devices",
	 PLANES "a/1 polling guid=10 no-sm; pair any > t/1=b/1; smi-pair any > t/1=b/1; "
		"smi-pair a > s/1=a/1"},
	{"a device without subnet management has no SMI side",
	 "a/1 active no-sm; pairs > =a; pair a > /0=a/1; smi-pair a > ENODEV; "
	 "smi-pair any > ENODEV"},
	{"devices that cannot be read are left out",
	 PLANES "s/1 no-gids; b/1 no-cap_mask; c/1 active; c node_type=4; pairs > =a t=t"},
	/* not the Active one: rdma-core takes the first pair whose ports are up */
	{"the default pair is the first one that is up",
	 "a/1 linked; b/1 active; smi-pair any > a/1=a/1; a/1 polling; "
	 "smi-pair any > b/1=b/1; b/1 polling; smi-pair any > a/1=a/1; a/1 disabled; "
	 "smi-pair any > b/1=b/1; smi-pair a > a/1=a/1"},
	{"the preferred port is given, or the only one, or up",
	 "a/2 polling; pair a > a/2=a/2; a/3 active; a/4 active; pair a > a/3=a/3; "
	 "pair a/4 > a/4=a/4; a/3 polling; a/4 polling; pair a > a/2=a/2; a/2 disabled; "
	 "pair a > a/3=a/3; pair a/2 > a/2=a/2"},
	{"a port that does not exist is in no pair",
	 "a/1 active; a/2 active; b/2 active; pair a/7 > ENODEV; pair a/255 > ENODEV; "
	 "pair any/3 > ENODEV; pair a/2 > a/2=a/2; a/2 gone; pair any/2 > b/2=b/2"},
	/* the planes are ports of one device */
	{"a plane is paired with the only port of the device that programs see",
	 "a/1 active guid=10 no-sm; s/1 active guid=10; s/2 active guid=10; "
	 "s/3 active guid=10; s/4 active guid=10; pairs > s=a; smi-pair s/2 > s/2=a/1; "
	 "smi-pair a/1 > s/1=a/1; smi-pair any/4 > s/4=a/1; pair a/2 > ENODEV; "
	 "pair s/5 > ENODEV; s/1 polling guid=10; s/2 polling guid=10; "
	 "smi-pair any > s/3=a/1; smi-pair a > s/3=a/1"},
	/* a card with both: the InfiniBand port stays the default */
	{"Ethernet ports are in no pair",
	 "a/1 active ethernet; pairs > none; pair any/1 > ENODEV; b/1 active; pairs > b=b; "
	 "a/2 active; pairs > a=a b=b; smi-pair any > a/2=a/2; smi-pair a > a/2=a/2; "
	 "pair a/1 > ENODEV"},
	{"ports without a GUID are in no pair",
	 "a/1 active guid=0; b/1 active guid=0 no-sm; pairs > none; pair a/1 > ENODEV"},
	/* a GUID that two adapters have, by a fault: neither of them hides the other */
	{"devices of the same kind with one GUID are pairs of their own",
	 "a/1 active guid=1; b/1 active guid=1; pairs > a=a b=b; smi-pair b > b/1=b/1; "
	 "a/1 no-sm; b/1 no-sm; pairs > =a =b; s/1 active guid=1; pairs > s=b"},
	/* rdma-core takes a later pair, too; a port that is up is better than one that is Down
	 */
	{"planes without a device for GMPs come last",
	 "s/1 active guid=10; s/2 active guid=10; t/1 active guid=11; pair any > t/1=t/1; "
	 "smi-pair any > t/1=t/1; pair any/2 > s/2=s/2; pair s > s/1=s/1; "
	 "t/1 polling guid=11; pair any > s/1=s/1; t gone; pair any > s/1=s/1; "
	 "a/1 active guid=10 no-sm; pair any > s/1=a/1; pair any/3 > ENODEV"},
	/* rdma-core takes the device to have IsSMDisabled set for all its ports */
	{"enforcing SMI prefers devices whose first port sends SMPs",
	 "a/1 active no-sm; a/2 active; b/1 active; smi-pair any/2 > a/2=a/2; "
	 "smi-pair any > b/1=b/1; pair any > /0=a/1; smi-pair a > a/2=a/2; b/1 polling; "
	 "smi-pair any > a/2=a/2"},
	{"a switch is a pair by its port 0",
	 "w/0 active; w node_type=2; pairs > w=w; smi-pair w > w/0=w/0"},
	{"a device with more ports than umad_get_ca() can hold is the last pair",
	 "a/1 active; a/12 active; smi-pair any > a/1=a/1; smi-pair any/12 > a/12=a/12; "
	 "b/1 active; pairs > b=b a=a; smi-pair any > b/1=b/1"},
	{"what has no readable port is no pair",
	 "c/1 active; c node_type=4; d ca; e/1 active; e/256 active; "
	 "f/1 active gids/0=fe80::1; pairs > none; pair c > ENODEV; pair d > ENODEV; "
	 "pair e > ENODEV; pair f > ENODEV"},
	/* rdma-core pairs port 2 of a with s, which has another PortGUID */
	{"of several pairs with a device the port tells which is meant",
	 "a/1 active guid=10 no-sm; a/2 active guid=11 no-sm; s/1 active guid=10; "
	 "t/1 active guid=11; pairs > s=a t=a; pair a > s/1=a/1; pair a/2 > t/1=a/2; "
	 "pair t > t/1=a/2"},
};

TEST_ROWS(run_row, pair_rows);

/* umad_get_ca() fails for it. */
TEST(a_device_that_cannot_be_read_as_a_whole_is_in_no_pair)
{
	static const char *const parts[] = {"a/1 no-state",  "a/1 no-sm_sl",    "a/1 no-pkeys",
					    "a/1 no-gids",   "a/1 no-cap_mask", "a/1 no-rate",
					    "a no-node_guid"};

	run_line("b/1 active; a/2 active");
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		run_line("a/1 active; pair any > a/1=a/1");
		run_line(parts[i]);
		run_line("pairs > b=b; pair any > b/1=b/1; pair a/2 > ENODEV");
	}
}

/* --- names and attributes of any kind ------------------------------------------- */

/* The opposite of the order of names. */
static bool greater(const char *name, const char *other)
{
	return strcmp(name, other) > 0;
}

/* Pairs come by name. */
TEST(devices_are_chosen_in_the_order_of_the_directory)
{
	run_line("mlx5_2/1 active; mlx5_10/1 active; get any > mlx5_10/1; "
		 "get any/1 > mlx5_10/1; smi-pair any > mlx5_10/1=mlx5_10/1; "
		 "pairs > mlx5_10=mlx5_10 mlx5_2=mlx5_2");
	fake_order(greater);
	run_line("smi-pair any > mlx5_10/1=mlx5_10/1; pairs > mlx5_10=mlx5_10 mlx5_2=mlx5_2; "
		 "get any > mlx5_2/1; get any/1 > mlx5_2/1; smi any > mlx5_2/1; "
		 "mlx5_2/1 linked; get any > mlx5_10/1; mlx5_10/1 linked; get any > mlx5_2/1");
	fake_order(NULL);
}

TEST(names_that_cannot_be_devices_are_no_device_and_bad_arguments_are_refused)
{
	static const char *const names[] = {"", "..", "a/b", "a_name_that_is_far_too_long"};
	const size_t count = sizeof(names) / sizeof(*names);

	for (size_t i = 0; i < count; i++) {
		assert_string_equal(selected(names[i], 1, false), "ENODEV");
		assert_string_equal(pair_of(names[i], 1, false), "ENODEV");
		assert_int_equal(umad_open_port(names[i], 1), -EOPNOTSUPP);
	}
	/* only the ABI version was looked for */
	assert_int_equal(fake_calls(), count);
	assert_string_equal(selected("mlx5_0", 300, false), "mlx5_0/300");
	assert_string_equal(selected("mlx5_0", -1, false), "EINVAL");
	assert_string_equal(selected(NULL, INT32_MIN, true), "EINVAL");
	assert_fails(umad_get_smi_gsi_pair_by_ca_name(NULL, 0, NULL, 0), EINVAL);
	assert_fails(umad_get_smi_gsi_pairs(NULL, 1), EINVAL);
}

TEST(only_infiniband_by_its_full_name_is_infiniband)
{
	char others[] = "Ethernet|InfiniBandX|Infini|infiniband|\xff\xfe|"
			"InfiniBand and nineteen more letters",
	     *rest = others, *other;

	run_line("a/1 active; a/2 linked");
	while ((other = strsep(&rest, "|"))) {
		set("a", 1, "link_layer", other);
		run_line("get a > a/2");
	}
	run_line("a/1 link_layer=IB; get a > a/1; a/1 no-link_layer; get a > a/1");
}

TEST(a_state_that_makes_no_sense_is_not_chosen)
{
	char contents[] = "|ACTIVE|-4|\xff\xfe|99999999999999999999", *rest = contents, *state;

	run_line("b/1 polling");
	while ((state = strsep(&rest, "|"))) {
		run_line("a/1 active");
		set("a", 1, "state", state);
		run_line("get a > ENODEV; get any > b/1; a/1 polling");
		set("a", 1, "phys_state", state);
		run_line("get a > ENODEV; get any > b/1");
	}
}

/* --- many devices, and faults --------------------------------------------------- */

TEST(there_is_no_limit_to_the_devices_and_no_more_pairs_are_stored_than_asked_for)
{
	static struct umad_ca_pair pairs[201];
	char name[UMAD_CA_NAME_LEN];
	unsigned n = 0;
	int ret;

	assert_int_equal(umad_get_smi_gsi_pairs(pairs, 2), 0);
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "mlx5_%03d", i);
		fake_ca(name);
		fake_port(name, 1, (uint32_t)i + 1);
		set(name, 1, "state", "1: DOWN");
		set(name, 1, "phys_state", "3: Disabled");
	}
	/* names and pairs grow alternately */
	do {
		fake_fail_malloc(++n);
		errno = 0;
		ret = umad_get_smi_gsi_pairs(pairs, 201);
		assert_int_equal(ret, fake_failed() ? -ENOMEM : 200);
		assert_int_equal(errno, fake_failed() ? ENOMEM : 0);
	} while (ret < 0);
	assert_true(n > 8);
	fake_fail_malloc(0);
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "mlx5_%03d", i);
		assert_string_equal(pairs[i].gsi_name, name);
		assert_string_equal(pairs[i].smi_name, name);
	}
	memset(pairs, 7, sizeof(pairs));
	assert_int_equal(umad_get_smi_gsi_pairs(pairs, 1), 1);
	assert_int_equal(pairs[1].smi_name[0], 7);
	assert_int_equal(umad_get_smi_gsi_pairs(NULL, 0), 0);
	run_line("get any > ENODEV; mlx5_198/1 polling; get any > mlx5_198/1; "
		 "mlx5_199/1 active; get any > mlx5_199/1; get any/1 > mlx5_199/1; "
		 "smi-pair mlx5_199 > mlx5_199/1=mlx5_199/1");
}

/* Removes a or s when a certain file is opened. */
static void vanish(const char *path)
{
	if (strstr(path, "/s/ports/1/gids/0"))
		fake_remove("/sys/class/infiniband/s");
	if (strstr(path, "/a/ports/1/state"))
		fake_remove("/sys/class/infiniband/a");
}

TEST(a_device_that_vanishes_meanwhile_is_not_chosen_and_in_no_pair)
{
	run_line("a/1 active; b/1 polling");
	fake_before_open(vanish);
	assert_string_equal(selected(NULL, 0, false), "b/1");
	assert_string_equal(selected("a", 0, false), "ENODEV");
	run_line("c/1 active guid=10 no-sm; s/1 active guid=10; pairs > b=b =c");
}

TEST(a_failure_to_list_the_devices_is_told)
{
	struct umad_ca_pair pair;
	struct port_choice choice;

	run_line("a/1 active");
	for (int i = 0; i < 3; i++) {
		fake_fail_call(1, EACCES);
		errno = 0;
		assert_int_equal(
			i == 2 ? umad_get_smi_gsi_pairs(&pair, 1)
			       : umad_get_smi_gsi_pair_by_ca_name(i ? "a" : NULL, 0, &pair, 0),
			-EIO);
		assert_int_equal(errno, EACCES);
	}
	fake_fail_call(1, EACCES);
	assert_int_equal(select_ca(NULL, &choice), -EACCES);
	fake_fail_malloc(1);
	assert_int_equal(select_ca(NULL, &choice), -ENOMEM);
}

TEST(every_call_may_fail_and_the_next_best_is_chosen)
{
	struct umad_ca_pair pairs[4];
	struct port_choice choice;
	unsigned n = 0;
	int ret;

	run_line("mlx5_0/1 active; mlx5_1/1 active");
	do {
		fake_fail_call(++n, EACCES);
		ret = select_port(NULL, 0, true, &choice);
		assert_int_equal(ret, n == 1 ? -EACCES : 0);
	} while (fake_failed());
	assert_string_equal(choice.ca_name, "mlx5_0");
	n = 0;
	do {
		fake_fail_call(++n, EACCES);
		ret = umad_get_smi_gsi_pairs(pairs, 4);
		/* a port without link_layer is InfiniBand */
		assert_true(n == 1 ? ret == -EIO : ret == 1 || ret == 2);
	} while (fake_failed());
	assert_int_equal(ret, 2);
}
