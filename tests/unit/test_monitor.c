/* SPDX-License-Identifier: BSD-2-Clause */

#include "at.h"
#include "fake.h"
#include "kept_log.h"
#include "netlink.h"
#include "test.h"

#include <limits.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* --- the kernel's uevents; replaces netlink.c ----------------------------------- */

static struct {
	char text[512];
	int length; /* or a negative errno */
} uevents[64];
static int uevent_count, uevent_next;
static int open_error, opened, socket_fd;

/*
 * How many uevents may be queued; 0: no limit. One that does not fit is dropped, and the next
 * receive fails with ENOBUFS. All later ones are dropped silently until the queue is empty
 * (net/netlink/af_netlink.c).
 */
static int uevent_room;
static bool congested, tell_loss;

int netlink_find_umad(const char *ca_name, int portnum, char *name, size_t size)
{
	(void)ca_name;
	(void)portnum;
	(void)name;
	(void)size;
	return -ENOENT;
}

int uevent_open(struct nl_sock **sock)
{
	if (open_error)
		return -open_error;
	*sock = NULL;
	socket_fd = eventfd(0, EFD_CLOEXEC);
	opened++;
	return 0;
}

int uevent_fd(const struct nl_sock *sock)
{
	(void)sock;
	return socket_fd;
}

void uevent_close(struct nl_sock *sock)
{
	(void)sock;
	close(socket_fd);
	opened--;
}

int uevent_receive(struct nl_sock *sock, char **text)
{
	int length;

	(void)sock;
	if (tell_loss) {
		tell_loss = false;
		return -ENOBUFS;
	}
	if (uevent_next == uevent_count)
		return -EAGAIN;
	length = uevents[uevent_next++].length;
	if (uevent_next == uevent_count)
		congested = false;
	if (length > 0) {
		*text = malloc((size_t)length);
		if (!*text)
			return -ENOMEM;
		memcpy(*text, uevents[uevent_next - 1].text, (size_t)length);
	}
	return length;
}

/* --- the machine ---------------------------------------------------------------- */

static struct umad_monitor *monitor;

static int setup(void)
{
	uevent_count = uevent_next = 0;
	uevent_room = 0;
	congested = tell_loss = false;
	open_error = opened = 0;
	monitor = NULL;
	return fake_setup();
}

static int teardown(void)
{
	umad_monitor_free(monitor);
	return opened ? -1 : fake_teardown();
}

FIXTURE(setup, teardown);

static void watch(void)
{
	assert_int_equal(umad_monitor_open(&monitor, 0), 0);
}

/* The monitor watches the ports, too; the tests set its timer when they need a reading. */
static void watch_ports(void)
{
	assert_int_equal(umad_monitor_open(&monitor, INT_MAX), 0);
}

static void plug(const char *ca_name, int number)
{
	fake_ca(ca_name);
	fake_port(ca_name, 1, 1);
	fake_umad(number, ca_name, 1);
}

static void unplug(const char *ca_name, int number)
{
	fake_remove(at("/sys/class/infiniband/%s", ca_name));
	fake_remove(at("/sys/class/infiniband_mad/umad%d", number));
}

/* Queues a message as the kernel words it; devpath_old may be NULL. */
static void uevent(const char *action, const char *subsystem, const char *name,
		   const char *devpath_old)
{
	static const char path[] = "/devices/pci0000:00/0000:00:03.0";
	char *text;
	int length;

	if (uevent_room && uevent_next == uevent_count)
		uevent_count = uevent_next = 0;
	if (uevent_room && (congested || uevent_count - uevent_next >= uevent_room)) {
		tell_loss |= !congested;
		congested = true;
		return;
	}
	assert_true(uevent_count < (int)(sizeof(uevents) / sizeof(*uevents)));
	text = uevents[uevent_count].text;
	length = sprintf(text, "%s@%s/%s/%s%cACTION=%s%cDEVPATH=%s/%s/%s%cSUBSYSTEM=%s%c",
			 action, path, subsystem, name, 0, action, 0, path, subsystem, name, 0,
			 subsystem, 0);
	if (devpath_old)
		length += sprintf(text + length, "DEVPATH_OLD=%s", devpath_old) + 1;
	length += sprintf(text + length, "MAJOR=231%cDEVNAME=infiniband/%s%cNAME=%s%cSEQNUM=12",
			  0, name, 0, name, 0);
	uevents[uevent_count++].length = length + 1;
}

