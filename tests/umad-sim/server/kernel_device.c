/* SPDX-License-Identifier: BSD-2-Clause */

/* HCAs of a real kernel: they are created and removed, and come back. */
#include "kernel_device.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int create(struct kernel_device *device)
{
	const struct fabric *fabric = &device->server->fabric;
	const struct graph_node *node = hardware(fabric, device->node);
	struct sim_hca_create request = {
		.version = SIM_HCA_VERSION,
		.port_count = node->port_count,
		.node_guid = node->guid,
		.system_guid = node->system_guid,
		.vendor_id = node->vendor_id,
		.device_id = node->device_id,
		.firmware = "20.41.1000",
		.board = "SIM0000000001",
	};
	size_t length = strlen(node->name);

	snprintf(request.name, sizeof(request.name), "mlx5_%u", device->number);
	snprintf(request.type, sizeof(request.type), "MT%u", node->device_id);
	memcpy(request.node_description, node->name,
	       length < sizeof(request.node_description) ? length
							 : sizeof(request.node_description));
	for (uint32_t number = 1; number <= node->port_count; number++)
		kernel_know(fabric, node->first_port + number, &device->known[number]);
	return kernel_tell(device, SIM_HCA_CREATE, 0, 0, &request, sizeof(request));
}

static int open_device(struct kernel_device *device)
{
	int fd = open(SIM_HCA_DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	device->connection = connection_add(device->server, fd);
	if (!device->connection) {
		close(fd);
		return -ENOMEM;
	}
	device->connection->kind = CONNECTION_KERNEL;
	device->connection->kernel = device;
	return create(device);
}

static void close_device(struct kernel_device *device)
{
	device->created = false;
	if (device->connection)
		connection_close(device->connection);
	device->connection = NULL;
}

/* From now on, the node's ports belong to the kernel. */
static int take_ports(struct kernel_device *device)
{
	struct fabric *fabric = &device->server->fabric;
	const struct graph_node *node = hardware(fabric, device->node);

	for (uint32_t number = 1; number <= node->port_count; number++) {
		struct host_port *host = host_at(fabric, node->first_port + number);

		if (!host)
			return -ENOMEM;
		host->kernel = device;
		host->to_kernel = kernel_receives;
		fabric->ports[node->first_port + number].of_kernel = true;
	}
	return 0;
}

/* Performs commands until the kernel has registered the device. */
static int await(struct kernel_device *device, char *why)
{
	struct server *server = device->server;
	sigset_t none;

	sigemptyset(&none);
	while (!server->stop && device->connection && !device->created && !device->error) {
		struct pollfd pollfd = {.fd = device->connection->fd, .events = POLLIN};

		if (ppoll(&pollfd, 1, NULL, &none) > 0)
			kernel_device_read(device->connection);
	}
	if (device->error)
		snprintf(why, 256, "the kernel failed to register device mlx5_%u: %s",
			 device->number, strerror(-device->error));
	return device->error;
}

static int add(struct server *server, uint32_t node, unsigned int number, char *why)
{
	const struct graph_node *hw = hardware(&server->fabric, node);
	struct kernel_device *device;
	int error;

	if (hw->type != NODE_CA || hw->port_count > MOST_PORTS) {
		snprintf(why, 256, "\"%.100s\" cannot be a device of the kernel: %s", hw->name,
			 hw->type == NODE_CA ? "it has too many ports" : "it is not a CA");
		return -EINVAL;
	}
	device = calloc(1, sizeof(*device));
	if (!device)
		return -ENOMEM;
	device->server = server;
	device->node = node;
	device->number = number;
	device->next = server->kernel_devices;
	server->kernel_devices = device;
	error = take_ports(device);
	if (!error && !server->fabric.nodes[node].removed) {
		error = open_device(device);
		if (error)
			snprintf(why, 256, "%s: %s%s", SIM_HCA_DEVICE, strerror(-error),
				 error == -ENOENT ? " (is the module sim_hca loaded?)" : "");
	}
	if (!error && device->connection)
		error = await(device, why);
	return error;
}

int kernel_devices_start(struct server *server, const char *nodes, char *why)
{
	char first[16];
	struct view *view;
	int error;

	if (!nodes) {
		snprintf(first, sizeof(first), "#%u", server_first_node(&server->fabric.graph));
		nodes = first;
	}
	error = view_find(&server->fabric, &server->views, server->folder, nodes, &view, why);
	for (unsigned int i = 0; !error && i < view->node_count; i++)
		error = add(server, view->nodes[i], i, why);
	if (error && !why[0])
		snprintf(why, 256, "cannot create the kernel's devices: %s", strerror(-error));
	return error;
}

void kernel_devices_free(struct server *server)
{
	while (server->kernel_devices) {
		struct kernel_device *device = server->kernel_devices;

		server->kernel_devices = device->next;
		close_device(device);
		free(device);
	}
}

void kernel_devices_node_changed(struct server *server, uint32_t node, bool present)
{
	for (struct kernel_device *device = server->kernel_devices; device;
	     device = device->next) {
		if (device->node != node || present == (device->connection != NULL))
			continue;
		if (!present)
			close_device(device);
		else if (open_device(device))
			fprintf(stderr, "umad-sim: cannot bring device mlx5_%u back\n",
				device->number);
	}
}
