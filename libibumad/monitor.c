/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Hot-plug. A uevent has the name of a umad device. Only sysfs tells which port the device
 * belongs to, and only until the device is removed. So the monitor keeps a list of the present
 * devices.
 */

#include "devices.h"
#include "export.h"
#include "log.h"
#include "netlink.h"
#include "sys.h"

#include <infiniband/umad_ext.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(((struct umad_event *)NULL)->node) == CDEV_NAME_LEN,
	       "an event can name every umad device");

/* Events to hand out; or the present devices and ports, as ADDED events. */
struct event_list {
	struct umad_event *events;
	size_t count, room;
};

struct umad_monitor {
	struct nl_sock *sock;
	struct event_list present;
	size_t settled; /* the number of first entries of present that are older than all queued
			   uevents */
	struct event_list pending;
	size_t taken; /* of pending */
	bool lost;    /* an event was lost */
};

static int append(struct event_list *list, const struct umad_event *event)
{
	struct umad_event *grown;
	size_t room;

	if (list->count == list->room) {
		room = list->room ? list->room * 2 : 16;
		grown = realloc(list->events, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		list->events = grown;
		list->room = room;
	}
	list->events[list->count++] = *event;
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

/* Adds a device or port to the list. If it is new, adds an event. */
static int add(struct umad_monitor *monitor, const struct umad_event *event)
{
	size_t i;
	int err;

	for (i = 0; i < monitor->present.count; i++)
		if (!memcmp(&monitor->present.events[i], event, sizeof(*event)))
			return 0;
	err = append(&monitor->present, event);
	return err ? err : append(&monitor->pending, event);
}

/*
 * A "remove" or "move" uevent is about a name that the monitor read while uevents were queued.
 * sysfs may have had a later owner of the name than the owner in the uevent, and a list that
 * the caller read meanwhile may have the earlier owner: the caller must list the devices again.
 */
#define AMBIGUOUS (-ESTALE)

/* Removes an entry of the list, and adds an event. */
static int remove_present(struct umad_monitor *monitor, size_t i)
{
	struct event_list *present = &monitor->present;
	struct umad_event event = present->events[i];

	if (i >= monitor->settled)
		return AMBIGUOUS;
	event.type = event.type == UMAD_EVENT_CA_ADDED ? UMAD_EVENT_CA_REMOVED
						       : UMAD_EVENT_PORT_REMOVED;
	monitor->settled--;
	present->count--;
	memmove(&present->events[i], &present->events[i + 1],
		(present->count - i) * sizeof(*present->events));
	return append(&monitor->pending, &event);
}

/*
 * The device of an "add" uevent was removed before the uevent was read. The caller may have
 * seen the device in a list meanwhile, and the monitor does not know the device when its
 * "remove" uevent comes: the caller must list the devices again.
 */
static bool is_gone(int err)
{
	return err == -ENOENT || err == -ENODEV;
}

/*
 * Adds a umad device. Fails if sysfs does not have its port; is_gone() recognizes a removed
 * device.
 */
static int add_node(const char *node, struct umad_monitor *monitor)
{
	struct umad_event event;
	struct port_choice owner;
	int err;

	if (!cdev_name_is(CDEV_UMAD, node))
		return 0;
	err = cdev_owner(node, &owner);
	if (err == -EIO) /* the kernel does not write such a name: it is no umad device */
		return 0;
	if (err)
		return err;
	event = port_event(&owner, node);
	return add(monitor, &event);
}

static int remove_node(struct umad_monitor *monitor, const char *node)
{
	size_t i;

	for (i = 0; i < monitor->present.count; i++)
		if (!strcmp(monitor->present.events[i].node, node))
			return remove_present(monitor, i);
	return 0;
}

/*
 * Adds a device. Fails if sysfs does not have its type; is_gone() recognizes a removed device.
 */
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
	return add(monitor, &event);
}

/* For sys_list(): a device that is removed while the list is read does not end the list. */

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

/* The ports first: a program gets the events of ports before the event of their device. */
static int remove_ca(struct umad_monitor *monitor, const char *ca_name)
{
	const struct umad_event *events = monitor->present.events;
	size_t i = monitor->present.count;
	int err = 0;

	while (!err && i-- > 0)
		if (events[i].type == UMAD_EVENT_PORT_ADDED &&
		    !strcmp(events[i].ca_name, ca_name))
			err = remove_present(monitor, i);
	for (i = 0; !err && i < monitor->present.count; i++)
		if (!strcmp(events[i].ca_name, ca_name))
			return remove_present(monitor, i);
	return err;
}

/* Reads the present devices from sysfs, without events. */
static int take_stock(struct umad_monitor *monitor)
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
 * Drops the queued uevents. They are older than the state that sysfs has now, and until the
 * queue is empty the kernel drops new uevents without an error (NETLINK_S_CONGESTED).
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

/* The texts of a uevent that matter; NULL if one is missing. */
struct uevent {
	const char *action;
	const char *subsystem;
	const char *name; /* the name of the device: the end of its path */
	const char *old_name;
	bool synthetic;
};

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Parses a message whose last byte is NUL. */
static struct uevent parse(const char *text, size_t length)
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

static int handle_ca(struct umad_monitor *monitor, const struct uevent *uevent)
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
	/* the umad devices of a renamed device do not change */
	err = sys_list(SYS_INFINIBAND_MAD, list_node, monitor);
	return err == -ENOENT ? 0 : err;
}