static void umad_uevent(const char *action, int number)
{
	uevent(action, "infiniband_mad", at("umad%d", number), NULL);
}

static void send_both(const char *action, const char *ca_name, int number)
{
	umad_uevent(action, number);
	uevent(action, "infiniband", ca_name, NULL);
}

static void uevent_error(int error)
{
	uevents[uevent_count++].length = -error;
}

/* --- rows ----------------------------------------------------------------------- */

/*
 * A row has a sentence and a line of steps. A step has a verb and its arguments; behind ">" are
 * the events that the monitor then reports, and no others:
 *
 *	"plug a:0; watch; remove umad0 a > -a/1=umad0 -a"
 *
 * sysfs:
 *	plug CA:N	a device whose port 1 has umadN
 *	port CA:N	its port 2 has umadN
 *	unplug CA:N	the device and umadN are not there any more
 *	gone PATH	a file or folder below /sys/class is not there any more
 *	set CA:FILE=VALUE	a file of its port 1
 *	put PATH=VALUE	a file below /sys/class, without a newline
 *
 * The monitor and uevents. The subsystem is infiniband_mad for umadN and issmN, and infiniband
 * for others; SUBSYSTEM/NAME has another one.
 *	watch		opens the monitor
 *	add NAME, remove NAME, change NAME, move NAME	a uevent
 *	move OLD:NEW	a uevent with the old name
 *	trigger NAME	as "udevadm trigger --action=remove" has it
 *	fail ERROR	the socket fails once
 *	full N		the N-th system call from now on fails with EMFILE
 *	ports		opens a monitor that watches ports, at an interval that does not end
 *	look		waits until such an interval has ended
 *
 * Events: +CA, -CA, +CA/PORT=NODE, -CA/PORT=NODE, *CA/PORT=NODE (changed), overrun. An error
 * ends the events of a step.
 */
static const struct {
	const char *name;
	int number;
} errors[] = {{"EIO", EIO}, {"EMFILE", EMFILE}, {"ENOBUFS", ENOBUFS}};

#define ERRORS (sizeof(errors) / sizeof(errors[0]))

/* The event in words, with a space before them. Members that do not apply are zero. */
static int describe(const struct umad_event *event, char *text)
{
	static const char signs[] = {[UMAD_EVENT_CA_ADDED] = '+',
				     [UMAD_EVENT_CA_REMOVED] = '-',
				     [UMAD_EVENT_PORT_ADDED] = '+',
				     [UMAD_EVENT_PORT_REMOVED] = '-',
				     [UMAD_EVENT_PORT_CHANGED] = '*'};
	struct umad_event whole = {.type = event->type};
	bool overrun = event->type == UMAD_EVENT_OVERRUN;

	strcpy(whole.ca_name, event->ca_name);
	strcpy(whole.node, event->node);
	if (event->node[0])
		whole.portnum = event->portnum;
	assert_memory_equal(event, &whole, sizeof(whole));
	if (event->node[0])
		return sprintf(text, " %c%s/%d=%s", signs[event->type], event->ca_name,
			       event->portnum, event->node);
	return overrun ? sprintf(text, " overrun%s", event->ca_name)
		       : sprintf(text, " %c%s", signs[event->type], event->ca_name);
}

/* All that the monitor reports now. */
static const char *reported(void)
{
	static char text[1024];
	struct umad_event event;
	int length = 0, ret;

	for (text[0] = '\0';; length += describe(&event, text + length)) {
		memset(&event, 0x5a, sizeof(event));
		errno = 0;
		ret = umad_monitor_next_event(monitor, &event, sizeof(event));
		assert_true((!ret || errno == -ret) && length < (int)sizeof(text) - 100);
		if (ret == -EAGAIN)
			return text;
		for (size_t i = 0; ret && i < ERRORS; i++)
			if (ret == -errors[i].number) {
				sprintf(text + length, " %s", errors[i].name);
				return text;
			}
		assert_int_equal(ret, 0);
	}
}

