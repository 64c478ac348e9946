/* SPDX-License-Identifier: BSD-2-Clause */

/* HCAs of a real kernel. A socket pair stands for the file of the module: each message is one
 * packet of the socket. */
#include "server.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "classes.h"
#include "frame.h"
#include "hca_protocol.h"
#include "links.h"
#include "node.h"
#include "remove_tree.h"
#include "sma.h"
#include "timers.h"
#include "topology.h"
#include "wire.h"

#define HOST_1 0
#define HOST_2 1

#define SMP_DATA_AT 64
#define SMP_PATH_AT 128

struct kernel { /* the module's side */
	struct server server;
	char folder[32];
	int fd;
	struct sim_hca_create create;
	struct sim_hca_message message; /* the last one from umad-sim */
	uint8_t payload[1024];
};

static int next_fd = -1; /* what open() of the device returns */
static int device_error;

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);

int __wrap_open(const char *path, int flags, ...)
{
	va_list arguments;
	unsigned int mode;

	if (!strcmp(path, SIM_HCA_DEVICE)) {
		errno = device_error;
		return next_fd;
	}
	va_start(arguments, flags);
	mode = va_arg(arguments, unsigned int);
	va_end(arguments);
	return __real_open(path, flags, mode);
}

int __wrap_open64(const char *path, int flags, ...)
{
	va_list arguments;
	unsigned int mode;

	va_start(arguments, flags);
	mode = va_arg(arguments, unsigned int);
	va_end(arguments);
	return __wrap_open(path, flags, mode);
}

static void say(const struct kernel *kernel, enum sim_hca_kind kind, uint32_t port, uint32_t id,
		const void *payload, size_t length)
{
	uint8_t bytes[2048];
	struct sim_hca_message message = {
		.kind = kind, .port = port, .id = id, .length = (uint32_t)length};

	memcpy(bytes, &message, sizeof(message));
	if (length)
		memcpy(bytes + sizeof(message), payload, length);
	length += sizeof(message);
	assert_int_equal(write(kernel->fd, bytes, length), (int)length);
}

