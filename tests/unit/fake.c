/* SPDX-License-Identifier: BSD-2-Clause */

#define _GNU_SOURCE /* nftw */

#include "fake.h"
#include "kernel_abi.h"
#include "sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEV_DIR     "/dev/infiniband/"
/* Handles of devices begin here: above 1023, as with simulators. */
#define DEVICE_FD   2000
#define MAX_DEVICES 64
#define MAX_HANDLES 64
#define MAX_FILES   1024

struct message {
	struct message *next;
	size_t header_size, mad_size;
	unsigned char bytes[];
};

struct device_state {
	struct fake_device device;
	struct message *queue;
	bool raw_read;
	long raw_result;
	void (*on_poll)(struct fake_device *device);
};

static struct {
	char root[32];
	struct device_state *devices[MAX_DEVICES];
	int device_count;
	struct device_state *handles[MAX_HANDLES];
	int first_handle;
	bool files[MAX_FILES];
	unsigned calls, fail_in;
	int fail_error;
	unsigned malloc_fail_in;
	bool failed;
	void (*before_open)(const char *path);
	long allocated;
} fake;

/* --- memory: the library's allocations are counted ------------------------------ */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *memory);

static bool malloc_fails(void)
{
	if (!fake.malloc_fail_in || --fake.malloc_fail_in)
		return false;
	fake.failed = true;
	return true;
}

static void *count(void *memory)
{
	fake.allocated += memory != NULL;
	return memory;
}

void *__wrap_malloc(size_t size)
{
	return malloc_fails() ? NULL : count(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return malloc_fails() ? NULL : count(__real_calloc(n, size));
}

void *__wrap_realloc(void *old, size_t size)
{
	void *grown;

	if (malloc_fails())
		return NULL;
	grown = __real_realloc(old, size);
	return old ? grown : count(grown);
}

void __wrap_free(void *memory)
{
	fake.allocated -= memory != NULL;
	__real_free(memory);
}

void fake_fail_malloc(unsigned n)
{
	fake.malloc_fail_in = n;
	fake.failed = false;
}

/* --- set-up and tear-down ------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
	(void)info;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_tree(const char *path)
{
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

int fake_setup(void)
{
	memset(&fake, 0, sizeof(fake));
	/*
	 * in memory: a test makes and removes many thousand files, which takes a minute on a
	 * busy disk
	 */
	strcpy(fake.root, "/dev/shm/umad-XXXXXX");
	if (!mkdtemp(fake.root)) {
		strcpy(fake.root, "/tmp/umad-XXXXXX");
		if (!mkdtemp(fake.root))
			return -1;
	}
	fake.first_handle = DEVICE_FD;
	fake_dir("/sys/class");
	return 0;
}

static void drop_messages(struct device_state *state)
{
	struct message *next;

	for (; state->queue; state->queue = next) {
		next = state->queue->next;
		__real_free(state->queue);
	}
}

int fake_teardown(void)
{
	int i, leaked = 0;

	for (i = 0; i < MAX_FILES; i++)
		leaked += fake.files[i];
	for (i = 0; i < MAX_HANDLES; i++)
		leaked += fake.handles[i] != NULL;
	for (i = 0; i < fake.device_count; i++) {
		drop_messages(fake.devices[i]);
		__real_free(fake.devices[i]->device.written);
		__real_free(fake.devices[i]);
	}
	remove_tree(fake.root);
	if (leaked)
		print_error("%d descriptors are still open\n", leaked);
	if (fake.allocated)
		print_error("%ld allocations were not freed\n", fake.allocated);
	return leaked || fake.allocated ? -1 : 0;
}

/* --- sysfs ---------------------------------------------------------------------- */

const char *fake_real_path(const char *path)
{
	static char real[512];

	snprintf(real, sizeof(real), "%s%s", fake.root, path);
	return real;
}

