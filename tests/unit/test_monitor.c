/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"
#include "netlink.h"
#include "test.h"

#include <infiniband/umad_ext.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
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

/* A path in sysfs. Valid until the next call. */
__attribute__((format(printf, 1, 2))) static const char *at(const char *format, ...)
{
	static char path[128];
	va_list args;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	return path;
}

static void plug(const char *ca_name, int number)
{
	fake_ca(ca_name);
	fake_port(ca_name, 1, 1);
	fake_umad(number, ca_name, 1);
}

/* The smallest device in sysfs, so that a test can make many quickly. */
static void plug_lightly(const char *ca_name, int number)
{
	fake_file(at("/sys/class/infiniband/%s/node_type", ca_name), "1: CA\n");
	fake_file(at("/sys/class/infiniband_mad/umad%d/ibdev", number), "%s\n", ca_name);
	fake_file(at("/sys/class/infiniband_mad/umad%d/port", number), "1\n");
}

static void unplug(const char *ca_name, int number)
{
	fake_remove(at("/sys/class/infiniband/%s", ca_name));
	fake_remove(at("/sys/class/infiniband_mad/umad%d", number));
}

/* Queues a message as the kernel sends it; devpath_old may be NULL. */
static void uevent(const char *action, const char *subsystem, const char *name,
		   const char *devpath_old)
{
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
	length = sprintf(text, "%s@/devices/pci0/%s/%s", action, subsystem, name) + 1;
	length += sprintf(text + length, "ACTION=%s", action) + 1;
	length += sprintf(text + length, "DEVPATH=/devices/pci0/%s/%s", subsystem, name) + 1;
	length += sprintf(text + length, "SUBSYSTEM=%s", subsystem) + 1;
	if (devpath_old)
		length += sprintf(text + length, "DEVPATH_OLD=%s", devpath_old) + 1;
	length += sprintf(text + length, "SEQNUM=4711") + 1;
	uevents[uevent_count++].length = length;
}

static void umad_uevent(const char *action, int number)
{
	char node[32];

	snprintf(node, sizeof(node), "umad%d", number);
	uevent(action, "infiniband_mad", node, NULL);
}

static void uevent_error(int error)
{
	uevents[uevent_count++].length = -error;
}

/* Appends "behind" to the uevent queued last. */
static void lengthen_uevent(const char *behind)
{
	char *end = uevents[uevent_count - 1].text + uevents[uevent_count - 1].length;

	uevents[uevent_count - 1].length += sprintf(end, "%s", behind) + 1;
}

/* --- rows ----------------------------------------------------------------------- */

/*
 * A row has a sentence and a line of steps. A step has a verb and its arguments; behind ">" are
 * the events that the monitor then reports, and no others:
 *
 *	"plug mlx5_0:0; watch; remove umad0 mlx5_0 > -mlx5_0/1=umad0 -mlx5_0"
 *
 * sysfs:
 *	plug CA:N	a device whose port 1 has umadN
 *	port CA:N	its port 2 has umadN
 *	ca CA, rnic CA	a device without ports; a device of another kind
 *	unplug CA:N	the device and umadN are not there any more
 *	gone PATH	a file or folder below /sys/class is not there any more
 *	set CA:FILE=VALUE	a file of its port 1
 *
 * The monitor and uevents. The subsystem is infiniband_mad for umadN and issmN, and infiniband
 * for others; SUBSYSTEM/NAME has another one.
 *	watch		opens the monitor
 *	add NAME, remove NAME, change NAME, move NAME	a uevent
 *	move OLD:NEW	a uevent with the old name
 *	trigger NAME	as "udevadm trigger --action=remove" has it
 *	fail ERROR	the socket fails once
 *	full		the next system call fails with EMFILE
 *	ports		opens a monitor that watches ports, at an interval that does not end
 *	look		waits until such an interval has ended
 *
 * Events: +CA, -CA, +CA/PORT=NODE, -CA/PORT=NODE, *CA/PORT=NODE (changed), overrun. An error
 *ends the events of a step.
 */
static const struct {
	const char *name;
	int number;
} named_errors[] = {{"EIO", EIO}, {"EMFILE", EMFILE}, {"ENOBUFS", ENOBUFS}, {"ENOMEM", ENOMEM}};

#define NAMED_ERRORS (sizeof(named_errors) / sizeof(named_errors[0]))

/* The event in words. Members that do not apply are zero. */
static void describe(const struct umad_event *event, char *text)
{
	struct umad_event whole = {.type = event->type, .portnum = event->portnum};
	bool added = event->type == UMAD_EVENT_CA_ADDED || event->type == UMAD_EVENT_PORT_ADDED;
	bool changed = event->type == UMAD_EVENT_PORT_CHANGED;
	bool port = event->type == UMAD_EVENT_PORT_ADDED ||
		    event->type == UMAD_EVENT_PORT_REMOVED || changed;

	strcpy(whole.ca_name, event->ca_name);
	strcpy(whole.node, event->node);
	assert_memory_equal(event, &whole, sizeof(whole));
	assert_true(port || !event->portnum);
	assert_int_equal(!port, !event->node[0]);
	if (event->type == UMAD_EVENT_OVERRUN)
		sprintf(text, " overrun%s", event->ca_name);
	else if (port)
		sprintf(text, " %c%s/%d=%s",
			changed ? '*'
			: added ? '+'
				: '-',
			event->ca_name, event->portnum, event->node);
	else
		sprintf(text, " %c%s", added ? '+' : '-', event->ca_name);
}

/* All that the monitor reports now: each word has a space before it. */
static const char *reported(void)
{
	static char text[1024];
	struct umad_event event;
	size_t length = 0;
	int ret;

	text[0] = '\0';
	for (;;) {
		memset(&event, 0x5a, sizeof(event));
		errno = 0;
		ret = umad_monitor_next_event(monitor, &event, sizeof(event));
		assert_true(length < sizeof(text) - 100);
		if (ret) {
			assert_int_equal(errno, -ret);
			for (size_t i = 0; i < NAMED_ERRORS; i++)
				if (ret == -named_errors[i].number)
					sprintf(text + length, " %s", named_errors[i].name);
			assert_true(ret == -EAGAIN || text[length]);
			return text;
		}
		describe(&event, text + length);
		length += strlen(text + length);
	}
}

/* Asserts that the monitor reports these events and no others; "": none. */
static void reports(const char *expected)
{
	const char *seen = reported();

	assert_string_equal(*seen ? seen + 1 : seen, expected);
}