/* The next message from umad-sim; false: none. */
static bool hear(struct kernel *kernel)
{
	uint8_t bytes[2048];
	ssize_t length = recv(kernel->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (length <= 0)
		return false;
	memcpy(&kernel->message, bytes, sizeof(kernel->message));
	assert_int_equal(length, (int)(sizeof(kernel->message) + kernel->message.length));
	memcpy(kernel->payload, bytes + sizeof(kernel->message), kernel->message.length);
	return true;
}

/* Lets umad-sim read, and packets arrive. */
static void run(struct kernel *kernel)
{
	struct pollfd from_kernel = {.events = POLLIN};

	from_kernel.fd = kernel->server.connections->fd;
	while (poll(&from_kernel, 1, 0) > 0)
		assert_true(kernel_device_read(kernel->server.connections));
	for (unsigned int i = 0; i < 20; i++) {
		kernel->server.fabric.now += MILLISECOND;
		timers_run(&kernel->server.fabric, 1000);
	}
}

/* The fabric "pair"; the SM is on host-2. */
static void make_fabric(struct kernel *kernel)
{
	static const struct server_options options = {.seed = 1};
	struct topology_error wrong = {0};
	struct graph graph;
	char why[256];

	graph_init(&graph);
	assert_int_equal(topology_load(&graph, "pair", &wrong), 0);
	assert_int_equal(server_prepare(&kernel->server, &graph, &options, why), 0);
	strcpy(kernel->folder, "/tmp/kernel-device.XXXXXX");
	assert_non_null(mkdtemp(kernel->folder));
	kernel->server.folder = kernel->folder;
	kernel->server.fabric.now = MILLISECOND;
}

static struct kernel *set_up(void)
{
	struct kernel *kernel = calloc(1, sizeof(*kernel));
	char why[256] = "";
	int ends[2];

	assert_non_null(kernel);
	make_fabric(kernel);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
	kernel->fd = ends[0];
	next_fd = ends[1];
	say(kernel, SIM_HCA_CREATED, 0, 0, NULL, 0);
	assert_int_equal(kernel_devices_start(&kernel->server, NULL, why), 0);
	assert_true(hear(kernel));
	assert_int_equal(kernel->message.kind, SIM_HCA_CREATE);
	memcpy(&kernel->create, kernel->payload, sizeof(kernel->create));
	assert_false(hear(kernel));
	return kernel;
}

static void tear_down(struct kernel *kernel)
{
	server_free(&kernel->server);
	remove_tree(kernel->folder);
	close(kernel->fd);
	free(kernel);
}

#define KERNEL_TEST(name) TEST_ON(name, struct kernel *kernel, set_up, tear_down)

static void make_smp(uint8_t mad[MAD_BYTES], uint8_t class, uint8_t method,
		     unsigned int attribute)
{
	memset(mad, 0, MAD_BYTES);
	mad[0] = 1;
	mad[1] = class;
	mad[2] = 1;
	mad[3] = method;
	put64(mad + 8, 0x1234);
	put16(mad + 16, attribute);
	if (class == CLASS_DIRECTED_SMP) {
		put16(mad + 32, PERMISSIVE_LID);
		put16(mad + 34, PERMISSIVE_LID);
	}
}

static void send_packet(const struct kernel *kernel, const uint8_t mad[MAD_BYTES],
			uint16_t dlid)
{
	const struct frame_address address = {.dlid = dlid, .pkey = DEFAULT_PKEY, .vl = 15};
	uint8_t frame[FRAME_BYTES];

	say(kernel, SIM_HCA_PACKET, 1, 0, frame, frame_put(frame, &address, mad));
}

static void hear_packet(struct kernel *kernel, struct frame_address *address,
			uint8_t mad[MAD_BYTES])
{
	assert_true(hear(kernel));
	assert_int_equal(kernel->message.kind, SIM_HCA_PACKET);
	assert_int_equal(kernel->message.port, 1);
	assert_true(frame_parse(kernel->payload, kernel->message.length, address, mad));
}

static struct sim_hca_reply command(struct kernel *kernel,
				    const struct sim_hca_command *request)
{
	struct sim_hca_reply reply;

	say(kernel, SIM_HCA_COMMAND, 1, 77, request, sizeof(*request));
	run(kernel);
	do /* the SM represses traps of the port */
		assert_true(hear(kernel));
	while (kernel->message.kind == SIM_HCA_PACKET);
	assert_int_equal(kernel->message.kind, SIM_HCA_REPLY);
	assert_int_equal(kernel->message.id, 77);
	memcpy(&reply, kernel->payload, sizeof(reply));
	return reply;
}

static uint32_t port_of_host_1(const struct kernel *kernel)
{
	return hardware(&kernel->server.fabric, HOST_1)->first_port + 1;
}

static void hear_event(struct kernel *kernel, enum sim_hca_event event)
{
	assert_true(hear(kernel));
	assert_int_equal(kernel->message.kind, SIM_HCA_EVENT);
	assert_int_equal(kernel->message.port, 1);
	assert_int_equal(kernel->message.id, event);
}

KERNEL_TEST(a_device_has_the_properties_of_its_node)
{
	assert_string_equal(kernel->create.name, "mlx5_0");
	assert_string_equal(kernel->create.node_description, "host-1");
	assert_string_equal(kernel->create.type, "MT4123");
	assert_int_equal(kernel->create.port_count, 1);
	assert_true(kernel->create.node_guid == hardware(&kernel->server.fabric, HOST_1)->guid);
}

/* Each reply may lead to the next command: between them the server has its other events. */
KERNEL_TEST(a_device_is_read_once_for_each_event)
{
	struct sim_hca_command request = {.operation = SIM_HCA_DESCRIPTION};

	for (uint32_t id = 1; id <= 2; id++)
		say(kernel, SIM_HCA_COMMAND, 1, id, &request, sizeof(request));
	assert_true(kernel_device_read(kernel->server.connections));
	assert_true(hear(kernel));
	assert_int_equal(kernel->message.id, 1);
	while (hear(kernel))
		assert_int_not_equal(kernel->message.kind, SIM_HCA_REPLY);
}

TEST(without_the_module_the_reason_names_it)
{
	struct kernel kernel = {.fd = -1};
	char why[256] = "";

	make_fabric(&kernel);
	next_fd = -1;
	device_error = ENOENT;
	assert_int_equal(kernel_devices_start(&kernel.server, NULL, why), -ENOENT);
	assert_non_null(strstr(why, "sim_hca"));
	assert_int_equal(kernel_devices_start(&kernel.server, "host-9", why), -ENOENT);
	server_free(&kernel.server);
	remove_tree(kernel.folder);
}

TEST(the_error_of_the_kernel_is_the_reason)
{
	struct kernel kernel = {0};
	char why[256] = "";
	int ends[2];

	make_fabric(&kernel);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
	kernel.fd = ends[0];
	next_fd = ends[1];
	say(&kernel, SIM_HCA_CREATED, 0, ENFILE, NULL, 0);
	assert_int_equal(kernel_devices_start(&kernel.server, NULL, why), -ENFILE);
	assert_non_null(strstr(why, "mlx5_0"));
	server_free(&kernel.server);
	remove_tree(kernel.folder);
	close(kernel.fd);
}

/* The kernel has incremented the hop pointer of the request, and decrements that of the
 * response. */
KERNEL_TEST(a_directed_request_has_its_response)
{
	struct frame_address address;
	uint8_t mad[MAD_BYTES];

	make_smp(mad, CLASS_DIRECTED_SMP, METHOD_GET, IB_ATTR_NODE_INFO);
	mad[6] = 1;
	mad[7] = 1;
	mad[SMP_PATH_AT + 1] = 1;
	send_packet(kernel, mad, PERMISSIVE_LID);
	run(kernel);
	hear_packet(kernel, &address, mad);
	assert_int_equal(mad[3], METHOD_GET | METHOD_RESPONSE);
	assert_int_equal(mad[6], 1);
	assert_int_equal(address.qp, 0);
	assert_int_equal(address.vl, 15);
	assert_true(get64(mad + SMP_DATA_AT + 12) ==
		    hardware(&kernel->server.fabric, HOST_2)->guid);
	assert_false(hear(kernel));
}

KERNEL_TEST(a_request_by_lid_has_the_lid_of_the_port)
{
	const struct port *ports = kernel->server.fabric.ports;
	uint32_t port = port_of_host_1(kernel);
	struct frame_address address;
	uint8_t mad[MAD_BYTES];

	make_smp(mad, CLASS_SMP, METHOD_GET, IB_ATTR_NODE_INFO);
	send_packet(kernel, mad,
		    kernel->server.fabric.ports[cable(&kernel->server.fabric, port)->peer].lid);
	run(kernel);
	hear_packet(kernel, &address, mad);
	assert_int_equal(address.dlid, ports[port].lid);
	assert_int_equal(mad[3], METHOD_GET | METHOD_RESPONSE);
}

/* Not the simulated adapter responds, but the kernel. */
KERNEL_TEST(requests_of_others_reach_the_kernel)
{
	struct fabric *fabric = &kernel->server.fabric;
	struct packet packet = {.from = hardware(fabric, HOST_2)->first_port + 1,
				.dlid = PERMISSIVE_LID};
	struct frame_address address;
	uint8_t mad[MAD_BYTES];

	make_smp(packet.mad, CLASS_DIRECTED_SMP, METHOD_GET, IB_ATTR_NODE_INFO);
	packet.mad[7] = 1;
	packet.mad[SMP_PATH_AT + 1] = 1;
	wire_send(fabric, &packet);
	run(kernel);
	hear_packet(kernel, &address, mad);
	assert_int_equal(mad[3], METHOD_GET);
	assert_int_equal(mad[6], 1); /* not changed by the receiver yet */
	assert_false(hear(kernel));
}

KERNEL_TEST(malformed_packets_are_not_sent)
{
	uint8_t frame[FRAME_BYTES] = {0};

	for (uint32_t length = 0; length < FRAME_BYTES; length++) {
		say(kernel, SIM_HCA_PACKET, 1, 0, frame, length);
		run(kernel);
	}
	assert_false(hear(kernel));
}

KERNEL_TEST(the_adapter_responds_to_commands)
{
	struct sim_hca_command request = {.operation = SIM_HCA_MAD};
	struct sim_hca_reply reply;

	make_smp(request.data, CLASS_SMP, METHOD_GET, IB_ATTR_NODE_INFO);
	reply = command(kernel, &request);
	assert_int_equal(reply.status, 0);
	assert_int_equal(reply.responds, 1);
	assert_true(get64(reply.data + SMP_DATA_AT + 12) ==
		    hardware(&kernel->server.fabric, HOST_1)->guid);
	make_smp(request.data, CLASS_SMP, METHOD_TRAP_REPRESS, 2);
	reply = command(kernel, &request);
	assert_int_equal(reply.status, 0);
	assert_int_equal(reply.responds, 0);
	request.operation = 99;
	assert_int_equal(command(kernel, &request).status, EOPNOTSUPP);
}

KERNEL_TEST(is_sm_is_a_bit_of_the_port)
{
	struct sim_hca_command request = {.operation = SIM_HCA_CAPABILITIES, .set = IS_SM};
	const struct port *state = &kernel->server.fabric.ports[port_of_host_1(kernel)];

	assert_int_equal(command(kernel, &request).status, 0);
	assert_true(state->capability_mask & IS_SM);
	request.set = 0;
	request.clear = IS_SM;
	assert_int_equal(command(kernel, &request).status, 0);
	assert_false(state->capability_mask & IS_SM);
}

KERNEL_TEST(the_description_of_a_node_changes)
{
	struct sim_hca_command request = {.operation = SIM_HCA_DESCRIPTION};
	char longest[65];

	strcpy((char *)request.data, "rack 7");
	assert_int_equal(command(kernel, &request).status, 0);
	request.operation = SIM_HCA_MAD;
	make_smp(request.data, CLASS_SMP, METHOD_GET, IB_ATTR_NODE_DESC);
	assert_string_equal((char *)command(kernel, &request).data + SMP_DATA_AT, "rack 7");
	memset(longest, 'x', 64);
	longest[64] = '\0';
	request.operation = SIM_HCA_DESCRIPTION;
	memset(request.data, 'x', MAD_BYTES);
	assert_int_equal(command(kernel, &request).status, 0);
	assert_string_equal(kernel->server.fabric.nodes[HOST_1].description, longest);
}

/* The driver knows no M_Key; a program has to. */
KERNEL_TEST(a_command_of_the_driver_needs_no_mkey)
{
	struct sim_hca_command request = {.operation = SIM_HCA_MAD};
	uint32_t port = port_of_host_1(kernel);
	struct port_settings *settings = settings_of(&kernel->server.fabric, port);

	assert_non_null(settings);
	settings->mkey = 0x55;
	settings->mkey_protect = 2;
	make_smp(request.data, CLASS_SMP, METHOD_GET, IB_ATTR_NODE_INFO);
	assert_int_equal(command(kernel, &request).responds, 0);
	request.flags = SIM_HCA_IGNORE_MKEY;
	assert_int_equal(command(kernel, &request).responds, 1);
}

KERNEL_TEST(events_follow_the_reply_to_a_set)
{
	struct sim_hca_command request = {.operation = SIM_HCA_MAD};
	struct sim_hca_reply reply;
	uint8_t *data = request.data + SMP_DATA_AT;

	make_smp(request.data, CLASS_SMP, METHOD_GET, IB_ATTR_PORT_INFO);
	put32(request.data + 20, 1);
	reply = command(kernel, &request);
	memcpy(data, reply.data + SMP_DATA_AT, 64);
	request.data[3] = METHOD_SET;
	put16(data + 16, 7); /* LID */
	put16(data + 18, 9); /* SM LID */
	data[32] &= 0xf0;    /* the state does not change */
	data[33] &= 0x0f;
	data[51] |= 0x80; /* ClientReregister */
	reply = command(kernel, &request);
	assert_int_equal(get16(reply.data + 4), 0);
	hear_event(kernel, SIM_HCA_LID_CHANGE);
	hear_event(kernel, SIM_HCA_SM_CHANGE);
	hear_event(kernel, SIM_HCA_REREGISTER);
	assert_false(hear(kernel));
	make_smp(request.data, CLASS_SMP, METHOD_SET, IB_ATTR_PKEY_TBL);
	put16(data, DEFAULT_PKEY);
	put16(data + 2, 0x8001);
	command(kernel, &request);
	hear_event(kernel, SIM_HCA_PKEY_CHANGE);
	assert_false(hear(kernel));
}

KERNEL_TEST(the_kernel_is_told_of_links)
{
	uint32_t port = port_of_host_1(kernel);

	link_cut(&kernel->server.fabric, port, true);
	hear_event(kernel, SIM_HCA_PORT_ERROR);
	link_cut(&kernel->server.fabric, port, false);
	run(kernel);
	assert_false(hear(kernel) && kernel->message.id == SIM_HCA_PORT_ERROR);
}

KERNEL_TEST(a_removed_device_is_closed)
{
	uint8_t byte;

	kernel_devices_node_changed(&kernel->server, HOST_1, false);
	assert_int_equal(recv(kernel->fd, &byte, 1, MSG_DONTWAIT), 0);
}
