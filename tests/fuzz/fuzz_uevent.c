/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Uevents for the monitor. An input is a list of steps: devices are added, removed and renamed
 * in a sysfs of this target, datagrams have any content, the socket is full, descriptors are
 * short. Every event fits the events before it. If all uevents were true and all were read, the
 * program knows all devices.
 */
#include "fuzz.h"
#include "netlink.h"
#include "sys.h"

#include <errno.h>
#include <netlink/errno.h>
#include <netlink/handlers.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/poll.h>

#define CAS       3
#define NODES     4
#define DATAGRAMS 64
#define LONGEST   300
#define HANDLE    100

/* --- the machine: CAs by name, umad devices by number ------------------------------ */

/* More names than CAs: a renamed CA has another name. */
static const char *const ca_names[] = {"mlx5_0", "ibp1s0", "qib0"};

struct state {
	bool cas[CAS];
	/*
	 * For each CA a bit; 0: the umad device does not exist. A program may learn of the
	 * ports of a renamed CA before the removal of the old name, and knows both then.
	 */
	unsigned owners[NODES];
};

static struct {
	struct state machine, known; /* the latter by the events that the program received */
	struct {
		char bytes[LONGEST];
		int length; /* or libnl's error */
		uint32_t sender;
	} queue[DATAGRAMS];
	unsigned first, count;
	bool congested, tell_loss; /* as in the kernel's queue: net/netlink/af_netlink.c */
	bool truthful;
	unsigned fails_in; /* the n-th call of sysfs from now on fails; 0 none */
	char text[64];     /* of the open file; "": none is open */
} run;

/* A shortage that ends later. */
static int fail_now(void)
{
	return run.fails_in && !--run.fails_in ? -ENOMEM : 0;
}

/* The linker puts these functions in place of the library's. */
int __wrap_sys_open(const char *path, int flags);
int __wrap_sys_close(int fd);
ssize_t __wrap_sys_read(int fd, void *buf, size_t size);
int __wrap_sys_list(const char *dir, sys_visit_fn *visit, void *arg);

static bool is_file(const char *path, const char *folder, const char *file)
{
	size_t length = strlen(folder);

	return !strncmp(path, folder, length) && !strcmp(path + length, file);
}

int __wrap_sys_open(const char *path, int flags)
{
	char folder[64];

	(void)flags;
	if (fail_now())
		return -ENOMEM;
	check(!run.text[0]);
	for (int i = 0; i < CAS; i++) {
		snprintf(folder, sizeof(folder), "/sys/class/infiniband/%s/", ca_names[i]);
		if (run.machine.cas[i] && is_file(path, folder, "node_type"))
			strcpy(run.text, "1: CA\n");
	}
	for (int i = 0; i < NODES; i++) {
		snprintf(folder, sizeof(folder), "/sys/class/infiniband_mad/umad%d/", i);
		for (int ca = 0; ca < CAS; ca++) {
			if (!(run.machine.owners[i] >> ca & 1))
				continue;
			if (is_file(path, folder, "ibdev"))
				snprintf(run.text, sizeof(run.text), "%s\n", ca_names[ca]);
			else if (is_file(path, folder, "port"))
				snprintf(run.text, sizeof(run.text), "%d\n", i + 1);
		}
	}
	return run.text[0] ? HANDLE : -ENOENT;
}

int __wrap_sys_close(int fd)
{
	check(fd == HANDLE && run.text[0]);
	run.text[0] = '\0';
	return 0;
}

ssize_t __wrap_sys_read(int fd, void *buf, size_t size)
{
	check(fd == HANDLE);
	if (fail_now())
		return -ENOMEM;
	if (size > strlen(run.text))
		size = strlen(run.text);
	memcpy(buf, run.text, size);
	return (ssize_t)size;
}

int __wrap_sys_list(const char *dir, sys_visit_fn *visit, void *arg)
{
	bool cas = !strcmp(dir, "/sys/class/infiniband");
	int result = fail_now();
	char name[16];

	for (int i = 0; !result && cas && i < CAS; i++)
		if (run.machine.cas[i])
			result = visit(ca_names[i], arg);
	for (int i = 0; !result && !cas && i < NODES; i++)
		if (run.machine.owners[i]) {
			snprintf(name, sizeof(name), "umad%d", i);
			result = visit(name, arg);
		}
	return result;
}

/* --- the socket: replaces libnl's functions in this program ------------------------ */