static int handle(struct umad_monitor *monitor, const struct uevent *uevent)
{
	int err = 0;

	/* a program can make the kernel send a uevent about a device that does not change */
	if (!uevent->action || !uevent->subsystem || !uevent->name || uevent->synthetic)
		return 0;
	if (!strcmp(uevent->subsystem, "infiniband"))
		return handle_ca(monitor, uevent);
	if (strcmp(uevent->subsystem, "infiniband_mad") ||
	    !cdev_name_is(CDEV_UMAD, uevent->name))
		return 0;
	if (!strcmp(uevent->action, "add"))
		err = add_node(uevent->name, monitor);
	else if (!strcmp(uevent->action, "remove"))
		err = remove_node(monitor, uevent->name);
	return err;
}

/* Reads the next uevent, and adds its events, if any. */
static int receive(struct umad_monitor *monitor)
{
	struct uevent uevent;
	char *text;
	int err, length;

	length = uevent_receive(monitor->sock, &text);
	if (length < 0)
		return length;
	uevent = parse(text, (size_t)length);
	err = handle(monitor, &uevent);
	free(text);
	return err;
}

EXPORT int umad_monitor_open(struct umad_monitor **monitor)
{
	struct umad_monitor *opened;
	int err;

	if (!monitor)
		return fail(-EINVAL);
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return fail(-ENOMEM);
	/* the socket is opened before sysfs is read, so that no event is missed */
	err = uevent_open(&opened->sock);
	if (err) {
		free(opened);
		return fail(err);
	}
	err = take_stock(opened);
	if (err) {
		umad_monitor_close(opened);
		return fail(err);
	}
	*monitor = opened;
	return 0;
}

EXPORT int umad_monitor_get_fd(const struct umad_monitor *monitor)
{
	return monitor ? uevent_fd(monitor->sock) : fail(-EINVAL);
}

EXPORT int umad_monitor_next_event(struct umad_monitor *monitor, struct umad_event *event)
{
	int err = 0;

	if (!monitor || !event)
		return fail(-EINVAL);
	memset(event, 0, sizeof(*event));
	while (!err && !monitor->lost && monitor->taken == monitor->pending.count) {
		monitor->pending.count = monitor->taken = 0;
		err = receive(monitor);
	}
	if (err == -EAGAIN) {
		monitor->settled = monitor->present.count;
		return fail(err);
	}
	if (err) {
		log_info("events are lost: %s", strerror(-err));
		monitor->lost = true;
	}
	if (!monitor->lost) {
		*event = monitor->pending.events[monitor->taken++];
		return 0;
	}
	if (err && err != -ENOBUFS && err != AMBIGUOUS && !is_gone(err))
		return fail(err);
	err = drop_uevents(monitor);
	if (!err)
		err = take_stock(monitor);
	if (err)
		return fail(err);
	monitor->lost = false;
	event->type = UMAD_EVENT_OVERRUN;
	return 0;
}

EXPORT void umad_monitor_close(struct umad_monitor *monitor)
{
	if (!monitor)
		return;
	uevent_close(monitor->sock);
	free(monitor->present.events);
	free(monitor->pending.events);
	free(monitor);
}