static void send_uevent(const char *action, char *word)
{
	char *slash = strchr(word, '/'), *name = strchr(word, ':'), old[64];

	snprintf(old, sizeof(old), "/devices/pci0/infiniband/%.*s", (int)strcspn(word, ":"),
		 word);
	if (slash)
		*slash = '\0';
	if (name)
		uevent(action, "infiniband", name + 1, old);
	else if (slash)
		uevent(action, word, slash + 1, NULL);
	else if (!strncmp(word, "umad", 4) || !strncmp(word, "issm", 4))
		uevent(action, "infiniband_mad", word, NULL);
	else
		uevent(action, "infiniband", word, NULL);
}

/* The timer of the monitor, the only one of the process. */
static int timer_of_monitor(void)
{
	char link[32], target[32] = "";

	for (int fd = 0; fd < 256; fd++) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		if (readlink(link, target, sizeof(target) - 1) > 0 && strstr(target, "timerfd"))
			return fd;
	}
	fail_msg("the monitor has no timer");
	return -1;
}

/* Waits until the monitor compares the ports in its next call. */
static void await_look_every(int interval_ms)
{
	struct pollfd pollfd = {.fd = umad_monitor_get_fd(monitor), .events = POLLIN};
	struct timespec interval = {.tv_sec = interval_ms / 1000,
				    .tv_nsec = interval_ms % 1000 * 1000000L};
	struct itimerspec time = {interval, interval};

	assert_int_equal(timerfd_settime(timer_of_monitor(), 0, &time, NULL), 0);
	assert_int_equal(poll(&pollfd, 1, -1), 1);
}

static void await_look(void)
{
	await_look_every(1);
}

/* Splits a word at a character. Returns the second part. */
static char *split(char *word, char at_character)
{
	char *part = strchr(word, at_character);

	assert_non_null(part);
	*part = '\0';
	return part + 1;
}

/* Carries out a verb for one word. */
static bool carry_out(const char *verb, char *word)
{
	char *value;

	if (!strcmp(verb, "add") || !strcmp(verb, "remove") || !strcmp(verb, "change") ||
	    !strcmp(verb, "move")) {
		send_uevent(verb, word);
	} else if (!strcmp(verb, "trigger")) {
		send_uevent("remove", word);
		uevents[uevent_count - 1].length +=
			sprintf(uevents[uevent_count - 1].text +
					uevents[uevent_count - 1].length,
				"SYNTH_UUID=0") +
			1;
	} else if (!strcmp(verb, "fail")) {
		for (size_t i = 0; i < ERRORS; i++)
			if (!strcmp(word, errors[i].name))
				uevent_error(errors[i].number);
	} else if (!strcmp(verb, "full")) {
		fake_fail_call((unsigned)atoi(word), EMFILE);
	} else if (!strcmp(verb, "gone")) {
		fake_remove(at("/sys/class/%s", word));
	} else if (!strcmp(verb, "put")) {
		value = split(word, '=');
		fake_file(at("/sys/class/%s", word), "%s", value);
	} else if (!strcmp(verb, "set")) {
		value = split(word, '=');
		verb = split(word, ':');
		fake_file(at("/sys/class/infiniband/%s/ports/1/%s", word, verb), "%s\n", value);
	} else if (!strcmp(verb, "plug")) {
		plug(word, atoi(split(word, ':')));
	} else if (!strcmp(verb, "port")) {
		fake_umad(atoi(split(word, ':')), word, 2);
	} else if (!strcmp(verb, "unplug")) {
		unplug(word, atoi(split(word, ':')));
	} else {
		return false;
	}
	return true;
}

static void run_line(const char *line)
{
	char copy[512], *rest = copy, *step, *expected, *verb, *word;
	const char *seen;

	assert_true(strlen(line) < sizeof(copy));
	strcpy(copy, line);
	while ((step = strsep(&rest, ";"))) {
		expected = strchr(step, '>');
		if (expected)
			*expected++ = '\0';
		verb = strtok(step, " ");
		if (verb && !strcmp(verb, "watch"))
			watch();
		else if (verb && !strcmp(verb, "ports"))
			watch_ports();
		else if (verb && !strcmp(verb, "look"))
			await_look();
		else
			while (verb && (word = strtok(NULL, " ")))
				if (!carry_out(verb, word))
					fail_msg("%s: no such step: %s %s", line, verb, word);
		if (!expected)
			continue;
		seen = reported();
		if (strcmp(seen, strcmp(expected, " nothing") ? expected : ""))
			fail_msg("\"%s\"\nat \"%s >%s\": seen:%s", line, verb ? verb : "",
				 expected, *seen ? seen : " nothing");
	}
}