int nl_connect(struct nl_sock *sock, int protocol)
{
	(void)sock;
	(void)protocol;
	return 0;
}

int nl_socket_get_fd(const struct nl_sock *sock)
{
	static int fd = -1; /* the monitor only adds it to an epoll descriptor */

	(void)sock;
	if (fd < 0)
		fd = eventfd(0, EFD_CLOEXEC);
	return fd;
}

int nl_socket_set_nonblocking(const struct nl_sock *sock)
{
	(void)sock;
	return 0;
}

int nl_socket_add_membership(struct nl_sock *sock, int group)
{
	(void)sock;
	check(group == 1);
	return 0;
}

int nl_recv(struct nl_sock *sock, struct sockaddr_nl *sender, unsigned char **buf,
	    struct ucred **creds)
{
	int length;

	(void)sock;
	(void)creds;
	if (run.tell_loss) {
		run.tell_loss = false;
		errno = ENOBUFS;
		return -NLE_NOMEM;
	}
	if (!run.count)
		return -NLE_AGAIN;
	length = run.queue[run.first].length;
	*sender = (struct sockaddr_nl){.nl_pid = run.queue[run.first].sender};
	if (length > 0) {
		*buf = malloc((size_t)length);
		memcpy(*buf, run.queue[run.first].bytes, (size_t)length);
	}
	run.first = (run.first + 1) % DATAGRAMS;
	if (!--run.count)
		run.congested = false;
	return length;
}

/* The first message that does not fit is lost, and then all until the queue is empty. */
static void queue(const char *bytes, int length, uint32_t sender)
{
	unsigned at = (run.first + run.count) % DATAGRAMS;

	if (run.congested || run.count == DATAGRAMS) {
		run.tell_loss |= !run.congested;
		run.congested = true;
		return;
	}
	if (length > 0)
		memcpy(run.queue[at].bytes, bytes, (size_t)length);
	run.queue[at].length = length;
	run.queue[at].sender = sender;
	run.count++;
}

static void uevent(const char *action, const char *subsystem, const char *name,
		   const char *old_name)
{
	char text[LONGEST];
	int length = 1 + sprintf(text,
				 "%s@/devices/%s%cACTION=%s%cDEVPATH=/devices/%s/%s%c"
				 "SUBSYSTEM=%s",
				 action, name, 0, action, 0, subsystem, name, 0, subsystem);

	if (old_name)
		length += sprintf(text + length, "DEVPATH_OLD=/devices/%s", old_name) + 1;
	queue(text, length, 0);
}

/* --- changes of the machine -------------------------------------------------------- */

static void set_owner(int number, unsigned owner)
{
	char name[16];

	run.machine.owners[number] = owner;
	snprintf(name, sizeof(name), "umad%d", number);
	uevent(owner ? "add" : "remove", "infiniband_mad", name, NULL);
}

static void change_node(int number, int ca)
{
	if (run.machine.owners[number])
		set_owner(number, 0);
	else if (run.machine.cas[ca])
		set_owner(number, 1u << ca);
}

/* The kernel removes the umad devices of a CA first. */
static void change_ca(int ca)
{
	for (int i = 0; i < NODES; i++)
		if (run.machine.owners[i] == 1u << ca)
			set_owner(i, 0);
	run.machine.cas[ca] = !run.machine.cas[ca];
	uevent(run.machine.cas[ca] ? "add" : "remove", "infiniband", ca_names[ca], NULL);
}

static void rename_ca(int from, int to)
{
	if (!run.machine.cas[from] || run.machine.cas[to])
		return;
	run.machine.cas[from] = false;
	run.machine.cas[to] = true;
	for (int i = 0; i < NODES; i++)
		if (run.machine.owners[i] == 1u << from)
			run.machine.owners[i] = 1u << to;
	uevent("move", "infiniband", ca_names[to], ca_names[from]);
}

/* --- false uevents ----------------------------------------------------------------- */

static void tell_a_lie(struct input *input)
{
	static const char *const actions[] = {"add", "remove", "move", "change", "bind", ""};
	static const char *const subsystems[] = {"infiniband", "infiniband_mad", "net", ""};
	static const char *const names[] = {"mlx5_0", "ibp1s0", "umad0", "umad3",  "issm0",
					    "umad",   "..",     "",      "umad00", "a/b"};
	uint8_t choice = (uint8_t)take(input, 1), old = (uint8_t)take(input, 1);

	uevent(actions[choice % 6], subsystems[choice / 6 % 4], names[choice / 24 % 10],
	       old & 1 ? names[old / 2 % 10] : NULL);
}

