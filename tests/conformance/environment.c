/* SPDX-License-Identifier: BSD-2-Clause */

#include "environment.h"
#include "check.h"

#include <string.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>

#define NODES 256 /* the number of umad devices to search */

struct port here, there;
static const char *script;
static const char *extent = "";

static bool read_line(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "r");
	bool found;

	if (!file)
		return false;
	found = fgets(text, (int)size, file) != NULL;
	fclose(file);
	if (found)
		text[strcspn(text, "\n")] = '\0';
	return found;
}

void read_port_file(const struct port *port, const char *name, char *text, size_t size)
{
	char path[160];

	snprintf(path, sizeof(path), SYS_INFINIBAND "/%s/ports/%d/%s", port->ca_name,
		 port->portnum, name);
	expect(read_line(path, text, size));
}

static void read_addresses(struct port *port)
{
	char text[64];

	read_port_file(port, "gids/0", text, sizeof(text));
	expect_equal(inet_pton(AF_INET6, text, port->gid), 1);
	read_port_file(port, "lid", text, sizeof(text));
	port->lid = (uint16_t)strtoul(text, NULL, 0);
	read_port_file(port, "link_layer", text, sizeof(text));
	port->ethernet = !strcmp(text, "Ethernet");
}

/* The port of umad<number>. */
static bool owner_of(const char *kind, int number, struct port *port)
{
	char path[80], text[64];

	snprintf(path, sizeof(path), SYS_INFINIBAND_MAD "/%s%d/ibdev", kind, number);
	if (!read_line(path, text, sizeof(text)) || strlen(text) >= sizeof(port->ca_name))
		return false;
	strcpy(port->ca_name, text);
	snprintf(path, sizeof(path), SYS_INFINIBAND_MAD "/%s%d/port", kind, number);
	if (!read_line(path, text, sizeof(text)))
		return false;
	port->portnum = atoi(text);
	return true;
}

void find_ports(void)
{
	struct port *found[] = {&here, &there};
	const char *alone = getenv("CONFORMANCE_PORT");
	size_t count = 0;

	if (alone) {
		/* the buffer has the size of ca_name */
		if (sscanf(alone, "%19s %d", here.ca_name, &here.portnum) != 2)
			cannot("CONFORMANCE_PORT is not \"CA PORT\"");
		read_addresses(&here);
		return;
	}
	for (int number = 0; number < NODES && count < 2; number++)
		if (owner_of("umad", number, found[count]))
			read_addresses(found[count++]);
	if (count < 2)
		cannot("there are %zu umad devices, and two are needed", count);
}

int open_port(const struct port *port)
{
	int fd = umad_open_port(port->ca_name, port->portnum);

	expect(fd >= 0);
	return fd;
}

/* The N of the port's umadN or issmN; NODES if the port has none. */
static int device_number(const struct port *port, const char *kind)
{
	struct port owner;
	int number = 0;

	while (number < NODES &&
	       (!owner_of(kind, number, &owner) || strcmp(owner.ca_name, port->ca_name) ||
		owner.portnum != port->portnum))
		number++;
	return number;
}

void device_path(const struct port *port, const char *kind, char path[64])
{
	int number = device_number(port, kind);

	expect(number < NODES);
	snprintf(path, 64, "/dev/infiniband/%s%d", kind, number);
}

bool has_issm(const struct port *port)
{
	return device_number(port, "issm") < NODES;
}

void needs_issm(void)
{
	if (here.ethernet && !has_issm(&here))
		not_on_this_kernel("sysfs has no issm device for this port, which has no QP0");
}

int open_device(const struct port *port, const char *kind, int flags)
{
	char path[64];

	device_path(port, kind, path);
	return open(path, flags);
}

void set_environment(int argc, char **argv)
{
	script = argc > 1 ? argv[1] : NULL;
	if (argc > 2)
		extent = argv[2];
}

bool environment_is_brief(void)
{
	return !strcmp(extent, "brief");
}

bool environment_is_long(void)
{
	return !strcmp(extent, "long");
}

bool environment_asked(const char *verb, const char *argument)
{
	char command[512];
	int status;

	if (!script)
		return false;
	snprintf(command, sizeof(command), "%s %s %s", script, verb, argument);
	status = system(command);
	expect(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		return false;
	expect_equal(WEXITSTATUS(status), 0);
	return true;
}
