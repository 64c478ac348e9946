/* SPDX-License-Identifier: BSD-2-Clause */

/* Handles of umad devices without sockets, to test what the kernel does for programs. */
#ifndef FABRIC_DEVICE_FIXTURE_H
#define FABRIC_DEVICE_FIXTURE_H

#include "subnet_fixture.h"
#include "test.h"

#include <errno.h>

#include "umad_device.h"

#define PING_CLASS 0x32 /* range 2: RMPP and an OUI */
#define OUI        0x001405
#define ACTIVE     1 /* an RMPP flag */

struct device {
	struct handle *handle;
	struct shared shared;
	unsigned int readable; /* how often a message was reported */
	unsigned int removed;
};

struct machines {
	struct subnet *subnet;
	struct device *alpha; /* a handle on ALPHA */
	struct device *gamma; /* a handle on GAMMA */
};

static inline void note_readable(struct handle *handle)
{
	((struct device *)handle->owner)->readable++;
}

static inline void note_removed(struct handle *handle)
{
	((struct device *)handle->owner)->removed++;
}

static inline struct device *open_device(struct subnet *subnet, uint32_t node)
{
	struct device *device = (struct device *)calloc(1, sizeof(*device));
	struct host_port *host = host_at(&subnet->fabric, port_of(subnet, node, 1));

	assert_non_null(device);
	assert_non_null(host);
	device->handle = handle_open(&subnet->fabric, host);
	assert_non_null(device->handle);
	device->handle->shared = &device->shared;
	atomic_store(&device->shared.smi_port, 1);
	device->handle->owner = device;
	device->handle->readable = note_readable;
	device->handle->removed = note_removed;
	return device;
}

static inline void close_device(struct device *device)
{
	handle_close(device->handle);
	free(device);
}

static inline struct machines *set_up_machines(void)
{
	struct machines *machines = (struct machines *)calloc(1, sizeof(*machines));

	assert_non_null(machines);
	machines->subnet = new_subnet(false, 7);
	machines->alpha = open_device(machines->subnet, ALPHA);
	machines->gamma = open_device(machines->subnet, GAMMA);
	return machines;
}

static inline void tear_down_machines(struct machines *machines)
{
	close_device(machines->alpha);
	close_device(machines->gamma);
	free_subnet(machines->subnet);
	free(machines);
}

#define MACHINES_TEST(name) \
	TEST_ON(name, struct machines *machines, set_up_machines, tear_down_machines)

static inline struct fabric *fabric_of(const struct machines *machines)
{
	return &machines->subnet->fabric;
}

/* --- agents --------------------------------------------------------------------- */

static inline int call(struct device *device, uint32_t code, void *argument, size_t length)
{
	uint8_t bytes[ARGUMENT_BYTES] = {0};
	int error;

	memcpy(bytes, argument, length);
	error = handle_ioctl(device->handle, code, bytes);
	memcpy(argument, bytes, length);
	return error;
}

/* Registers an agent of a class, on the class's queue pair; method 0: no server. Returns its
 * id, or a negative errno. */
static inline int agent(struct device *device, uint8_t class, uint8_t rmpp_version,
			unsigned int method)
{
	struct ib_user_mad_reg_req request = {
		.qpn = class == CLASS_SMP || class == CLASS_DIRECTED_SMP ? 0 : 1,
		.mgmt_class = class,
		.mgmt_class_version = class == CLASS_SA ? 2 : 1,
		.oui = {0, 0x14, 0x05},
		.rmpp_version = rmpp_version,
	};
	uint64_t methods[2] = {0};
	int error;

	if (method)
		methods[method / 64] = 1ULL << method % 64;
	memcpy(request.method_mask, methods, sizeof(methods));
	error = call(device, IB_USER_MAD_REGISTER_AGENT, &request, sizeof(request));
	return error ? error : (int)request.id;
}

/* The same with REGISTER_AGENT2. */
static inline int agent2(struct device *device, struct ib_user_mad_reg_req2 *request)
{
	int error = call(device, IB_USER_MAD_REGISTER_AGENT2, request, sizeof(*request));

	return error ? error : (int)request->id;
}

static inline int unregister(struct device *device, uint32_t id)
{
	return call(device, IB_USER_MAD_UNREGISTER_AGENT, &id, sizeof(id));
}

static inline int enable_pkey(struct device *device)
{
	uint32_t nothing = 0;

	return call(device, IB_USER_MAD_ENABLE_PKEY, &nothing, 0);
}

/* --- MADs ----------------------------------------------------------------------- */

static inline void make_mad(uint8_t *mad, size_t length, uint8_t class, unsigned int method,
			    uint32_t tid)
{
	memset(mad, 0, length);
	mad[0] = 1;
	mad[1] = class;
	mad[2] = class == CLASS_SA ? 2 : 1;
	mad[3] = (uint8_t)method;
	put32(mad + 12, tid);
	put16(mad + 16, 0x10);
	if (class_is_range2(class))
		put32(mad + 36, OUI);
}

struct destination {
	uint32_t id; /* of the agent */
	uint16_t lid;
	uint32_t timeout;
	uint32_t retries;
	uint8_t path_bits;
	bool smp;
};

static inline size_t layout(const struct device *device)
{
	return atomic_load(&device->shared.pkey_layout) ? HEADER_BYTES : OLD_HEADER_BYTES;
}

/* Does what write() does. */
static inline int write_mad(struct device *device, const struct destination *to,
			    const uint8_t *mad, size_t length)
{
	struct ib_user_mad_hdr header = {
		.id = to->id,
		.timeout_ms = to->timeout,
		.retries = to->retries,
		.length = (uint32_t)length,
		.qpn = htobe32(to->smp ? 0 : 1),
		.qkey = htobe32(to->smp ? 0 : WELL_KNOWN_QKEY),
		.lid = htobe16(to->lid),
		.path_bits = to->path_bits,
	};
	uint8_t *bytes = (uint8_t *)calloc(1, HEADER_BYTES + SINGLE_MAD_BYTES + length);
	int error;

	assert_non_null(bytes);
	memcpy(bytes, &header, layout(device));
	memcpy(bytes + layout(device), mad, length);
	error = check_write(&device->shared, bytes, layout(device) + length);
	if (!error)
		error = handle_write(device->handle, bytes, layout(device) + length);
	free(bytes);
	return error;
}

/* The message that read() would return, to be freed by the caller; NULL: none. */
static inline struct message *read_message(struct device *device)
{
	size_t header_bytes = 0;
	struct message *message = handle_take(device->handle, &header_bytes);

	if (message)
		assert_int_equal(header_bytes, layout(device));
	return message;
}

/* The same; there must be a message. */
static inline struct message *receive(struct device *device)
{
	struct message *message = read_message(device);

	assert_non_null(message);
	return message;
}

#endif
