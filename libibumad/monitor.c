/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Hot-plug, and changes of ports. A uevent names a umad device, but only sysfs knows its port,
 * and only until the device is removed, so the monitor keeps a list of what is present. The
 * kernel sends no uevent when a port changes: watched ports are read again at an interval.
 */

#include "devices.h"
#include "export.h"
#include "log.h"
#include "netlink.h"
#include "sys.h"

#include <infiniband/umad_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

_Static_assert(sizeof(((struct umad_event *)NULL)->node) == CDEV_NAME_LEN,
	       "an event can name every umad device");

struct entry {
	struct umad_event event;
	uint64_t values; /* digest of read_values(), if ports are watched */
};

/* Events to hand out, or what is present, as ADDED events. */
struct event_list {
	struct entry *entries;
	size_t count, room;
};

struct umad_monitor {
	struct nl_sock *sock;
	int timer; /* a timerfd; -1 if ports are not watched */
	int epoll; /* an epoll of socket and timer, for the program */
	struct event_list present;
	size_t settled; /* the first entries of present that are older than all queued uevents
			 */
	struct event_list pending;
	size_t taken; /* of pending */
	bool lost;    /* an event was lost */
};

static int event_list_append(struct event_list *list, const struct umad_event *event,
			     uint64_t values)
{
	struct entry *grown;
	size_t room;

	if (list->count == list->room) {
		room = list->room ? list->room * 2 : 16;
		grown = realloc(list->entries, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		list->entries = grown;
		list->room = room;
	}
	list->entries[list->count++] = (struct entry){*event, values};
	return 0;
}

static struct umad_event ca_event(const char *ca_name)
{
	struct umad_event event = {.type = UMAD_EVENT_CA_ADDED};

	strcpy(event.ca_name, ca_name);
	return event;
}

static struct umad_event port_event(const struct port_choice *owner, const char *node)
{
	struct umad_event event = {.type = UMAD_EVENT_PORT_ADDED, .portnum = owner->portnum};

	strcpy(event.ca_name, owner->ca_name);
	strcpy(event.node, node);
	return event;
}

/* A switch's port 0 has a umad device, too. */
static bool is_port(const struct umad_event *event)
{
	return event->type == UMAD_EVENT_PORT_ADDED;
}

/* Reads port_digest(); 0 for a device, or a port that is being added or removed. */
static int read_values(const struct umad_event *event, uint64_t *values)
{
	int err = 0;

	*values = 0;
	if (is_port(event))
		err = port_digest(event->ca_name, event->portnum, values);
	return sysfs_shortage(err) ? err : 0;
}

/* Whether an interval is over. Makes the descriptor unreadable until the next one. */
static bool read_timer(const struct umad_monitor *monitor)
{
	uint64_t intervals;

	return monitor->timer >= 0 && read(monitor->timer, &intervals, sizeof(intervals)) > 0;
}

/* Adds events for changed ports if an interval is over. -EAGAIN if none changed. */
static int read_changed_ports(struct umad_monitor *monitor)
{
	uint64_t values;
	struct umad_event event;
	struct entry *entry;
	int err = 0;

	if (!read_timer(monitor))
		return -EAGAIN;
	for (size_t i = 0; !err && i < monitor->present.count; i++) {
		entry = &monitor->present.entries[i];
		err = read_values(&entry->event, &values);
		if (err || !values || values == entry->values)
			continue;
		entry->values = values;
		event = entry->event;
		event.type = UMAD_EVENT_PORT_CHANGED;
		err = event_list_append(&monitor->pending, &event, 0);
	}
	return err ? err : monitor->pending.count ? 0 : -EAGAIN;
}

/* Adds an entry to the list, with an event if it is new. */
static int add_present(struct umad_monitor *monitor, const struct umad_event *event)
{
	uint64_t values = 0;
	size_t i;
	int err = 0;

	for (i = 0; i < monitor->present.count; i++)
		if (!memcmp(&monitor->present.entries[i].event, event, sizeof(*event)))
			return 0;
	if (monitor->timer >= 0)
		err = read_values(event, &values);
	if (!err)
		err = event_list_append(&monitor->present, event, values);
	return err ? err : event_list_append(&monitor->pending, event, 0);
}

/*
 * A "remove" or "move" of a name that was read while uevents were queued: sysfs or the caller
 * may have seen another owner of the name, so the caller must list the devices again.
 */
#define AMBIGUOUS (-ESTALE)

/* Removes an entry from the list, with an event. */
static int remove_present(struct umad_monitor *monitor, size_t i)
{
	struct event_list *present = &monitor->present;
	struct umad_event event = present->entries[i].event;

	if (i >= monitor->settled)
		return AMBIGUOUS;
	event.type = event.type == UMAD_EVENT_CA_ADDED ? UMAD_EVENT_CA_REMOVED
						       : UMAD_EVENT_PORT_REMOVED;
	monitor->settled--;
	present->count--;
	memmove(&present->entries[i], &present->entries[i + 1],
		(present->count - i) * sizeof(*present->entries));
	return event_list_append(&monitor->pending, &event, 0);
}

/*
 * A device was removed before its "add" was read. The caller may have listed it, and its
 * "remove" will name a device that the monitor does not know, so the caller must list the
 * devices again.
 */
static bool is_gone(int err)
{
	return err == -ENOENT || err == -ENODEV;
}

/* Adds a umad device. Fails if sysfs lacks its port; is_gone() recognizes a removed device. */
static int add_node(const char *node, struct umad_monitor *monitor)
{
	struct umad_event event;
	struct port_choice owner;
	int err;

	if (!cdev_name_is(CDEV_UMAD, node))
		return 0;
	err = cdev_owner(node, &owner);
	if (err == -EIO) /* not a umad device's name */
		return 0;
	if (err)
		return err;
	event = port_event(&owner, node);
	return add_present(monitor, &event);
}

static int remove_node(struct umad_monitor *monitor, const char *node)
{
	size_t i;

	for (i = 0; i < monitor->present.count; i++)
		if (!strcmp(monitor->present.entries[i].event.node, node))
			return remove_present(monitor, i);
	return 0;
}

/* Adds a device. Fails if sysfs lacks its type; is_gone() recognizes a removed device. */
static int add_ca(const char *ca_name, struct umad_monitor *monitor)
{
	struct umad_event event;
	int gone, type = node_type(ca_name);

	if (type == -ENODEV) { /* not an InfiniBand device, or removed */
		gone = node_gone(ca_name);
		return gone > 0 ? type : gone;
	}
	if (type < 0)
		return type;
	event = ca_event(ca_name);
	return add_present(monitor, &event);
}

/* For sys_list(): devices that disappear meanwhile do not end the list. */

static int list_node(const char *node, void *arg)
{
	int err = add_node(node, arg);

	return is_gone(err) ? 0 : err;
}

static int list_ca(const char *ca_name, void *arg)
{
	int err = add_ca(ca_name, arg);

	return is_gone(err) ? 0 : err;
}

/* Ports first, so that their events precede the device's. */
static int remove_ca(struct umad_monitor *monitor, const char *ca_name)
{
	const struct entry *entries = monitor->present.entries;
	size_t i = monitor->present.count;
	int err = 0;

	while (!err && i-- > 0)
		if (is_port(&entries[i].event) && !strcmp(entries[i].event.ca_name, ca_name))
			err = remove_present(monitor, i);
	for (i = 0; !err && i < monitor->present.count; i++)
		if (!strcmp(entries[i].event.ca_name, ca_name))
			return remove_present(monitor, i);
	return err;
}

/* Reads what is present from sysfs, without events. */
static int list_present(struct umad_monitor *monitor)
{
	int err;

	monitor->present.count = monitor->settled = 0;
	err = sys_list(SYS_INFINIBAND, list_ca, monitor);
	if (!err || err == -ENOENT)
		err = sys_list(SYS_INFINIBAND_MAD, list_node, monitor);
	monitor->settled = monitor->present.count;
	monitor->pending.count = monitor->taken = 0;
	return err == -ENOENT ? 0 : err;
}

/*
 * Drops the queued uevents, which are older than sysfs. Until the queue is empty, the kernel
 * drops new ones without an error (NETLINK_S_CONGESTED).
 */
static int drop_uevents(struct umad_monitor *monitor)
{
	char *text;
	int length;

	for (;;) {
		length = uevent_receive(monitor->sock, &text);
		if (length > 0)
			free(text);
		else if (length == -EAGAIN)
			return 0;
		else if (length != -ENOBUFS)
			return length;
	}
}

/* The texts of a uevent, or NULL. */
struct uevent {
	const char *action;
	const char *subsystem;
	const char *name; /* the device: last component of the path */
	const char *old_name;
	bool synthetic;
};

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Parses a NUL-terminated message. */
static struct uevent parse_uevent(const char *text, size_t length)
{
	struct uevent uevent = {0};
	const char *end = text + length;

	for (; text < end; text += strlen(text) + 1) {
		if (!strncmp(text, "ACTION=", 7))
			uevent.action = text + 7;
		else if (!strncmp(text, "SUBSYSTEM=", 10))
			uevent.subsystem = text + 10;
		else if (!strncmp(text, "DEVPATH=", 8))
			uevent.name = last_component(text + 8);
		else if (!strncmp(text, "DEVPATH_OLD=", 12))
			uevent.old_name = last_component(text + 12);
		else if (!strncmp(text, "SYNTH_UUID=", 11))
			uevent.synthetic = true;
	}
	return uevent;
}

static int handle_ca_uevent(struct umad_monitor *monitor, const struct uevent *uevent)
{
	int err = 0;

	if (!strcmp(uevent->action, "remove"))
		return remove_ca(monitor, uevent->name);
	if (!strcmp(uevent->action, "move") && uevent->old_name)
		err = remove_ca(monitor, uevent->old_name);
	else if (strcmp(uevent->action, "add"))
		return 0;
	if (!err)
		err = add_ca(uevent->name, monitor);
	if (err)
		return err;
	/* umad devices keep their names */
	err = sys_list(SYS_INFINIBAND_MAD, list_node, monitor);
	return err == -ENOENT ? 0 : err;
}

static int handle_uevent(struct umad_monitor *monitor, const struct uevent *uevent)
{
	int err = 0;

	/* programs can trigger uevents about devices that do not change */
	if (!uevent->action || !uevent->subsystem || !uevent->name || uevent->synthetic)
		return 0;
	if (!strcmp(uevent->subsystem, "infiniband"))
		return handle_ca_uevent(monitor, uevent);
	if (strcmp(uevent->subsystem, "infiniband_mad") ||
	    !cdev_name_is(CDEV_UMAD, uevent->name))
		return 0;
	if (!strcmp(uevent->action, "add"))
		err = add_node(uevent->name, monitor);
	else if (!strcmp(uevent->action, "remove"))
		err = remove_node(monitor, uevent->name);
	return err;
}

/* Reads a uevent and adds its events, if any. */
static int receive_uevent(struct umad_monitor *monitor)
{
	struct uevent uevent;
	char *text;
	int err, length;

	length = uevent_receive(monitor->sock, &text);
	if (length < 0)
		return length;
	uevent = parse_uevent(text, (size_t)length);
	err = handle_uevent(monitor, &uevent);
	free(text);
	return err;
}

/* Makes the program's descriptor readable when fd is. */
static int add_descriptor(const struct umad_monitor *monitor, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(monitor->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* Starts the timer, so that ports are watched from their first reading on. */
static int start_timer(struct umad_monitor *monitor, int interval_ms)
{
	struct timespec interval = {.tv_sec = interval_ms / 1000,
				    .tv_nsec = interval_ms % 1000 * 1000000L};
	struct itimerspec time = {.it_interval = interval, .it_value = interval};

	monitor->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (monitor->timer < 0)
		return -errno;
	timerfd_settime(monitor->timer, 0, &time, NULL);
	return add_descriptor(monitor, monitor->timer);
}

static int monitor_start(struct umad_monitor *monitor, int interval_ms)
{
	int err;

	monitor->epoll = epoll_create1(EPOLL_CLOEXEC);
	err = monitor->epoll < 0 ? -errno : add_descriptor(monitor, uevent_fd(monitor->sock));
	if (!err && interval_ms)
		err = start_timer(monitor, interval_ms);
	return err ? err : list_present(monitor);
}

EXPORT int umad_monitor_open(struct umad_monitor **monitor, int watch_interval_ms)
{
	struct umad_monitor *opened;
	int err;

	if (!monitor || watch_interval_ms < 0)
		return fail_errno(-EINVAL);
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return fail_errno(-ENOMEM);
	opened->timer = -1;
	/* before sysfs is read, so that no event is missed */
	err = uevent_open(&opened->sock);
	if (err) {
		free(opened);
		return fail_errno(err);
	}
	err = monitor_start(opened, watch_interval_ms);
	if (err) {
		umad_monitor_free(opened);
		return fail_errno(err);
	}
	*monitor = opened;
	return 0;
}

EXPORT int umad_monitor_get_fd(const struct umad_monitor *monitor)
{
	return monitor ? monitor->epoll : fail_errno(-EINVAL);
}

static int next_event(struct umad_monitor *monitor, struct umad_event *event)
{
	int err = 0;

	while (!err && !monitor->lost && monitor->taken == monitor->pending.count) {
		monitor->pending.count = monitor->taken = 0;
		err = receive_uevent(monitor);
		if (err == -EAGAIN) {
			monitor->settled = monitor->present.count;
			err = read_changed_ports(monitor);
		}
	}
	if (err == -EAGAIN)
		return err;
	if (err) {
		log_info("events are lost: %s", strerror(-err));
		monitor->lost = true;
	}
	if (!monitor->lost) {
		*event = monitor->pending.entries[monitor->taken++].event;
		return 0;
	}
	if (err && err != -ENOBUFS && err != AMBIGUOUS && !is_gone(err))
		return err;
	/* if list_present() fails, the descriptor must not stay readable */
	(void)read_timer(monitor);
	err = drop_uevents(monitor);
	if (!err)
		err = list_present(monitor);
	if (err)
		return err;
	monitor->lost = false;
	event->type = UMAD_EVENT_OVERRUN;
	return 0;
}

EXPORT int umad_monitor_next_event(struct umad_monitor *monitor, struct umad_event *event,
				   size_t size)
{
	struct umad_event next = {0};
	int err;

	if (!monitor || !event)
		return fail_errno(-EINVAL);
	err = next_event(monitor, &next);
	memset(event, 0, size);
	memcpy(event, &next, size < sizeof(next) ? size : sizeof(next));
	return err ? fail_errno(err) : 0;
}

EXPORT void umad_monitor_free(struct umad_monitor *monitor)
{
	if (!monitor)
		return;
	uevent_close(monitor->sock);
	if (monitor->epoll >= 0)
		close(monitor->epoll);
	if (monitor->timer >= 0)
		close(monitor->timer);
	free(monitor->present.entries);
	free(monitor->pending.entries);
	free(monitor);
}
