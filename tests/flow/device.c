/* SPDX-License-Identifier: BSD-2-Clause */

/* The umad device: handles, held transaction IDs, timeouts, and the calls of sys.h. */

#include "judge.h"
#include "kernel_abi.h"
#include "sys.h"

#include <infiniband/mad.h>

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

/* A handle below 1024 is a descriptor to the library; the process has few open ones. */
#define FIRST_HANDLE 512
#define MAX_HANDLES  16
#define BUCKET_BITS  14
#define MAD_BYTES    256
#define REPORT_BYTES 24 /* the MAD of a report of a timeout */

#define WRITE_TIME 1500 /* ns */
#define READ_TIME  1000 /* ns */

struct handle {
	bool open;
	uint32_t agents; /* that were registered */
	struct packet *queue, **last;
};

static struct {
	struct handle handles[MAX_HANDLES];
	struct packet *held[1 << BUCKET_BITS];
	int64_t write_time, read_time;
	uint32_t serial;
	uint32_t tid;
	uint64_t random;
	unsigned messages; /* in all queues */
	unsigned busy_first;
} device;

int64_t __wrap_clock_us(void);
uint64_t __wrap_mad_trid(void);

/* No clock of a host is 0, which the library takes for "never". */
int64_t __wrap_clock_us(void)
{
	return model_now() / US + 1;
}

/* Transaction IDs begin anew with each device, so that each run is the same. */
uint64_t __wrap_mad_trid(void)
{
	return ++device.tid;
}

static struct handle *handle_of(int fd)
{
	int place = fd - FIRST_HANDLE;

	return place >= 0 && place < MAX_HANDLES && device.handles[place].open
		       ? &device.handles[place]
		       : NULL;
}

/* --- held transaction IDs ------------------------------------------------------- */

static uint32_t tid_of(const struct packet *packet)
{
	uint32_t tid;

	memcpy(&tid, packet->mad + 12, sizeof(tid));
	return tid;
}

static struct packet **bucket_of(const struct packet *packet)
{
	uint32_t key = be32toh(tid_of(packet)) + (uint32_t)packet->handle * 2654435761u;

	return &device.held[(key * 2654435761u) >> (32 - BUCKET_BITS)];
}

/* The place of the link to the held packet with the class and ID of a packet, or of NULL. */
static struct packet **find_held(const struct packet *packet)
{
	struct packet **link = bucket_of(packet);

	while (*link && (tid_of(*link) != tid_of(packet) || (*link)->mad[1] != packet->mad[1] ||
			 (*link)->handle != packet->handle))
		link = &(*link)->next_held;
	return link;
}

static void release(struct packet **link)
{
	struct packet *packet = *link;

	*link = packet->next_held;
	packet->held = false;
}

static void free_if_unused(struct packet *packet)
{
	if (!packet->held && !packet->traveling)
		model_free_packet(packet);
}

/* --- messages to the program ---------------------------------------------------- */

static void queue_message(struct packet *packet)
{
	struct handle *handle = handle_of(packet->handle);

	packet->next = NULL;
	if (!handle) {
		model_free_packet(packet);
		return;
	}
	*handle->last = packet;
	handle->last = &packet->next;
	device.messages++;
}

void device_end_travel(struct packet *packet, enum fate fate)
{
	struct packet **link = find_held(packet), *held = *link;

	if (fate != ARRIVED)
		account_lost(packet, fate);
	if (fate != ARRIVED || !held) {
		free_if_unused(packet);
		return;
	}
	release(link);
	if (held != packet)
		free_if_unused(held);
	packet->timed_out = false;
	queue_message(packet);
}

void device_report(struct packet *packet, uint32_t serial)
{
	struct packet *report, *next;

	if (packet->serial != serial || !packet->held)
		return;
	release(find_held(packet));
	report = model_take_packet();
	next = report->next_of_all;
	*report = *packet;
	report->next_of_all = next;
	report->traveling = false;
	report->timed_out = true;
	free_if_unused(packet);
	queue_message(report);
}

/*
 * When the kernel reports a timeout: 54 to 64 ms after 50, 212 after 200, 1031 after 1000, 437
 * after 4 x 100.
 */
static int64_t report_time(const struct ib_user_mad *header)
{
	int64_t whole = (int64_t)header->timeout_ms * (1 + (int64_t)header->retries) * MS;

	return model_now() + whole + whole * 27 / 1000 + 4 * MS +
	       (int64_t)(random_unit(&device.random) * 8 * MS);
}

/* --- reading and writing -------------------------------------------------------- */