struct row {
	const char *behaviour, *line;
};

static void run_row(const struct row *row)
{
	run_line(row->line);
}

/* The random test below has most orders of events; these are examples. */
static const struct row rows[] = {
	/* the order of kernels since 4.20: first the clients' devices */
	{"a device comes and goes with its port, and is reported once",
	 "watch > nothing; plug a:0; add umad0 issm0 a > +a/1=umad0 +a; add a umad0 > nothing; "
	 "unplug a:0; remove umad0 issm0 a > -a/1=umad0 -a"},
	/* the order of the ports is not specified */
	{"a device that goes first takes its ports along",
	 "plug a:0; port a:1; watch; remove a umad0 > -a/2=umad1 -a/1=umad0 -a"},
	{"the module may be loaded late",
	 "put infiniband/a/node_type=1; watch; plug a:3; add umad3 > +a/1=umad3"},
	{"a renamed device goes and comes",
	 "plug a:0; watch; unplug a:0; plug c:0; move a:c > -a/1=umad0 -a +c +c/1=umad0"},
	/* a caller may have listed the device meanwhile */
	{"a device that came and went meanwhile is an overrun",
	 "watch; add umad0 a; remove umad0 a > overrun"},
	{"devices of other kinds and other uevents are ignored",
	 "plug a:0; watch; put infiniband/iw0/node_type=4; add iw0 net/umad0; remove net/a "
	 "infiniband_mad/umadx; "
	 "change a umad0; move a; add infiniband/../a a_name_that_is_far_too_long; "
	 "trigger umad0; remove iw0 a0 umad00 issm0; put infiniband/iw1/node_type=4; move "
	 "iw0:iw1 > nothing"},
	/* after the overrun the caller lists the devices again */
	{"lost events are an overrun, and the devices are listed anew",
	 "plug a:0; watch; plug b:1; unplug a:0; fail ENOBUFS; add b; remove a > overrun; "
	 "remove umad1 a > -b/1=umad1"},
	{"a socket that fails is reported, and an overrun follows",
	 "watch; fail EIO > EIO; fail ENOBUFS EIO > EIO; > overrun"},
	{"a module that is unloaded takes ports only, and devices are reported without its "
	 "folder",
	 "plug a:0; watch; gone infiniband_mad; remove umad0 > -a/1=umad0; put "
	 "infiniband/b/node_type=1; add b > +b"},
	/* a caller may have listed it under the intermediate name */
	{"a device renamed twice is known under its last name",
	 "plug a:0; watch; unplug a:0; plug c:0; move a:tmp tmp:c > overrun; "
	 "remove c > -c/1=umad0 -c"},
	/* another device first had umad0, which only a list showed */
	{"a node with an earlier owner is an overrun",
	 "watch; plug b:0; add umad0; remove umad0; add umad0 > +b/1=umad0 overrun; "
	 "remove umad0 > -b/1=umad0"},
	/* afterwards it knows the present devices, and reports none twice */
	{"a listing after a loss is tried again until it succeeds",
	 "watch; plug a:0; fail ENOBUFS; full 1 > EMFILE; full 1 > EMFILE; full 1 > EMFILE; "
	 "> overrun; remove a > -a/1=umad0 -a"},
	/* two calls read its node_type, the third lists the nodes */
	{"a listing that fails is reported, and an overrun follows",
	 "watch; put infiniband/a/node_type=1; add a; full 3 > EMFILE; > overrun; "
	 "gone infiniband/a; add a; full 2 > EMFILE; > overrun"},
	/* 19 and 31 characters */
	{"names as long as they may be are reported whole",
	 "watch; put infiniband/a_name_19_character/node_type=1; "
	 "put infiniband_mad/umad000000000000000000000000007/ibdev=a_name_19_character; "
	 "put infiniband_mad/umad000000000000000000000000007/port=1; "
	 "add umad000000000000000000000000007 a_name_19_character > "
	 "+a_name_19_character/1=umad000000000000000000000000007 +a_name_19_character"},
	/* it is being removed */
	{"a node without its attributes is an overrun",
	 "watch; put infiniband_mad/umad0/port=1; add umad0 > overrun; "
	 "gone infiniband_mad/umad0; put infiniband_mad/umad0/ibdev=a; add umad0 > overrun; "
	 "gone infiniband_mad/umad0; add umad0 > overrun"},
	{"a node whose owner cannot be is not reported",
	 "watch; put infiniband_mad/umad0/port=1; put infiniband_mad/umad0/ibdev=; "
	 "add umad0 > nothing; put infiniband_mad/umad0/ibdev=..; add umad0 > nothing; "
	 "put infiniband_mad/umad0/ibdev=a; put infiniband_mad/umad0/port=2147483648; "
	 "add umad0 > nothing"},
};