void fake_dir(const char *path)
{
	char real[512];
	char *slash;

	strcpy(real, fake_real_path(path));
	for (slash = real + strlen(fake.root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(real, 0755);
		*slash = '/';
	}
	mkdir(real, 0755);
}

static void make_parents(const char *path)
{
	char parent[512];

	snprintf(parent, sizeof(parent), "%s", path);
	*strrchr(parent, '/') = '\0';
	fake_dir(parent);
}

void fake_file_bytes(const char *path, const void *bytes, size_t size)
{
	FILE *file;

	make_parents(path);
	file = fopen(fake_real_path(path), "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	fclose(file);
}

void fake_file(const char *path, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fake_file_bytes(path, text, strlen(text));
}

void fake_link(const char *path, const char *target)
{
	make_parents(path);
	assert_int_equal(symlink(target, fake_real_path(path)), 0);
}

void fake_remove(const char *path)
{
	remove_tree(fake_real_path(path));
}

void fake_ca(const char *ca_name)
{
	char path[256];
	int tail = snprintf(path, sizeof(path), "/sys/class/infiniband/%s/", ca_name);

	strcpy(path + tail, "node_type");
	fake_file(path, "1: CA\n");
	strcpy(path + tail, "fw_ver");
	fake_file(path, "20.31.1014\n");
	strcpy(path + tail, "hw_rev");
	fake_file(path, "0\n");
	strcpy(path + tail, "hca_type");
	fake_file(path, "MT4123\n");
	strcpy(path + tail, "node_guid");
	fake_file(path, "0002:c903:00a0:0b10\n");
	strcpy(path + tail, "sys_image_guid");
	fake_file(path, "0002:c903:00a0:0b13\n");
	strcpy(path + tail, "ports");
	fake_dir(path);
}

void fake_port(const char *ca_name, int portnum, uint32_t guid)
{
	const struct {
		const char *name, *text;
	} attributes[] = {
		{"lid", "0x2b\n"},
		{"lid_mask_count", "1\n"},
		{"sm_lid", "0x1\n"},
		{"sm_sl", "3\n"},
		{"state", "4: ACTIVE\n"},
		{"phys_state", "5: LinkUp\n"},
		{"rate", "100 Gb/sec (4X EDR)\n"},
		{"cap_mask", "0x2651e848\n"},
		{"link_layer", "InfiniBand\n"},
		{"pkeys/0", "0xffff\n"},
		{"pkeys/1", "0x7fff\n"},
	};
	char path[256];
	size_t i;
	int tail = snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d/", ca_name,
			    portnum);

	for (i = 0; i < sizeof(attributes) / sizeof(*attributes); i++) {
		strcpy(path + tail, attributes[i].name);
		fake_file(path, "%s", attributes[i].text);
	}
	strcpy(path + tail, "gids/0");
	fake_file(path, "fe80:0000:0000:0000:0002:c903:%04x:%04x\n", guid >> 16, guid & 0xffff);
}

void fake_umad(int number, const char *ca_name, int portnum)
{
	static const char *const kinds[] = {"umad", "issm"};
	char path[256], name[32];
	int i, tail;

	fake_file("/sys/class/infiniband_mad/abi_version", "5\n");
	for (i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "%s%d", kinds[i], number);
		tail = snprintf(path, sizeof(path), "/sys/class/infiniband_mad/%s/", name);
		strcpy(path + tail, "ibdev");
		fake_file(path, "%s\n", ca_name);
		strcpy(path + tail, "port");
		fake_file(path, "%d\n", portnum);
		fake_device(name);
	}
}

/* --- faults --------------------------------------------------------------------- */

void fake_fail_call(unsigned n, int error)
{
	fake.fail_in = n;
	fake.fail_error = error;
	fake.failed = false;
}

bool fake_failed(void)
{
	return fake.failed;
}

void fake_before_open(void (*hook)(const char *path))
{
	fake.before_open = hook;
}

unsigned fake_calls(void)
{
	return fake.calls;
}

/* Counts a call of the seam: returns 0, or the negative errno of the fault. */
static int begin_call(void)
{
	fake.calls++;
	if (!fake.fail_in || --fake.fail_in)
		return 0;
	fake.failed = true;
	return -fake.fail_error;
}

/* --- devices -------------------------------------------------------------------- */

static struct device_state *find_device(const char *name)
{
	int i;

	for (i = 0; i < fake.device_count; i++)
		if (!strcmp(fake.devices[i]->device.name, name))
			return fake.devices[i];
	return NULL;
}

static struct device_state *state_of(struct fake_device *device)
{
	return (struct device_state *)device;
}