static const char *subsystem_of(const char *name)
{
	bool mad = !strncmp(name, "umad", 4) || !strncmp(name, "issm", 4);

	return mad ? "infiniband_mad" : "infiniband";
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
	else
		uevent(action, subsystem_of(word), word, NULL);
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

/* Carries out a verb for one word. */
static bool carry_out(const char *verb, char *word)
{
	char *colon = strchr(word, ':');
	int number = colon ? atoi(colon + 1) : -1;

	if (!strcmp(verb, "add") || !strcmp(verb, "remove") || !strcmp(verb, "change") ||
	    !strcmp(verb, "move")) {
		send_uevent(verb, word);
	} else if (!strcmp(verb, "trigger")) {
		send_uevent("remove", word);
		lengthen_uevent("SYNTH_UUID=0");
	} else if (!strcmp(verb, "fail")) {
		for (size_t i = 0; i < NAMED_ERRORS; i++)
			if (!strcmp(word, named_errors[i].name))
				uevent_error(named_errors[i].number);
	} else if (!strcmp(verb, "ca")) {
		fake_ca(word);
	} else if (!strcmp(verb, "rnic")) {
		fake_file(at("/sys/class/infiniband/%s/node_type", word), "4: RNIC\n");
	} else if (!strcmp(verb, "gone")) {
		fake_remove(at("/sys/class/%s", word));
	} else if (!strcmp(verb, "set")) {
		char *value = strchr(word, '=');

		*value++ = '\0';
		*colon++ = '\0';
		fake_file(at("/sys/class/infiniband/%s/ports/1/%s", word, colon), "%s\n",
			  value);
	} else if (colon) {
		*colon = '\0';
		if (!strcmp(verb, "plug"))
			plug(word, number);
		else if (!strcmp(verb, "port"))
			fake_umad(number, word, 2);
		else if (!strcmp(verb, "unplug"))
			unplug(word, number);
		else
			return false;
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
		else if (verb && !strcmp(verb, "full"))
			fake_fail_call(1, EMFILE);
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

static const struct row rows[] = {
	/* the order of kernels since 4.20: first the clients' devices */
	{"a device appears with its port",
	 "watch > nothing; plug mlx5_0:0; add umad0 issm0 mlx5_0 > +mlx5_0/1=umad0 +mlx5_0"},
	{"a device disappears with its port",
	 "plug mlx5_0:0 mlx5_1:1; watch; unplug mlx5_0:0; "
	 "remove umad0 issm0 mlx5_0 > -mlx5_0/1=umad0 -mlx5_0"},
	{"a device that goes first takes its ports along",
	 "plug mlx5_0:0; watch; remove mlx5_0 umad0 > -mlx5_0/1=umad0 -mlx5_0"},
	{"the module may be loaded late",
	 "ca mlx5_0; watch; plug mlx5_0:3; add umad3 > +mlx5_0/1=umad3"},
	{"a renamed device goes and comes",
	 "plug mlx5_0:0; watch; unplug mlx5_0:0; plug ibp1s0:0; "
	 "move mlx5_0:ibp1s0 > -mlx5_0/1=umad0 -mlx5_0 +ibp1s0 +ibp1s0/1=umad0"},
	{"known devices are not reported again",
	 "plug mlx5_0:0; watch; add mlx5_0 umad0 > nothing"},
	{"a replug under the same number is reported",
	 "plug mlx5_0:0; watch; remove umad0; add umad0 > -mlx5_0/1=umad0 +mlx5_0/1=umad0"},
	/* a caller may have listed the device meanwhile */
	{"a device that came and went meanwhile is an overrun",
	 "watch; add umad0 mlx5_0; remove umad0 mlx5_0 > overrun"},
	{"devices of other kinds and other uevents are ignored",
	 "plug mlx5_0:0; watch; rnic iw0; add iw0 net/umad0; "
	 "remove net/mlx5_0 infiniband_mad/umadx; change mlx5_0 umad0; move mlx5_0; "
	 "add infiniband/../mlx5_0 a_name_that_is_far_too_long > nothing"},
	/* after the overrun the caller lists the devices again */
	{"lost events are an overrun, and the devices are listed anew",
	 "plug mlx5_0:0; watch; plug mlx5_1:1; unplug mlx5_0:0; fail ENOBUFS; add mlx5_1; "
	 "remove mlx5_0 > overrun; remove umad1 > -mlx5_1/1=umad1"},
	{"a socket that fails is reported, and an overrun follows",
	 "watch; fail EIO > EIO; > overrun"},
	{"members that do not apply are zero",
	 "watch; plug mlx5_0:0; add mlx5_0; fail ENOBUFS > +mlx5_0 +mlx5_0/1=umad0 overrun"},
	{"every port of a device is reported",
	 "watch; plug mlx5_0:0; port mlx5_0:1; "
	 "add umad0 umad1 mlx5_0 > +mlx5_0/1=umad0 +mlx5_0/2=umad1 +mlx5_0"},
	{"a module that is unloaded takes ports only, and devices are reported without its "
	 "folder",
	 "plug mlx5_0:0; watch; gone infiniband_mad; remove umad0 > -mlx5_0/1=umad0; "
	 "ca mlx5_1; add mlx5_1 > +mlx5_1"},
	{"a number that another device takes over is reported",
	 "plug mlx5_0:0; watch; unplug mlx5_0:0; plug mlx4_0:0; remove umad0 mlx5_0; "
	 "add umad0 mlx4_0 > -mlx5_0/1=umad0 -mlx5_0 +mlx4_0/1=umad0 +mlx4_0"},
	/* a caller may have listed it under the intermediate name */
	{"a device renamed twice is known under its last name",
	 "plug mlx5_0:0; watch; unplug mlx5_0:0; plug ibp1s0:0; "
	 "move mlx5_0:tmp tmp:ibp1s0 > overrun; remove ibp1s0 > -ibp1s0/1=umad0 -ibp1s0"},
	/* mlx5_0 first had umad0, which only a list showed; now another device has umad0 */
	{"a node with an earlier owner is an overrun",
	 "watch; plug mlx5_1:0; add umad0; remove umad0; add umad0 > +mlx5_1/1=umad0 overrun; "
	 "remove umad0 > -mlx5_1/1=umad0"},
	/* the device had the name mlx5_1 for a while, which only a list showed */
	{"a device renamed back is an overrun",
	 "watch; plug mlx5_0:0; add mlx5_0; "
	 "move mlx5_0:mlx5_1 mlx5_1:mlx5_0 > +mlx5_0 +mlx5_0/1=umad0 overrun"},
	{"a synthetic uevent is no event", "plug mlx5_0:0; watch; trigger umad0 > nothing"},
	{"an unknown device that goes is not reported",
	 "rnic iw0; plug mlx5_0:0; watch; remove iw0 mlx5_00 mlx5_ umad00 issm0; rnic iw1; "
	 "move iw0:iw1 > nothing"},
	/* afterwards it knows the present devices, and reports none twice */
	{"a listing after a loss is tried again until it succeeds",
	 "watch; plug mlx5_0:0; fail ENOBUFS; full > EMFILE; full > EMFILE; full > EMFILE; "
	 "> overrun; remove mlx5_0 > -mlx5_0/1=umad0 -mlx5_0"},
	/* the removal of an absent device is not reported, that of an unseen one is */
	{"after an overrun the present devices are known",
	 "plug mlx5_0:0; watch; unplug mlx5_0:0; plug mlx5_1:1; fail ENOBUFS > overrun; "
	 "remove mlx5_0 mlx5_1 > -mlx5_1/1=umad1 -mlx5_1"},
};

TEST_ROWS(run_row, rows);

/* --- values of ports ------------------------------------------------------------ */

static const struct row port_rows[] = {
	{"each value of a port is watched",
	 "plug mlx5_0:0 mlx5_1:1; ports; "
	 "set mlx5_1:state=1; look > *mlx5_1/1=umad1; "
	 "set mlx5_1:phys_state=2; look > *mlx5_1/1=umad1; "
	 "set mlx5_1:rate=10; look > *mlx5_1/1=umad1; "
	 "set mlx5_1:lid=0x77; look > *mlx5_1/1=umad1; "
	 "set mlx5_1:lid_mask_count=2; look > *mlx5_1/1=umad1; "
	 "set mlx5_1:sm_lid=0x78; look > *mlx5_1/1=umad1; "
	 "set mlx5_1:sm_sl=4; look > *mlx5_1/1=umad1; "
	 "set mlx5_1:cap_mask=0x2; look > *mlx5_1/1=umad1; "
	 "set mlx5_1:gids/0=fe80:0:0:1:2:c903:0:1; look > *mlx5_1/1=umad1"},
	{"each P_Key is watched",
	 "plug mlx5_0:0; ports; set mlx5_0:pkeys/1=0x8001; look > *mlx5_0/1=umad0; "
	 "set mlx5_0:pkeys/2=0x8002; look > *mlx5_0/1=umad0; "
	 "gone infiniband/mlx5_0/ports/1/pkeys/2; look > *mlx5_0/1=umad0"},
	{"several changes are one event for each port, and then none",
	 "plug mlx5_0:0; ports; plug mlx5_1:1; add umad1 > +mlx5_1/1=umad1; "
	 "set mlx5_0:lid=0x77 mlx5_0:state=1 mlx5_1:lid=0x78; look > *mlx5_0/1=umad0 "
	 "*mlx5_1/1=umad1; look > nothing"},
	{"a change that is taken back gives no event",
	 "plug mlx5_0:0; set mlx5_0:lid=0x1; ports; set mlx5_0:lid=0x2; "
	 "set mlx5_0:lid=0x1; look > nothing"},
	{"ports are compared at the end of an interval only",
	 "plug mlx5_0:0; ports; set mlx5_0:lid=0x77 > nothing; look > *mlx5_0/1=umad0"},
	{"a change before the watch gives no event",
	 "plug mlx5_0:0; set mlx5_0:lid=0x77; ports; look > nothing"},
	{"a port that was added is watched from its event on",
	 "ports; plug mlx5_0:0; add umad0 > +mlx5_0/1=umad0; set mlx5_0:lid=0x77; "
	 "look > *mlx5_0/1=umad0"},
	{"a port that had no values when it was added gives an event when it has",
	 "ports; plug mlx5_0:0; gone infiniband/mlx5_0/ports; "
	 "add umad0 > +mlx5_0/1=umad0; plug mlx5_0:0; look > *mlx5_0/1=umad0"},
	{"a port that is being removed did not change",
	 "plug mlx5_0:0; ports; unplug mlx5_0:0; look > nothing; "
	 "remove umad0 mlx5_0 > -mlx5_0/1=umad0 -mlx5_0; look > nothing"},
	{"a value that cannot be read for a while did not change",
	 "plug mlx5_0:0; set mlx5_0:lid=0x1; ports; "
	 "gone infiniband/mlx5_0/ports/1/lid; look > nothing; set mlx5_0:lid=0x1; "
	 "look > nothing; set mlx5_0:lid=0x2; look > *mlx5_0/1=umad0"},
	{"uevents are read before ports",
	 "plug mlx5_0:0; ports; set mlx5_0:lid=0x77; look; plug mlx5_1:1; "
	 "add umad1 > +mlx5_1/1=umad1 *mlx5_0/1=umad0"},
	{"a shortage while ports are compared is an overrun",
	 "plug mlx5_0:0; ports; set mlx5_0:lid=0x77; look; full > EMFILE; full > "
	 "EMFILE; "
	 "> overrun; look > nothing"},
	{"after an overrun the values of ports are known",
	 "plug mlx5_0:0; ports; set mlx5_0:lid=0x77; fail ENOBUFS > overrun; "
	 "look > nothing; set mlx5_0:lid=0x78; look > *mlx5_0/1=umad0"},
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

TEST(port_0_of_a_switch_is_a_port)
{
	fake_ca("mlx5_0");
	fake_file("/sys/class/infiniband/mlx5_0/node_type", "2: switch\n");
	fake_port("mlx5_0", 0, 1);
	fake_umad(0, "mlx5_0", 0);
	run_line("ports");
	fake_file("/sys/class/infiniband/mlx5_0/ports/0/lid", "0x77\n");
	run_line("look > *mlx5_0/0=umad0; remove mlx5_0 > -mlx5_0/0=umad0 -mlx5_0");
}

TEST(arguments_of_a_watch_are_checked)
{
	assert_fails(umad_monitor_open(NULL, 1), EINVAL);
	assert_fails(umad_monitor_open(&monitor, -1), EINVAL);
	assert_null(monitor);
}

TEST(the_first_reading_of_the_ports_may_fail)
{
	int err, failures = 0;

	plug("mlx5_0", 0);
	do {
		fake_fail_call((unsigned)++failures, EMFILE);
		err = umad_monitor_open(&monitor, INT_MAX);
		assert_true(!err || err == -EMFILE);
	} while (err);
	fake_fail_call(0, 0);
	assert_true(failures > 10);
	run_line("set mlx5_0:lid=0x77; look > *mlx5_0/1=umad0");
}

#define WATCHED     3
#define VALUE_FILES 3

/* The ports as sysfs has them, and as the caller read them; a port without a device is zero. */
struct watched {
	bool present;
	unsigned values[VALUE_FILES];
};

static struct watched in_sysfs[WATCHED], as_read[WATCHED];
static int numbers[WATCHED]; /* the numbers of the umad devices; -1: none */
static unsigned latest;      /* no value comes back, so that no change is taken back */

static void write_value(int port, int file)
{
	static const char *const files[VALUE_FILES] = {"lid", "sm_lid", "pkeys/1"};

	in_sysfs[port].values[file] = ++latest;
	fake_file(at("/sys/class/infiniband/mlx5_%d/ports/1/%s", port, files[file]), "0x%x\n",
		  latest % 0xffff);
}

static void pull_out(int port)
{
	char name[UMAD_CA_NAME_LEN];

	snprintf(name, sizeof(name), "mlx5_%d", port);
	unplug(name, numbers[port]);
	umad_uevent("remove", numbers[port]);
	uevent("remove", "infiniband", name, NULL);
	in_sysfs[port] = (struct watched){0};
	numbers[port] = -1;
}

/* With the lowest free number, as the kernel gives it. */
static void put_in(int port)
{
	char name[UMAD_CA_NAME_LEN];
	int number = 0, i;

	for (i = 0; i < WATCHED; i++)
		if (numbers[i] == number) {
			number++;
			i = -1;
		}
	snprintf(name, sizeof(name), "mlx5_%d", port);
	plug(name, number);
	numbers[port] = number;
	in_sysfs[port].present = true;
	for (int file = 0; file < VALUE_FILES; file++)
		write_value(port, file);
	umad_uevent("add", number);
	uevent("add", "infiniband", name, NULL);
}

static void change_a_port(void)
{
	int port = rand() % WATCHED;

	if (in_sysfs[port].present && rand() % 8)
		write_value(port, rand() % VALUE_FILES);
	else if (uevent_count > 60)
		return;
	else if (in_sysfs[port].present)
		pull_out(port);
	else
		put_in(port);
}

/* While the library reads sysfs. */
static void change_sometimes(const char *path)
{
	(void)path;
	if (rand() % 64 == 0)
		change_a_port();
}

/* Reads what the event is about, as a program does. */
static void read_again(const struct umad_event *event)
{
	int port = event->ca_name[5] - '0';

	if (event->type == UMAD_EVENT_OVERRUN)
		memcpy(as_read, in_sysfs, sizeof(as_read));
	else if (event->type != UMAD_EVENT_CA_ADDED && event->type != UMAD_EVENT_CA_REMOVED)
		as_read[port] = in_sysfs[port];
}

/*
 * Values change, intervals end, devices go and come, also while sysfs is read, and the library
 * runs short of descriptors and memory: the values that the caller read at the last event are
 * those of sysfs at the end.
 */
TEST(the_caller_ends_with_the_values_of_sysfs)
{
	unsigned changes = 0, overruns = 0, failures = 0;
	struct umad_event event;
	int sequence, step, ret;

	srand(test_seed());
	latest = 0;
	memset(in_sysfs, 0, sizeof(in_sysfs));
	memset(numbers, -1, sizeof(numbers));
	for (int port = 0; port < WATCHED; port++)
		put_in(port);
	uevent_count = 0;
	watch_ports();
	memcpy(as_read, in_sysfs, sizeof(as_read));
	for (sequence = 0; sequence < 300; sequence++) {
		fake_before_open(rand() % 2 ? change_sometimes : NULL);
		for (step = rand() % 8; step >= 0; step--) {
			change_a_port();
			if (rand() % 32 == 0)
				uevent_error(ENOBUFS);
			if (rand() % 4)
				continue;
			await_look();
			fake_fail_call((unsigned)(rand() % 4 ? 0 : rand() % 400), EMFILE);
			fake_fail_malloc((unsigned)(rand() % 4 ? 0 : rand() % 30));
			ret = umad_monitor_next_event(monitor, &event, sizeof(event));
			fake_fail_call(0, 0);
			fake_fail_malloc(0);
			failures += ret == -EMFILE || ret == -ENOMEM;
			if (!ret)
				read_again(&event);
		}
		fake_before_open(NULL);
		await_look();
		while (!(ret = umad_monitor_next_event(monitor, &event, sizeof(event)))) {
			changes += event.type == UMAD_EVENT_PORT_CHANGED;
			overruns += event.type == UMAD_EVENT_OVERRUN;
			read_again(&event);
		}
		assert_int_equal(ret, -EAGAIN);
		await_look();
		while (!(ret = umad_monitor_next_event(monitor, &event, sizeof(event))))
			read_again(&event);
		assert_int_equal(ret, -EAGAIN);
		assert_memory_equal(as_read, in_sysfs, sizeof(as_read));
		uevent_count = uevent_next = 0;
	}
	assert_true(changes > 50 && overruns > 0 && failures > 0);
}

/* --- messages ------------------------------------------------------------------- */

static void raw_uevent(const char *text, size_t length)
{
	memcpy(uevents[uevent_count].text, text, length);
	uevents[uevent_count++].length = (int)length;
}

TEST(a_message_as_the_kernel_words_it_is_understood)
{
	static const char port[] =
		"add@/devices/pci0000:00/0000:00:03.0/infiniband_mad/umad0\0ACTION=add\0"
		"DEVPATH=/devices/pci0000:00/0000:00:03.0/infiniband_mad/umad0\0"
		"SUBSYSTEM=infiniband_mad\0MAJOR=231\0MINOR=0\0DEVNAME=infiniband/umad0\0"
		"SEQNUM=1234";
	static const char ca[] =
		"add@/devices/pci0000:00/0000:00:03.0/infiniband/mlx5_0\0ACTION=add\0"
		"DEVPATH=/devices/pci0000:00/0000:00:03.0/infiniband/mlx5_0\0"
		"SUBSYSTEM=infiniband\0NAME=mlx5_0\0SEQNUM=1235";

	watch();
	plug("mlx5_0", 0);
	raw_uevent(port, sizeof(port));
	raw_uevent(ca, sizeof(ca));
	reports("+mlx5_0/1=umad0 +mlx5_0");
}

TEST(malformed_messages_are_passed_over)
{
	static const char *const texts[] = {
		"",
		"rubbish",
		"ACTION=remove",
		"SUBSYSTEM=infiniband",
		"ACTION=",
		"DEVPATH=",
		"add@/devices/infiniband/mlx5_0",
	};
	size_t i;

	plug("mlx5_0", 0);
	watch();
	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		raw_uevent(texts[i], strlen(texts[i]) + 1);
	raw_uevent("ACTION=remove\0SUBSYSTEM=infiniband\0DEVPATH=", 44);
	reports("");
}

TEST(random_messages_do_no_harm)
{
	struct umad_event event;
	int i, j, ret;

	srand(test_seed());
	plug("mlx5_0", 0);
	watch();
	for (i = 0; i < 20000; i++) {
		uevent_count = uevent_next = 0;
		uevent(rand() % 2 ? "add" : "remove",
		       rand() % 2 ? "infiniband" : "infiniband_mad",
		       rand() % 2 ? "mlx5_0" : "umad0", rand() % 2 ? "/x/mlx5_1" : NULL);
		for (j = rand() % 6; j > 0; j--)
			uevents[0].text[rand() % uevents[0].length] = (char)rand();
		uevents[0].length = 1 + rand() % uevents[0].length;
		uevents[0].text[uevents[0].length - 1] = '\0';
		do {
			ret = umad_monitor_next_event(monitor, &event, sizeof(event));
		} while (!ret);
		assert_int_equal(ret, -EAGAIN);
	}
}

/* --- sysfs ---------------------------------------------------------------------- */

/* The order of the ports is not specified. */
TEST(one_message_can_be_several_events)
{
	const char *seen;

	run_line("plug mlx5_0:0; port mlx5_0:1; watch; remove mlx5_0");
	seen = reported();
	if (strcmp(seen, " -mlx5_0/1=umad0 -mlx5_0/2=umad1 -mlx5_0") != 0)
		assert_string_equal(seen, " -mlx5_0/2=umad1 -mlx5_0/1=umad0 -mlx5_0");
	assert_int_equal(uevent_next, 1);
}

TEST(names_as_long_as_they_may_be_are_told_whole)
{
	/* 19 and 31 characters */
	static const char ca_name[] = "a_name_19_character";
	static const char node[] = "umad000000000000000000000000007";

	assert_int_equal(sizeof(ca_name), UMAD_CA_NAME_LEN);
	assert_int_equal(sizeof(node), sizeof(((struct umad_event *)NULL)->node));
	watch();
	fake_ca(ca_name);
	fake_file(at("/sys/class/infiniband_mad/%s/ibdev", node), "%s\n", ca_name);
	fake_file(at("/sys/class/infiniband_mad/%s/port", node), "1\n");
	uevent("add", "infiniband_mad", node, NULL);
	uevent("add", "infiniband", ca_name, NULL);
	reports("+a_name_19_character/1=umad000000000000000000000000007 +a_name_19_character");
}

TEST(a_node_that_sysfs_does_not_explain_is_not_told)
{
	static const struct {
		const char *ibdev, *port; /* NULL: the file does not exist */
	} nodes[] = {
		{NULL, "1\n"},
		{"mlx5_0\n", NULL},
		{"", "1\n"},
		{"\n", "1\n"},
		{"mlx5_0\n", ""},
		{"mlx5_0\n", "one\n"},
		{"mlx5_0\n", "-1\n"},
		{"mlx5_0\n", "2147483648\n"},
		{"mlx5_0\n", "99999999999999999999\n"},
		{"../mlx5_0\n", "1\n"},
		{"..\n", "1\n"},
		{"a/b\n", "1\n"},
		{"a_name_of_20_letters\n", "1\n"},
	};
	static char huge[8192];
	size_t i;

	memset(huge, 'm', sizeof(huge));
	watch();
	for (i = 0; i < sizeof(nodes) / sizeof(*nodes); i++) {
		fake_remove("/sys/class/infiniband_mad/umad0");
		fake_dir("/sys/class/infiniband_mad/umad0");
		if (nodes[i].ibdev)
			fake_file("/sys/class/infiniband_mad/umad0/ibdev", "%s",
				  nodes[i].ibdev);
		if (nodes[i].port)
			fake_file("/sys/class/infiniband_mad/umad0/port", "%s", nodes[i].port);
		uevent("add", "infiniband_mad", "umad0", NULL);
		/* a device without its attributes is being removed */
		if (!nodes[i].ibdev || !nodes[i].port)
			reports("overrun");
	}
	fake_file("/sys/class/infiniband_mad/umad0/port", "1\n");
	fake_file_bytes("/sys/class/infiniband_mad/umad0/ibdev", huge, sizeof(huge));
	uevent("add", "infiniband_mad", "umad0", NULL);
	reports("");
	fake_remove("/sys/class/infiniband_mad/umad0");
	fake_link("/sys/class/infiniband_mad/umad0", "../nowhere");
	uevent("add", "infiniband_mad", "umad0", NULL);
	reports("overrun");
}

TEST(attributes_without_a_newline_are_read)
{
	watch();
	fake_file("/sys/class/infiniband/mlx5_0/node_type", "1: CA");
	fake_file("/sys/class/infiniband_mad/umad0/ibdev", "mlx5_0");
	fake_file("/sys/class/infiniband_mad/umad0/port", "1");
	uevent("add", "infiniband_mad", "umad0", NULL);
	uevent("add", "infiniband", "mlx5_0", NULL);
	reports("+mlx5_0/1=umad0 +mlx5_0");
}

/* Unplugs the device between reads of the two files of a node. */
static void unplug_before_port(const char *path)
{
	if (strstr(path, "/port"))
		fake_remove("/sys/class/infiniband_mad/umad0");
}

TEST(a_node_that_vanishes_while_it_is_read_is_told_as_an_overrun)
{
	watch();
	plug("mlx5_0", 0);
	fake_before_open(unplug_before_port);
	uevent("add", "infiniband_mad", "umad0", NULL);
	reports("overrun");
	fake_before_open(NULL);
	assert_int_equal(access(fake_real_path("/sys/class/infiniband_mad/umad0"), F_OK), -1);
}

/* Plugs in a device just after the list of devices was read. */
static void plug_late(const char *path)
{
	if (strcmp(path, "/sys/class/infiniband_mad"))
		return;
	fake_before_open(NULL);
	plug("mlx5_0", 0);
	uevent("add", "infiniband_mad", "umad0", NULL);
	uevent("add", "infiniband", "mlx5_0", NULL);
}

TEST(a_device_that_comes_while_opening_is_not_missed)
{
	fake_before_open(plug_late);
	watch();
	/* the first list has the port, but not the device */
	reports("+mlx5_0");
}

TEST(a_listing_that_fails_is_told_and_an_overrun_follows)
{
	struct umad_event event;

	watch();
	fake_dir("/sys/class/infiniband_mad");
	fake_file("/sys/class/infiniband/mlx5_0/node_type", "1: CA\n");
	/* two calls read its node_type, the third lists the nodes */
	uevent("add", "infiniband", "mlx5_0", NULL);
	fake_fail_call(3, EMFILE);
	assert_fails(umad_monitor_next_event(monitor, &event, sizeof(event)), EMFILE);
	assert_true(fake_failed());
	reports("overrun");
}

/* --- opening, and arguments ----------------------------------------------------- */

TEST(opening_fails_without_memory_or_rights)
{
	unsigned n;
	int ret;

	plug("mlx5_0", 0);
	for (n = 1;; n++) {
		fake_fail_malloc(n);
		ret = umad_monitor_open(&monitor, 0);
		if (!fake_failed())
			break;
		assert_int_equal(ret, -ENOMEM);
		assert_int_equal(opened, 0);
	}
	fake_fail_malloc(0);
	assert_int_equal(ret, 0);
	umad_monitor_free(monitor);
	monitor = NULL;
	fake_fail_call(1, EACCES);
	assert_int_equal(umad_monitor_open(&monitor, 0), -EACCES);
	assert_int_equal(opened, 0);
}

TEST(watching_begins_before_looking)
{
	open_error = EPERM;
	assert_int_equal(umad_monitor_open(&monitor, 0), -EPERM);
	assert_int_equal(fake_calls(), 0);
}

TEST(a_failed_opening_stores_nothing)
{
	static const int errors[] = {EOPNOTSUPP, ENOMEM, EPERM, EMFILE};
	struct umad_monitor *untouched = (struct umad_monitor *)&opened, *stored;
	size_t i;

	for (i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		stored = untouched;
		open_error = errors[i];
		errno = 0;
		assert_int_equal(umad_monitor_open(&stored, 0), -errors[i]);
		assert_int_equal(errno, errors[i]);
		assert_ptr_equal(stored, untouched);
	}
}

TEST(either_folder_that_cannot_be_listed_fails_the_opening)
{
	static const char *const folders[] = {"/sys/class/infiniband",
					      "/sys/class/infiniband_mad"};
	unsigned n, calls;

	/* both folders are empty: two listings are all calls */
	fake_dir(folders[0]);
	fake_dir(folders[1]);
	calls = fake_calls();
	watch();
	assert_int_equal(fake_calls() - calls, 2);
	umad_monitor_free(monitor);
	monitor = NULL;
	for (n = 1; n <= 2; n++) {
		fake_fail_call(n, EMFILE);
		assert_fails(umad_monitor_open(&monitor, 0), EMFILE);
		assert_true(fake_failed());
		assert_null(monitor);
		assert_int_equal(opened, 0);
	}
}

TEST(a_monitor_has_one_descriptor_to_poll)
{
	struct pollfd pollfd = {.events = POLLIN};

	watch();
	pollfd.fd = umad_monitor_get_fd(monitor);
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	assert_int_equal(eventfd_write(socket_fd, 1), 0);
	assert_int_equal(poll(&pollfd, 1, 0), 1);
	assert_int_equal(pollfd.revents, POLLIN);
	umad_monitor_free(NULL);
}

/* A program compiled with an older or a newer structure. */
TEST(an_event_has_the_size_of_the_program_s_structure)
{
	struct {
		struct umad_event event;
		char newer[8];
	} larger;
	_Alignas(struct umad_event) char smaller[sizeof(struct umad_event)];

	watch();
	memset(&larger, 0x55, sizeof(larger));
	memset(smaller, 0x55, sizeof(smaller));
	plug("mlx5_0", 0);
	uevent("add", "infiniband_mad", "umad0", NULL);
	uevent("add", "infiniband", "mlx5_0", NULL);
	assert_int_equal(umad_monitor_next_event(monitor, &larger.event, sizeof(larger)), 0);
	assert_int_equal(larger.event.type, UMAD_EVENT_PORT_ADDED);
	assert_string_equal(larger.event.node, "umad0");
	for (size_t i = 0; i < sizeof(larger.newer); i++)
		assert_int_equal(larger.newer[i], 0);
	assert_int_equal(umad_monitor_next_event(monitor, (struct umad_event *)(void *)smaller,
						 offsetof(struct umad_event, portnum)),
			 0);
	assert_string_equal(smaller + offsetof(struct umad_event, ca_name), "mlx5_0");
	assert_int_equal(smaller[offsetof(struct umad_event, portnum)], 0x55);
}

TEST(null_arguments_are_refused_with_errno)
{
	struct umad_event event;

	watch();
	assert_fails(umad_monitor_open(NULL, 0), EINVAL);
	assert_fails(umad_monitor_get_fd(NULL), EINVAL);
	assert_fails(umad_monitor_next_event(NULL, &event, sizeof(event)), EINVAL);
	/* a call that fails reads no message */
	uevent_error(ENOBUFS);
	assert_fails(umad_monitor_next_event(monitor, NULL, sizeof(event)), EINVAL);
	assert_int_equal(uevent_next, 0);
	reports("overrun");
}

static char logged[128];

static void keep_log(enum umad_log_level level, const char *text, void *user)
{
	(void)user;
	if (level == UMAD_LOG_INFO)
		snprintf(logged, sizeof(logged), "%s", text);
}

TEST(a_loss_is_logged_with_its_reason)
{
	watch();
	logged[0] = '\0';
	umad_set_log_hook(keep_log, NULL);
	umad_debug(1);
	uevent_error(ENOBUFS);
	reports("overrun");
	umad_debug(0);
	umad_set_log_hook(NULL, NULL);
	assert_non_null(strstr(logged, strerror(ENOBUFS)));
}

/* --- memory --------------------------------------------------------------------- */

TEST(nothing_is_lost_silently_for_want_of_memory)
{
	struct umad_event event;
	int ret, overruns = 0;
	unsigned n;

	for (n = 1;; n++) {
		bool overrun = false, added = false;

		watch();
		plug("mlx5_0", 0);
		uevent("add", "infiniband_mad", "umad0", NULL);
		uevent("add", "infiniband", "mlx5_0", NULL);
		fake_fail_malloc(n);
		while ((ret = umad_monitor_next_event(monitor, &event, sizeof(event))) !=
		       -EAGAIN) {
			assert_true(ret == 0 || ret == -ENOMEM);
			overrun |= !ret && event.type == UMAD_EVENT_OVERRUN;
			added |= !ret && event.type == UMAD_EVENT_CA_ADDED;
		}
		if (!fake_failed())
			break;
		assert_true(overrun || added);
		overruns += overrun;
		assert_int_equal(teardown(), 0);
		assert_int_equal(setup(), 0);
	}
	fake_fail_malloc(0);
	assert_true(overruns > 0);
}

TEST(a_removal_without_memory_is_told_as_an_overrun)
{
	struct umad_event event;
	int i;

	watch();
	/* read one by one, so that the list of events keeps its initial size */
	for (i = 0; i < 20; i++) {
		plug_lightly("mlx5_0", i);
		umad_uevent("add", i);
		assert_int_equal(umad_monitor_next_event(monitor, &event, sizeof(event)), 0);
	}
	reports("");
	fake_remove("/sys/class/infiniband");
	fake_remove("/sys/class/infiniband_mad");
	uevent("remove", "infiniband", "mlx5_0", NULL);
	/* the first allocation is the message's, the second is the longer list of events */
	fake_fail_malloc(2);
	assert_fails(umad_monitor_next_event(monitor, &event, sizeof(event)), ENOMEM);
	assert_true(fake_failed());
	reports("overrun");
}

/* --- a caller that follows the events ------------------------------------------- */

/*
 * The present devices, and the devices according to the events: each as the ADDED events for
 * it.
 */
static struct umad_event real[64], known[64];
static int real_count, known_count;
static bool at_rest; /* no changes while the events are read */

static int find_event(const struct umad_event *events, int count,
		      const struct umad_event *event)
{
	int i;

	for (i = 0; i < count; i++)
		if (!memcmp(&events[i], event, sizeof(*event)))
			return i;
	return -1;
}

static void really_add(enum umad_event_type type, const char *ca_name, int number)
{
	struct umad_event event = {.type = type};

	assert_true(real_count < 64);
	strcpy(event.ca_name, ca_name);
	if (type == UMAD_EVENT_PORT_ADDED) {
		event.portnum = 1;
		snprintf(event.node, sizeof(event.node), "umad%d", number);
	}
	real[real_count++] = event;
}

/* Replaces the present devices by these names; "" is an empty slot. */
static void really_be(char names[][UMAD_CA_NAME_LEN], int count)
{
	int i;

	real_count = 0;
	for (i = 0; i < count; i++) {
		if (!names[i][0])
			continue;
		really_add(UMAD_EVENT_CA_ADDED, names[i], i);
		really_add(UMAD_EVENT_PORT_ADDED, names[i], i);
	}
}

/*
 * Follows an event: an added device was absent, a removed one present. A device that one
 * message reports may be gone when the event is read; a later message then reports the removal.
 */
static void follow(struct umad_event event)
{
	int i;

	switch (event.type) {
	case UMAD_EVENT_CA_ADDED:
	case UMAD_EVENT_PORT_ADDED:
		assert_int_equal(find_event(known, known_count, &event), -1);
		if (at_rest)
			assert_true(known_count < 64);
		known[known_count++] = event;
		break;
	case UMAD_EVENT_CA_REMOVED:
	case UMAD_EVENT_PORT_REMOVED:
		event.type = event.type == UMAD_EVENT_CA_REMOVED ? UMAD_EVENT_CA_ADDED
								 : UMAD_EVENT_PORT_ADDED;
		i = find_event(known, known_count, &event);
		assert_true(i >= 0);
		known[i] = known[--known_count];
		break;
	case UMAD_EVENT_PORT_CHANGED:
		fail_msg("ports are not watched");
		break;
	case UMAD_EVENT_OVERRUN:
		memcpy(known, real, sizeof(real));
		known_count = real_count;
		break;
	}
}

static void knows_what_is_there(void)
{
	int i;

	assert_int_equal(known_count, real_count);
	for (i = 0; i < real_count; i++)
		assert_true(find_event(known, known_count, &real[i]) >= 0);
}

/* Follows at most so many events; returns whether the queue is empty. */
static bool follow_some(int most)
{
	struct umad_event event;
	int ret;

	while (most-- > 0) {
		ret = umad_monitor_next_event(monitor, &event, sizeof(event));
		if (ret == -EAGAIN) {
			uevent_count = uevent_next = 0;
			return true;
		}
		assert_true(!ret || ret == -ENOMEM);
		if (!ret)
			follow(event);
	}
	return false;
}

#define SLOTS 4

/* The lowest free names, as the kernel assigns them. */
static void free_name(char names[SLOTS][UMAD_CA_NAME_LEN], char name[UMAD_CA_NAME_LEN],
		      const char *prefix)
{
	int i, n;

	for (n = 0;; n++) {
		snprintf(name, UMAD_CA_NAME_LEN, "%s%d", prefix, n);
		for (i = 0; i < SLOTS && strcmp(names[i], name); i++)
			;
		if (i == SLOTS)
			return;
	}
}

static void change_something(char names[SLOTS][UMAD_CA_NAME_LEN])
{
	char old[64], name[UMAD_CA_NAME_LEN];
	int slot = rand() % SLOTS;

	if (!names[slot][0]) {
		free_name(names, name, rand() % 2 ? "mlx5_" : "ib");
		strcpy(names[slot], name);
		plug_lightly(names[slot], slot);
		umad_uevent("add", slot);
		uevent("add", "infiniband", names[slot], NULL);
	} else if (rand() % 3) {
		unplug(names[slot], slot);
		umad_uevent("remove", slot);
		uevent("remove", "infiniband", names[slot], NULL);
		names[slot][0] = '\0';
	} else {
		free_name(names, name, rand() % 2 ? "mlx5_" : "ib");
		snprintf(old, sizeof(old), "/devices/pci0/infiniband/%s", names[slot]);
		unplug(names[slot], slot);
		strcpy(names[slot], name);
		plug_lightly(name, slot);
		uevent("move", "infiniband", name, old);
	}
	really_be(names, SLOTS);
}

TEST(whoever_follows_the_events_knows_what_is_there)
{
	char names[SLOTS][UMAD_CA_NAME_LEN] = {""};
	int round, i;

	srand(test_seed());
	known_count = real_count = 0;
	at_rest = false;
	watch();
	for (round = 0; round < 100; round++) {
		/* events are read late: sysfs is newer than the events */
		for (i = rand() % 6; i >= 0; i--) {
			change_something(names);
			follow_some(rand() % 4);
		}
		if (rand() % 8 == 0) {
			/* all queued events are lost */
			uevent_count = uevent_next = 0;
			uevent_error(ENOBUFS);
		}
		while (!follow_some(1000))
			;
		knows_what_is_there();
	}
}

/* Follows an event as the header allows: the event may repeat what a list has shown. */
static void believe(struct umad_event event)
{
	bool removed =
		event.type == UMAD_EVENT_CA_REMOVED || event.type == UMAD_EVENT_PORT_REMOVED;
	int i;

	if (event.type == UMAD_EVENT_OVERRUN) {
		follow(event);
		return;
	}
	if (event.type == UMAD_EVENT_CA_REMOVED)
		event.type = UMAD_EVENT_CA_ADDED;
	if (event.type == UMAD_EVENT_PORT_REMOVED)
		event.type = UMAD_EVENT_PORT_ADDED;
	i = find_event(known, known_count, &event);
	if (removed && i >= 0)
		known[i] = known[--known_count];
	else if (!removed && i < 0)
		known[known_count++] = event;
}

static char slots[SLOTS][UMAD_CA_NAME_LEN];

/* A device changes while the library reads sysfs. */
static void change_meanwhile(const char *path)
{
	(void)path;
	if (rand() % 8 == 0)
		change_something(slots);
}

/*
 * Changes and reads in any order, a short queue of uevents, now and then no descriptors,
 * changes while sysfs is read: after the last change, the caller knows the present devices.
 */
TEST(the_caller_ends_with_what_sysfs_says)
{
	struct umad_event event;
	unsigned overruns = 0, shortages = 0;
	int sequence, step, ret;

	srand(test_seed());
	memset(slots, 0, sizeof(slots));
	known_count = real_count = 0;
	at_rest = false;
	watch();
	for (sequence = 0; sequence < 10000; sequence++) {
		uevent_room = 1 + rand() % 8;
		fake_before_open(rand() % 4 ? NULL : change_meanwhile);
		for (step = rand() % 12; step >= 0; step--) {
			if (rand() % 2) {
				change_something(slots);
				continue;
			}
			fake_fail_call((unsigned)rand() % 8, EMFILE);
			ret = umad_monitor_next_event(monitor, &event, sizeof(event));
			fake_fail_call(0, 0);
			assert_true(!ret || ret == -EAGAIN || ret == -EMFILE);
			if (!ret)
				believe(event);
			overruns += !ret && event.type == UMAD_EVENT_OVERRUN;
			shortages += ret == -EMFILE;
		}
		fake_before_open(NULL);
		while ((ret = umad_monitor_next_event(monitor, &event, sizeof(event))) !=
		       -EAGAIN) {
			assert_int_equal(ret, 0);
			believe(event);
		}
		knows_what_is_there();
	}
	assert_true(overruns > 1000 && shortages > 1000);
}

TEST(a_caller_without_memory_still_knows_what_is_there)
{
	/* more than the initial size of the lists */
	enum {
		CAS = 9
	};
	char names[CAS][UMAD_CA_NAME_LEN];
	unsigned n, failures = 0;
	int i;

	for (n = 1;; n++) {
		known_count = 0;
		at_rest = true;
		watch();
		for (i = 0; i < CAS; i++) {
			snprintf(names[i], sizeof(names[i]), "mlx5_%d", i);
			plug_lightly(names[i], i);
			umad_uevent("add", i);
			uevent("add", "infiniband", names[i], NULL);
		}
		really_be(names, CAS);
		fake_fail_malloc(n);
		while (!follow_some(1000))
			;
		if (!fake_failed())
			break;
		failures++;
		knows_what_is_there();
		assert_int_equal(teardown(), 0);
		assert_int_equal(setup(), 0);
	}
	fake_fail_malloc(0);
	knows_what_is_there();
	/* each message allocates once; the two lists grew twice and once */
	assert_true(failures > 2 * CAS);
}

TEST(messages_in_disorder_tell_only_what_is_there)
{
	static const char *const words[] = {
		"ACTION=add",
		"ACTION=remove",
		"ACTION=move",
		"ACTION=",
		"SUBSYSTEM=infiniband",
		"SUBSYSTEM=infiniband_mad",
		"SUBSYSTEM=",
		"DEVPATH=/devices/x/mlx5_0",
		"DEVPATH=/devices/x/mlx5_1",
		"DEVPATH=/devices/x/umad0",
		"DEVPATH=/devices/x/umad1",
		"DEVPATH=/devices/x/issm0",
		"DEVPATH=/",
		"DEVPATH=umad0",
		"DEVPATH_OLD=/devices/x/mlx5_0",
		"DEVPATH_OLD=",
		"",
		"=",
	};
	char names[2][UMAD_CA_NAME_LEN] = {"mlx5_0", "mlx5_1"};
	int i, j, length;

	srand(test_seed());
	plug_lightly("mlx5_0", 0);
	plug_lightly("mlx5_1", 1);
	really_be(names, 2);
	memcpy(known, real, sizeof(real));
	known_count = real_count;
	at_rest = true;
	watch();
	for (i = 0; i < 5000; i++) {
		length = 0;
		for (j = 1 + rand() % 8; j > 0; j--)
			length += sprintf(uevents[0].text + length, "%s",
					  words[(size_t)rand() %
						(sizeof(words) / sizeof(*words))]) +
				  1;
		uevents[0].length = length;
		uevent_count = 1;
		uevent_next = 0;
		/* follow() checks each event */
		while (!follow_some(1000))
			;
	}
	assert_int_equal(uevent_count, 0);
}