TEST_ROWS(run_row, rows);

/* --- values of ports ------------------------------------------------------------ */

static const struct row port_rows[] = {
	{"each value of a port is watched",
	 "plug a:0 b:1; ports; set b:state=1; look > *b/1=umad1; set b:phys_state=2; "
	 "look > *b/1=umad1; set b:rate=10; look > *b/1=umad1; set b:lid=0x77; "
	 "look > *b/1=umad1; set b:lid_mask_count=2; look > *b/1=umad1; set b:sm_lid=0x78; "
	 "look > *b/1=umad1; set b:sm_sl=4; look > *b/1=umad1; set b:cap_mask=0x2; "
	 "look > *b/1=umad1; set b:gids/0=fe80:0:0:1:2:c903:0:1; look > *b/1=umad1"},
	{"each P_Key is watched",
	 "plug a:0; ports; set a:pkeys/1=0x8001; look > *a/1=umad0; set a:pkeys/2=0x8002; "
	 "look > *a/1=umad0; gone infiniband/a/ports/1/pkeys/2; look > *a/1=umad0"},
	{"several changes are one event for each port, and then none",
	 "plug a:0; ports; plug b:1; add umad1 > +b/1=umad1; "
	 "set a:lid=0x77 a:state=1 b:lid=0x78 > nothing; look > *a/1=umad0 *b/1=umad1; look > "
	 "nothing"},
	{"a port that had no values when it was added gives an event when it has",
	 "ports; plug a:0; gone infiniband/a/ports; add umad0 > +a/1=umad0; plug a:0; "
	 "look > *a/1=umad0"},
	{"a port that is being removed did not change",
	 "plug a:0; ports; unplug a:0; look > nothing; remove umad0 a > -a/1=umad0 -a; "
	 "look > nothing"},
	{"a value that cannot be read for a while did not change",
	 "plug a:0; set a:lid=0x1; ports; gone infiniband/a/ports/1/lid; look > nothing; "
	 "set a:lid=0x1; look > nothing; set a:lid=0x2; look > *a/1=umad0"},
	{"uevents are read before ports",
	 "plug a:0; ports; set a:lid=0x77; look; plug b:1; add umad1 > +b/1=umad1 *a/1=umad0"},
	{"after an overrun the values of ports are known",
	 "plug a:0; ports; set a:lid=0x77; fail ENOBUFS > overrun; look > nothing; "
	 "set a:lid=0x78; look > *a/1=umad0"},
};

TEST_ROWS(run_row, port_rows);

/* A loop of poll() must not spin. On a slow machine, a short interval is over again at once. */
TEST(after_a_shortage_the_descriptor_is_readable_at_the_next_interval)
{
	struct pollfd pollfd = {.events = POLLIN};
	int interval_ms = 1;

	plug("mlx5_0", 0);
	watch_ports();
	pollfd.fd = umad_monitor_get_fd(monitor);
	await_look();
	fake_fail_call(1, EMFILE);
	assert_string_equal(reported(), " EMFILE");
	do {
		assert_true((interval_ms *= 2) < 10000);
		await_look_every(interval_ms);
		fake_fail_call(1, EMFILE);
		assert_string_equal(reported(), " EMFILE");
	} while (poll(&pollfd, 1, 0));
	await_look();
	assert_string_equal(reported(), " overrun");
}

/* --- messages and sysfs --------------------------------------------------------- */