static struct device_state *device_of(int fd)
{
	if (fd < fake.first_handle || fd - fake.first_handle >= MAX_HANDLES)
		return NULL;
	return fake.handles[fd - fake.first_handle];
}

void fake_first_handle(int number)
{
	fake.first_handle = number;
}

struct fake_device *fake_device(const char *name)
{
	struct device_state *state = find_device(name);

	if (!state) {
		assert_true(fake.device_count < MAX_DEVICES);
		state = __real_calloc(1, sizeof(*state));
		snprintf(state->device.name, sizeof(state->device.name), "%s", name);
		state->device.unregistered = UINT32_MAX;
		fake.devices[fake.device_count++] = state;
	}
	return &state->device;
}

void fake_deliver(struct fake_device *device, const void *header, size_t header_size,
		  const void *mad, size_t mad_size)
{
	struct message *message = __real_calloc(1, sizeof(*message) + header_size + mad_size);
	struct message **tail = &state_of(device)->queue;

	message->header_size = header_size;
	message->mad_size = mad_size;
	memcpy(message->bytes, header, header_size);
	if (mad_size)
		memcpy(message->bytes + header_size, mad, mad_size);
	while (*tail)
		tail = &(*tail)->next;
	*tail = message;
}

void fake_read_result(struct fake_device *device, long result)
{
	state_of(device)->raw_read = true;
	state_of(device)->raw_result = result;
}

void fake_on_poll(struct fake_device *device, void (*hook)(struct fake_device *device))
{
	state_of(device)->on_poll = hook;
}

static int open_device(const char *name, int flags)
{
	struct device_state *state = find_device(name);
	int i;

	if (!state)
		return -ENOENT;
	state->device.open_flags = flags;
	if (state->device.open_error)
		return -state->device.open_error;
	for (i = 0; fake.handles[i]; i++)
		assert_true(i < MAX_HANDLES - 1);
	fake.handles[i] = state;
	state->device.opened++;
	return fake.first_handle + i;
}

static ssize_t read_device(struct device_state *state, unsigned char *buf, size_t size)
{
	struct message *message = state->queue;
	size_t whole;

	if (state->raw_read) {
		state->raw_read = false;
		return state->raw_result;
	}
	if (state->device.gone)
		return -EIO;
	if (!message)
		return -EAGAIN;
	whole = message->header_size + message->mad_size;
	if (whole > size) {
		uint32_t length = (uint32_t)whole;

		if (message->mad_size <= 256 || size < message->header_size + 256)
			return -EINVAL;
		memcpy(buf, message->bytes, message->header_size + 256);
		memcpy(buf + offsetof(struct ib_user_mad_hdr, length), &length, sizeof(length));
		return -ENOSPC;
	}
	memcpy(buf, message->bytes, whole);
	state->queue = message->next;
	__real_free(message);
	return (ssize_t)whole;
}

static int register_on(struct fake_device *device, unsigned long request, void *arg,
		       size_t size)
{
	memcpy(device->registered, arg, size);
	device->registered_by = request;
	if (device->register_error)
		return -device->register_error;
	/* both structures begin with the id */
	memcpy(arg, &device->next_id, sizeof(device->next_id));
	device->next_id++;
	return 0;
}

static int register2_on(struct fake_device *device, void *arg)
{
	struct ib_user_mad_reg_req2 *req = arg;

	if (req->flags & ~(uint32_t)IB_USER_MAD_REG_FLAGS_CAP) {
		req->flags = IB_USER_MAD_REG_FLAGS_CAP;
		return -EINVAL;
	}
	return register_on(device, IB_USER_MAD_REGISTER_AGENT2, arg, sizeof(*req));
}

/* --- the seam ------------------------------------------------------------------- */

int sys_open(const char *path, int flags)
{
	int fd, err = begin_call();

	if (err)
		return err;
	if (fake.before_open)
		fake.before_open(path);
	if (!strncmp(path, DEV_DIR, strlen(DEV_DIR)))
		return open_device(path + strlen(DEV_DIR), flags);
	/* the library opens no other files */
	assert_memory_equal(path, "/sys/class/infiniband", 21);
	assert_null(strstr(path, "/../"));
	fd = open(fake_real_path(path), flags);
	if (fd < 0)
		return -errno;
	assert_true(fd < MAX_FILES);
	fake.files[fd] = true;
	return fd;
}