/* The agent's ID is the upper half of the transaction ID of a response. */
static void fill_message(const struct packet *packet, uint8_t *mad)
{
	uint32_t agent = htobe32(packet->header.agent_id + 1);

	memcpy(mad, packet->mad, KEPT_BYTES);
	memset(mad + KEPT_BYTES, 0, MAD_BYTES - KEPT_BYTES);
	memcpy(mad + 8, &agent, sizeof(agent));
	if (packet->timed_out)
		return;
	mad[3] = mad[3] == 0x02 ? 0x81 : mad[3] | 0x80;
	mad[4] = mad[1] == 0x81 ? 0x80 : 0;
	mad[5] = packet->node < device.busy_first ? IB_MAD_STS_BUSY : 0;
}

static ssize_t read_message(struct handle *handle, uint8_t *buf, size_t size)
{
	struct packet *packet = handle->queue;
	struct ib_user_mad header;
	size_t length;

	if (!packet)
		return -EAGAIN;
	if (size < sizeof(header) + MAD_BYTES)
		return -EINVAL;
	header = packet->header;
	length = sizeof(header) + (packet->timed_out ? REPORT_BYTES : MAD_BYTES);
	if (packet->timed_out) {
		header.status = ETIMEDOUT;
	} else {
		header.timeout_ms = 0;
		header.retries = 0;
		header.addr.qkey = 0;
	}
	header.length = (uint32_t)length;
	memcpy(buf, &header, sizeof(header));
	fill_message(packet, buf + sizeof(header));
	handle->queue = packet->next;
	if (!handle->queue)
		handle->last = &handle->queue;
	device.messages--;
	account_read(packet);
	model_free_packet(packet);
	model_advance(model_now() + device.read_time);
	return (ssize_t)length;
}

static ssize_t write_message(struct handle *handle, int fd, const uint8_t *buf, size_t size)
{
	size_t length = size - sizeof(struct ib_user_mad);
	struct packet *packet, **bucket;

	if (size < sizeof(struct ib_user_mad) + 36 ||
	    size > sizeof(struct ib_user_mad) + MAD_BYTES)
		return -EINVAL;
	model_advance(model_now() + device.write_time);
	packet = model_take_packet();
	packet->serial = ++device.serial;
	packet->handle = fd;
	packet->held = packet->traveling = packet->timed_out = false;
	memcpy(&packet->header, buf, sizeof(packet->header));
	memset(packet->mad, 0, KEPT_BYTES);
	memcpy(packet->mad, buf + sizeof(packet->header),
	       length < KEPT_BYTES ? length : KEPT_BYTES);
	packet->node = be16toh(packet->header.addr.lid) - 1u;
	if (packet->header.agent_id >= handle->agents || *find_held(packet)) {
		model_free_packet(packet);
		return -EINVAL;
	}
	if (packet->header.timeout_ms) {
		bucket = bucket_of(packet);
		packet->held = true;
		packet->next_held = *bucket;
		*bucket = packet;
	}
	if (packet->header.timeout_ms && packet->header.timeout_ms != UINT32_MAX)
		model_report_at(packet, report_time(&packet->header));
	account_written(packet);
	model_send(packet);
	return (ssize_t)size;
}

/* --- waiting -------------------------------------------------------------------- */

static int poll_handle(const struct handle *handle, int timeout_ms, int *other_revents)
{
	int64_t end = timeout_ms < 0 ? NO_TIME : model_now() + timeout_ms * MS, next;

	*other_revents = 0;
	model_advance(model_now());
	if (run_polled()) {
		*other_revents = POLLIN;
		return 0;
	}
	while (!handle->queue) {
		next = model_next();
		if (next == NO_TIME && end == NO_TIME) {
			run_stuck();
			*other_revents = POLLIN;
			return 0;
		}
		if (next > end) {
			model_advance(end);
			return 0;
		}
		model_advance(next);
	}
	return POLLIN;
}

bool device_has_message(void)
{
	return device.messages > 0;
}

/* --- sysfs: one device with one port and its umad device -------------------------- */

#define CA         "/sys/class/infiniband/mlx5_0/"
#define FIRST_FILE 100000 /* the descriptor of the first file */

/* Files of a folder follow one another. A file is read as a whole, once. */
static const struct {
	const char *path, *text;
} files[] = {
	{CA "node_type", "1: CA\n"},
	{CA "fw_ver", "20.31.1014\n"},
	{CA "hw_rev", "0\n"},
	{CA "hca_type", "MT4123\n"},
	{CA "node_guid", "0002:c903:00a0:0b10\n"},
	{CA "sys_image_guid", "0002:c903:00a0:0b13\n"},
	{CA "ports/1/lid", "0xbfff\n"},
	{CA "ports/1/lid_mask_count", "0\n"},
	{CA "ports/1/sm_lid", "0x1\n"},
	{CA "ports/1/sm_sl", "0\n"},
	{CA "ports/1/state", "4: ACTIVE\n"},
	{CA "ports/1/phys_state", "5: LinkUp\n"},
	{CA "ports/1/rate", "100 Gb/sec (4X EDR)\n"},
	{CA "ports/1/cap_mask", "0x2651e848\n"},
	{CA "ports/1/link_layer", "InfiniBand\n"},
	{CA "ports/1/gids/0", "fe80:0000:0000:0000:0002:c903:00a0:0b11\n"},
	{CA "ports/1/pkeys/0", "0xffff\n"},
	{"/sys/class/infiniband_mad/abi_version", "5\n"},
	{"/sys/class/infiniband_mad/umad0/ibdev", "mlx5_0\n"},
	{"/sys/class/infiniband_mad/umad0/port", "1\n"},
};
#define FILES (int)(sizeof(files) / sizeof(*files))

