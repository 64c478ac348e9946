/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Uevents: the kernel's reports of added and removed devices, for programs of a view that
 * listen. Texts and order are the kernel's: the umad and issm devices of a port come before
 * their parent device.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "server.h"

#define LONGEST_UEVENT 512
#define UMAD_MAJOR     231
#define ISSM_MINOR     64

/* As in the kernel, a uevent is lost if the listener's queue is full; the listener is told when
 * there is space again. */
static void send_to(struct connection *connection, const char *text, size_t length)
{
	if (connection->waiting)
		return;
	if (send(connection->fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
	    (errno == EAGAIN || errno == ENOBUFS))
		connection_wait_for_room(connection, true);
}

void uevents_flush(struct connection *connection)
{
	if (connection->waiting &&
	    send(connection->fd, "", UEVENTS_LOST, MSG_DONTWAIT | MSG_NOSIGNAL) == UEVENTS_LOST)
		connection_wait_for_room(connection, false);
}

/* Replaces the line breaks by NULs. */
static void __attribute__((format(printf, 3, 4)))
tell(struct server *server, const struct view *view, const char *format, ...)
{
	char text[LONGEST_UEVENT];
	va_list arguments;
	int length, number;

	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	number = snprintf(text + length, sizeof(text) - (size_t)length, "SEQNUM=%llu\n",
			  (unsigned long long)++server->uevents);
	length += number;
	for (int i = 0; i < length; i++)
		if (text[i] == '\n')
			text[i] = '\0';
	for (struct connection *other = server->connections; other; other = other->next)
		if (other->kind == CONNECTION_UEVENTS && other->member && !other->closed &&
		    other->view == view)
			send_to(other, text, (size_t)length);
}

static void tell_entry(struct server *server, const struct view *view, unsigned int device,
		       const char *action, const char *kind, unsigned int number,
		       unsigned int minor)
{
	char path[128];

	snprintf(path, sizeof(path), "/devices/umad-sim/0000:%02x:00.0/infiniband_mad/%s%u",
		 device + 1, kind, number);
	tell(server, view,
	     "%s@%s\nACTION=%s\nDEVPATH=%s\nSUBSYSTEM=infiniband_mad\nMAJOR=%u\nMINOR=%u\n"
	     "DEVNAME=infiniband/%s%u\n",
	     action, path, action, path, UMAD_MAJOR, minor, kind, number);
}

static void tell_device(struct server *server, const struct view *view, unsigned int device,
			const char *action)
{
	char path[128];

	for (unsigned int i = 0; i < view->port_count; i++) {
		if (view->ports[i].device != device)
			continue;
		tell_entry(server, view, device, action, "umad", i, i);
		tell_entry(server, view, device, action, "issm", i, ISSM_MINOR + i);
	}
	snprintf(path, sizeof(path), "/devices/umad-sim/0000:%02x:00.0/infiniband/mlx5_%u",
		 device + 1, device);
	tell(server, view, "%s@%s\nACTION=%s\nDEVPATH=%s\nSUBSYSTEM=infiniband\nNAME=mlx5_%u\n",
	     action, path, action, path, device);
}

void uevents_device_changed(struct server *server, uint32_t node, bool present)
{
	for (const struct view *view = server->views; view; view = view->next)
		for (unsigned int device = 0; device < view->node_count; device++)
			if (view->nodes[device] == node)
				tell_device(server, view, device, present ? "add" : "remove");
}