static void send_anything(struct input *input)
{
	char bytes[LONGEST];
	int length = (int)(take(input, 1) % 64) + 1;
	uint8_t shape = (uint8_t)take(input, 1);

	take_bytes(input, bytes, (size_t)length);
	if (shape & 1)
		bytes[length - 1] = '\0';
	queue(bytes, length, shape & 2 ? 4711 : 0);
}

/* --- the program ------------------------------------------------------------------- */

static int ca_of(const char *name)
{
	int i = 0;

	while (strcmp(ca_names[i], name))
		check(++i < CAS);
	return i;
}

static void learn(const struct umad_event *event)
{
	bool added = event->type == UMAD_EVENT_CA_ADDED || event->type == UMAD_EVENT_PORT_ADDED;
	char end;
	int ca, number;

	check(strnlen(event->ca_name, sizeof(event->ca_name)) < sizeof(event->ca_name));
	check(strnlen(event->node, sizeof(event->node)) < sizeof(event->node));
	if (event->type == UMAD_EVENT_OVERRUN) {
		run.known = run.machine; /* the program lists the devices */
		return;
	}
	ca = ca_of(event->ca_name);
	switch (event->type) {
	case UMAD_EVENT_CA_ADDED:
	case UMAD_EVENT_CA_REMOVED:
		check(!event->portnum && !event->node[0] && added != run.known.cas[ca]);
		run.known.cas[ca] = added;
		break;
	case UMAD_EVENT_PORT_ADDED:
	case UMAD_EVENT_PORT_REMOVED:
		check(sscanf(event->node, "umad%d%c", &number, &end) == 1);
		check(number >= 0 && number < NODES && event->portnum == number + 1);
		check(added != (run.known.owners[number] >> ca & 1));
		run.known.owners[number] ^= 1u << ca;
		break;
	default:
		abort();
	}
}

/* Returns whether there was an event. */
static bool next_event(struct umad_monitor *monitor)
{
	struct umad_event event;
	int result = umad_monitor_next_event(monitor, &event, sizeof(event));

	check(result == 0 || (result < 0 && errno == -result));
	if (!result)
		learn(&event);
	return !result;
}

static void step(struct umad_monitor *monitor, struct input *input)
{
	static const int errors[] = {-NLE_NOMEM, -NLE_FAILURE, -NLE_BAD_SOCK, 0};
	uint8_t choice = (uint8_t)take(input, 1), which = choice / 8;

	switch (choice % 8) {
	case 0:
		change_ca(which % CAS);
		break;
	case 1:
	case 2:
		change_node(which % NODES, which / NODES % CAS);
		break;
	case 3:
		rename_ca(which % CAS, which / CAS % CAS);
		break;
	case 4:
		if (run.truthful)
			run.tell_loss = run.congested = run.count;
		else
			queue(NULL, errors[take(input, 1) % COUNT(errors)], 0);
		break;
	case 5:
		if (run.truthful)
			run.fails_in = 1 + which % 16;
		else
			tell_a_lie(input);
		break;
	case 6:
		if (!run.truthful)
			send_anything(input);
		break;
	default:
		for (unsigned i = 0; i <= which % 4; i++)
			next_event(monitor);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct umad_monitor *monitor;
	uint8_t shape;

	memset(&run, 0, sizeof(run));
	shape = (uint8_t)take(&input, 1);
	run.truthful = shape & 1;
	for (int i = 0; i < CAS; i++)
		run.machine.cas[i] = shape >> 1 >> i & 1;
	for (int i = 0; i < NODES; i++)
		if (run.machine.cas[i % CAS] && shape >> 4 >> i & 1)
			run.machine.owners[i] = 1u << i % CAS;
	check(!umad_monitor_open(&monitor, 0));
	run.known = run.machine;
	for (int steps = 0; input.size && steps < 300; steps++)
		step(monitor, &input);
	run.fails_in = 0;
	for (int i = 0; i < 4 * DATAGRAMS; i++)
		while (next_event(monitor))
			;
	for (int i = 0; run.truthful && i < CAS; i++)
		check(run.known.cas[i] == run.machine.cas[i]);
	for (int i = 0; run.truthful && i < NODES; i++)
		check(run.known.owners[i] == run.machine.owners[i]);
	umad_monitor_free(monitor);
	check(!run.text[0]);
	return 0;
}