/* fuzz_uevent.c has messages of any content. */
TEST(malformed_messages_are_passed_over)
{
	static const struct {
		const char *text;
		int length;
	} messages[] = {
		{"", 1},
		{"ACTION=remove\0SUBSYSTEM=infiniband", 35},
		{"ACTION=remove\0DEVPATH=/devices/mlx5_0", 38},
		{"SUBSYSTEM=infiniband\0DEVPATH=/devices/mlx5_0", 45},
		{"ACTION=remove\0SUBSYSTEM=infiniband\0DEVPATH=", 44},
	};

	plug("mlx5_0", 0);
	watch();
	for (size_t i = 0; i < sizeof(messages) / sizeof(*messages); i++) {
		memcpy(uevents[i].text, messages[i].text, (size_t)messages[i].length);
		uevents[uevent_count++].length = messages[i].length;
	}
	run_line("> nothing");
}

/* Unplugs the device between reads of the two files of a node. */
static void unplug_before_port(const char *path)
{
	if (strstr(path, "/port"))
		fake_remove("/sys/class/infiniband_mad/umad0");
}

/* Plugs in a device just after the list of devices was read. */
static void plug_late(const char *path)
{
	if (strcmp(path, "/sys/class/infiniband_mad"))
		return;
	fake_before_open(NULL);
	run_line("plug mlx5_0:0; add umad0 mlx5_0");
}

TEST(a_device_that_goes_or_comes_while_sysfs_is_read_is_not_missed)
{
	run_line("watch; plug mlx5_0:0; add umad0");
	fake_before_open(unplug_before_port);
	run_line("> overrun");
	umad_monitor_free(monitor);
	fake_remove("/sys/class/infiniband");
	fake_before_open(plug_late);
	/* the first list has the port, but not the device */
	run_line("watch > +mlx5_0");
}

/* --- opening, and arguments ----------------------------------------------------- */

static int open_monitor(int interval_ms)
{
	struct umad_monitor *untouched = (struct umad_monitor *)&opened, *stored = untouched;
	int ret;

	errno = 0;
	ret = umad_monitor_open(&stored, interval_ms);
	if (ret) {
		assert_int_equal(errno, -ret);
		assert_ptr_equal(stored, untouched);
		assert_int_equal(opened, 0);
	} else {
		umad_monitor_free(stored);
	}
	return ret;
}

TEST(every_call_and_allocation_of_an_opening_may_fail)
{
	/* watching begins before sysfs is read */
	open_error = EPERM;
	assert_int_equal(open_monitor(0), -EPERM);
	assert_int_equal(fake_calls(), 0);
	open_error = 0;
	assert_int_equal(open_monitor(-1), -EINVAL);
	assert_fails(umad_monitor_open(NULL, 1), EINVAL);
	plug("mlx5_0", 0);
	for (int round = 0; round < 4; round++) {
		const int interval = round / 2 ? INT_MAX : 0,
			  error = round % 2 ? ENOMEM : EMFILE;
		unsigned n = 0;
		int ret;

		do {
			n++;
			fake_fail_call(round % 2 ? 0 : n, EMFILE);
			fake_fail_malloc(round % 2 ? n : 0);
			ret = open_monitor(interval);
			assert_int_equal(ret, fake_failed() ? -error : 0);
		} while (ret);
		fake_fail_call(0, 0);
		fake_fail_malloc(0);
		assert_true(n > (round == 2 ? 10 : 2));
	}
	/* neither folder can be listed */
	fake_remove("/sys/class/infiniband/mlx5_0");
	fake_remove("/sys/class/infiniband_mad/umad0");
	for (unsigned n = 1; n <= 2; n++) {
		fake_fail_call(n, EACCES);
		assert_int_equal(open_monitor(0), -EACCES);
	}
}

/* A program compiled with an older or a newer structure. */
TEST(an_event_has_the_size_of_the_program_s_structure)
{
	struct {
		struct umad_event event;
		char newer[8];
	} larger;
	static const char zero[8];
	_Alignas(struct umad_event) char smaller[sizeof(struct umad_event)];

	memset(&larger, 0x55, sizeof(larger));
	memset(smaller, 0x55, sizeof(smaller));
	run_line("watch; plug mlx5_0:0; add umad0 mlx5_0");
	assert_int_equal(umad_monitor_next_event(monitor, &larger.event, sizeof(larger)), 0);
	assert_int_equal(larger.event.type, UMAD_EVENT_PORT_ADDED);
	assert_string_equal(larger.event.node, "umad0");
	assert_memory_equal(larger.newer, zero, sizeof(zero));
	assert_int_equal(umad_monitor_next_event(monitor, (struct umad_event *)(void *)smaller,
						 offsetof(struct umad_event, portnum)),
			 0);
	assert_string_equal(smaller + offsetof(struct umad_event, ca_name), "mlx5_0");
	assert_int_equal(smaller[offsetof(struct umad_event, portnum)], 0x55);
}