int sys_close(int fd)
{
	struct device_state *state = device_of(fd);

	/* a close that fails has closed the descriptor: it is not a fault here */
	fake.calls++;
	if (state) {
		state->device.opened--;
		fake.handles[fd - fake.first_handle] = NULL;
		return 0;
	}
	if (fd < 0 || fd >= MAX_FILES || !fake.files[fd])
		return -EBADF;
	fake.files[fd] = false;
	close(fd);
	return 0;
}

int sys_ioctl(int fd, unsigned long request, void *arg)
{
	struct device_state *state = device_of(fd);
	int err = begin_call();

	if (err)
		return err;
	if (!state)
		return -EBADF;
	if (state->device.gone)
		return request == IB_USER_MAD_UNREGISTER_AGENT ? -EINVAL : -EPIPE;
	if (state->device.no_pkey && request != IB_USER_MAD_REGISTER_AGENT &&
	    request != IB_USER_MAD_UNREGISTER_AGENT)
		return -ENOTTY;
	switch (request) {
	case IB_USER_MAD_ENABLE_PKEY:
		return 0;
	case IB_USER_MAD_REGISTER_AGENT:
		return register_on(&state->device, request, arg,
				   sizeof(struct ib_user_mad_reg_req));
	case IB_USER_MAD_REGISTER_AGENT2:
		return register2_on(&state->device, arg);
	case IB_USER_MAD_UNREGISTER_AGENT:
		memcpy(&state->device.unregistered, arg, sizeof(uint32_t));
		return state->device.unregistered < state->device.next_id ? 0 : -EINVAL;
	}
	return -ENOTTY;
}

ssize_t sys_read(int fd, void *buf, size_t size)
{
	struct device_state *state = device_of(fd);
	int err = begin_call();
	ssize_t got;

	if (err)
		return err;
	if (state)
		return read_device(state, buf, size);
	if (fd < 0 || fd >= MAX_FILES || !fake.files[fd])
		return -EBADF;
	got = read(fd, buf, size);
	return got < 0 ? -errno : got;
}

ssize_t sys_write(int fd, const void *buf, size_t size)
{
	struct device_state *state = device_of(fd);
	int err = begin_call();

	if (err)
		return err;
	if (!state)
		return -EBADF;
	if (state->device.gone)
		return -EIO;
	if (state->device.write_error)
		return -state->device.write_error;
	__real_free(state->device.written);
	state->device.written = __real_malloc(size);
	memcpy(state->device.written, buf, size);
	state->device.written_size = size;
	if (state->device.overwritten)
		memset((void *)(uintptr_t)buf, 0xee, size);
	return (ssize_t)size - state->device.short_write;
}

int sys_poll(int fd, int timeout_ms)
{
	struct device_state *state = device_of(fd);
	int err = begin_call();

	if (err)
		return err;
	/* the kernel ignores it, and poll would wait for ever */
	assert_true(fd >= 0);
	if (!state)
		return POLLNVAL;
	state->device.polls++;
	state->device.last_other = -1;
	state->device.last_timeout = timeout_ms;
	if (state->on_poll)
		state->on_poll(&state->device);
	if (state->device.poll_result)
		return state->device.poll_result;
	if (state->device.gone)
		return POLLERR;
	return state->queue || state->raw_read ? POLLIN : 0;
}

int sys_poll_both(int fd, int other, int timeout_ms, int *other_revents)
{
	struct device_state *state = device_of(fd);
	int revents = sys_poll(fd, timeout_ms);

	assert_true(other >= 0);
	*other_revents = 0;
	if (state && revents >= 0) {
		state->device.last_other = other;
		*other_revents = state->device.other_revents;
	}
	return revents;
}

int sys_list(const char *path, sys_visit_fn *visit, void *arg)
{
	struct dirent *entry;
	int err = begin_call();
	DIR *dir;

	if (err)
		return err;
	if (fake.before_open)
		fake.before_open(path);
	assert_memory_equal(path, "/sys/class/infiniband", 21);
	dir = opendir(fake_real_path(path));
	if (!dir)
		return -errno;
	while (!err && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			err = visit(entry->d_name, arg);
	closedir(dir);
	return err;
}