static bool file_was_read[FILES];

static int open_file(const char *path)
{
	for (int i = 0; i < FILES; i++)
		if (!strcmp(files[i].path, path)) {
			file_was_read[i] = false;
			return FIRST_FILE + i;
		}
	return -ENOENT;
}

static ssize_t read_file(int file, void *buf, size_t size)
{
	size_t length;

	if (file < 0 || file >= FILES)
		return -EBADF;
	length = file_was_read[file] ? 0 : strlen(files[file].text);
	if (length > size)
		return -EINVAL;
	memcpy(buf, files[file].text, length);
	file_was_read[file] = true;
	return (ssize_t)length;
}

int sys_list(const char *dir, sys_visit_fn *visit, void *arg)
{
	size_t length = strlen(dir);
	char name[64], previous[64] = "";
	int ret = 0;

	for (int i = 0; i < FILES && !ret; i++) {
		const char *path = files[i].path;

		if (strncmp(path, dir, length) || path[length] != '/')
			continue;
		path += length + 1;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(path, "/"), path);
		if (strcmp(name, previous))
			ret = visit(name, arg);
		memcpy(previous, name, sizeof(name));
	}
	return *previous ? ret : -ENOENT;
}

/* --- the calls of sys.h --------------------------------------------------------- */

int sys_open(const char *path, int flags)
{
	(void)flags;
	if (strncmp(path, "/dev/infiniband/umad", 20))
		return open_file(path);
	for (int i = 0; i < MAX_HANDLES; i++) {
		struct handle *handle = &device.handles[i];

		if (handle->open)
			continue;
		memset(handle, 0, sizeof(*handle));
		handle->open = true;
		handle->last = &handle->queue;
		return FIRST_HANDLE + i;
	}
	return -EMFILE;
}

int sys_close(int fd)
{
	struct handle *handle = handle_of(fd);
	struct packet *packet;

	if (!handle)
		return 0;
	while ((packet = handle->queue)) {
		handle->queue = packet->next;
		model_free_packet(packet);
		device.messages--;
	}
	handle->open = false;
	return 0;
}

int sys_ioctl(int fd, unsigned long request, void *arg)
{
	struct handle *handle = handle_of(fd);

	if (!handle)
		return -EBADF;
	switch (request) {
	case IB_USER_MAD_ENABLE_PKEY:
	case IB_USER_MAD_UNREGISTER_AGENT:
		return 0;
	case IB_USER_MAD_REGISTER_AGENT:
		((struct ib_user_mad_reg_req *)arg)->id = handle->agents++;
		return 0;
	case IB_USER_MAD_REGISTER_AGENT2:
		((struct ib_user_mad_reg_req2 *)arg)->id = handle->agents++;
		return 0;
	}
	return -ENOTTY;
}

ssize_t sys_read(int fd, void *buf, size_t size)
{
	struct handle *handle = handle_of(fd);

	if (!handle)
		return read_file(fd - FIRST_FILE, buf, size);
	model_advance(model_now());
	return read_message(handle, buf, size);
}

ssize_t sys_write(int fd, const void *buf, size_t size)
{
	struct handle *handle = handle_of(fd);

	return handle ? write_message(handle, fd, buf, size) : -EBADF;
}

int sys_poll_both(int fd, int other, int timeout_ms, int *other_revents)
{
	struct handle *handle = handle_of(fd);

	(void)other;
	return handle ? poll_handle(handle, timeout_ms, other_revents) : POLLNVAL;
}

int sys_poll(int fd, int timeout_ms)
{
	int other_revents;

	return sys_poll_both(fd, -1, timeout_ms, &other_revents);
}

/* --- start and end -------------------------------------------------------------- */

void device_start(const struct fabric *fabric)
{
	memset(&device, 0, sizeof(device));
	/* the processes of several hosts run at the same time */
	device.write_time = WRITE_TIME / host_count(fabric);
	device.read_time = READ_TIME / host_count(fabric);
	device.random = fabric->seed;
	device.busy_first = fabric->busy_first;
	model_start(fabric);
}