TEST(a_monitor_has_one_descriptor_to_poll_and_logs_why_events_are_lost)
{
	struct pollfd pollfd = {.events = POLLIN};
	struct umad_event event;

	watch();
	pollfd.fd = umad_monitor_get_fd(monitor);
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	assert_int_equal(eventfd_write(socket_fd, 1), 0);
	assert_int_equal(poll(&pollfd, 1, 0), 1);
	assert_int_equal(pollfd.revents, POLLIN);
	umad_monitor_free(NULL);
	assert_fails(umad_monitor_get_fd(NULL), EINVAL);
	assert_fails(umad_monitor_next_event(NULL, &event, sizeof(event)), EINVAL);
	uevent_error(ENOBUFS);
	assert_fails(umad_monitor_next_event(monitor, NULL, sizeof(event)), EINVAL);
	assert_int_equal(uevent_next, 0);
	keep_log(1);
	run_line("> overrun");
	end_log();
	assert_non_null(strstr(kept.text, strerror(ENOBUFS)));
}

TEST(a_caller_without_memory_still_knows_what_is_there)
{
	/* more than the initial size of the lists */
	enum {
		CAS = 9
	};
	struct umad_event event;
	unsigned n = 0;
	bool failed;
	int ret;

	do {
		bool overrun = false;
		int added = 0;

		watch();
		for (int i = 0; i < CAS; i++) {
			char name[UMAD_CA_NAME_LEN];

			snprintf(name, sizeof(name), "mlx5_%d", i);
			plug(name, i);
			send_both("add", name, i);
		}
		fake_fail_malloc(++n);
		while ((ret = umad_monitor_next_event(monitor, &event, sizeof(event))) !=
		       -EAGAIN) {
			assert_true(!ret || ret == -ENOMEM);
			overrun |= !ret && event.type == UMAD_EVENT_OVERRUN;
			added += !ret && event.type != UMAD_EVENT_OVERRUN;
		}
		failed = fake_failed();
		fake_fail_malloc(0);
		assert_true(overrun || added == 2 * CAS);
		assert_int_equal(teardown(), 0);
		assert_int_equal(setup(), 0);
	} while (failed);
	/* each message allocates once; the two lists grew twice and once */
	assert_true(n > 2 * CAS);
}

/* --- a caller that follows the events ------------------------------------------- */

#define SLOTS  3 /* a device in each has one of two names: mlx5_N or mlx4_N */
#define NAMES  (2 * SLOTS)
#define VALUES 3

/* The devices and their ports by name; a port without a device has the values 0. */
static struct {
	bool present;
	unsigned values[VALUES];
} in_sysfs[NAMES], as_read[NAMES]; /* as the caller read them at the last event */
static int numbers[NAMES];         /* the numbers of the umad devices; -1: none */
static unsigned latest;            /* no value comes back, so that no change is taken back */

/* The name, and its index. */

static const char *name_of(int i)
{
	return at("mlx%d_%d", i < SLOTS ? 5 : 4, i % SLOTS);
}

static int index_of(const char *ca_name)
{
	return (ca_name[3] == '5' ? 0 : SLOTS) + ca_name[5] - '0';
}

static void write_value(int i, int file)
{
	static const char *const files[VALUES] = {"lid", "sm_lid", "pkeys/1"};
	char name[UMAD_CA_NAME_LEN];

	strcpy(name, name_of(i));
	in_sysfs[i].values[file] = ++latest;
	fake_file(at("/sys/class/infiniband/%s/ports/1/%s", name, files[file]), "0x%x\n",
		  latest % 0xffff);
}

/* A device comes, or goes; without uevents. */
static void change_name(int i, int number)
{
	char name[UMAD_CA_NAME_LEN];

	strcpy(name, name_of(i));
	(number >= 0 ? plug : unplug)(name, number >= 0 ? number : numbers[i]);
	numbers[i] = number;
	memset(&in_sysfs[i], 0, sizeof(in_sysfs[i]));
	in_sysfs[i].present = number >= 0;
	for (int file = 0; number >= 0 && file < VALUES; file++)
		write_value(i, file);
}

/* The lowest free number, as the kernel gives it. */
static int free_number(void)
{
	int number = 0;

	for (int i = 0; i < NAMES; i++)
		if (numbers[i] == number) {
			number++;
			i = -1;
		}
	return number;
}

static void change_something(void)
{
	int i = rand() % NAMES, other = (i + SLOTS) % NAMES, number = numbers[i],
	    choice = rand() % 12;
	char name[UMAD_CA_NAME_LEN], old[64];

	if (number >= 0 && choice > 1) {
		write_value(i, rand() % VALUES);
		return;
	}
	strcpy(name, name_of(i));
	if (numbers[other] >= 0) { /* the slot's device gets this name */
		number = numbers[other];
		snprintf(old, sizeof(old), "/devices/pci0/infiniband/%s", name_of(other));
		change_name(other, -1);
		change_name(i, number);
		uevent("move", "infiniband", name, old);
	} else if (number >= 0) {
		change_name(i, -1);
		send_both("remove", name, number);
	} else {
		change_name(i, free_number());
		send_both("add", name, numbers[i]);
	}
}

/* While the library reads sysfs. */
static void change_sometimes(const char *path)
{
	(void)path;
	if (rand() % 64 == 0)
		change_something();
}

/* The next event. Reads what it is about, as a program does. */
static int read_event(enum umad_event_type *type)
{
	struct umad_event event;
	int i, ret = umad_monitor_next_event(monitor, &event, sizeof(event));

	if (ret)
		return ret;
	*type = event.type;
	i = event.type == UMAD_EVENT_OVERRUN ? 0 : index_of(event.ca_name);
	if (event.type == UMAD_EVENT_OVERRUN)
		memcpy(as_read, in_sysfs, sizeof(as_read));
	else if (event.type == UMAD_EVENT_CA_ADDED || event.type == UMAD_EVENT_CA_REMOVED)
		as_read[i].present = in_sysfs[i].present;
	else
		memcpy(as_read[i].values, in_sysfs[i].values, sizeof(as_read[i].values));
	return 0;
}

/*
 * Values change, intervals end, devices go, come and are renamed, also while sysfs is read, the
 * queue of uevents is short, and the library runs short of descriptors and memory: what the
 * caller read at the last events is what sysfs has at the end. SEQUENCES sets how often.
 * fuzz_uevent.c checks that each event fits those before it.
 */
TEST(the_caller_ends_with_what_sysfs_has)
{
	const char *wanted = getenv("SEQUENCES");
	unsigned sequences = wanted ? (unsigned)atoi(wanted) : 100;
	unsigned changes = 0, overruns = 0, failures = 0;
	enum umad_event_type type;
	int step, ret;

	srand(test_seed());
	latest = 0;
	memset(numbers, -1, sizeof(numbers));
	memset(in_sysfs, 0, sizeof(in_sysfs));
	watch_ports();
	memcpy(as_read, in_sysfs, sizeof(as_read));
	for (unsigned sequence = 0; sequence < sequences; sequence++) {
		uevent_room = 1 + rand() % 16;
		fake_before_open(rand() % 2 ? change_sometimes : NULL);
		for (step = rand() % 8; step >= 0; step--) {
			change_something();
			if (rand() % 2)
				continue;
			if (rand() % 2)
				await_look();
			fake_fail_call((unsigned)(rand() % 4 ? 0 : rand() % 400), EMFILE);
			fake_fail_malloc((unsigned)(rand() % 4 ? 0 : rand() % 30));
			ret = read_event(&type);
			fake_fail_call(0, 0);
			fake_fail_malloc(0);
			failures += ret == -EMFILE || ret == -ENOMEM;
		}
		fake_before_open(NULL);
		for (int look = 0; look < 2; look++) {
			await_look();
			while (!(ret = read_event(&type))) {
				changes += type == UMAD_EVENT_PORT_CHANGED;
				overruns += type == UMAD_EVENT_OVERRUN;
			}
			assert_int_equal(ret, -EAGAIN);
		}
		assert_memory_equal(as_read, in_sysfs, sizeof(as_read));
	}
	assert_true(changes > sequences / 10 && overruns > sequences / 10 &&
		    failures > sequences / 100);
}
