/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Two ports on a wire, for the checks that run on the fake machine of the unit tests. The
 * linker puts the functions below in place of system calls and of some of check.h's.
 */
#include "check.h"
#include "fake_device_state.h"
#include "kernel_abi.h"

#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_LID   0x2b
#define FIRST_GUID  0x00a00b11
#define TICK_MS     4 /* the kernel checks timeouts in these steps */
#define OUI_AT      37
#define GET         0x01
#define SET         0x02
#define RESPONSE    0x80
#define UNSUPPORTED 0x000c
#define SYSFS       "/sys/"
#define DEVICES     "/dev/infiniband/"

/* --- the machine ---------------------------------------------------------------- */

static int carry(const struct device_packet *packet, void *unused);
static pid_t machine; /* the process that removes it */

static void add_port(int number)
{
	char ca_name[16], path[80];

	snprintf(ca_name, sizeof(ca_name), "mlx5_%d", number);
	fake_ca(ca_name);
	fake_port(ca_name, 1, (uint32_t)(FIRST_GUID + number));
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/lid", ca_name);
	fake_file(path, "0x%x\n", FIRST_LID + number);
	fake_umad(number, ca_name, 1);
}

static void __attribute__((constructor)) begin(void)
{
	machine = getpid();
	if (begin_machine(false))
		abort();
	add_port(0);
	add_port(1);
	device_hold_tids(true);
	device_on_write(carry, NULL);
}

static void __attribute__((destructor)) end(void)
{
	if (getpid() == machine)
		fake_teardown();
}

/* --- the wire ------------------------------------------------------------------- */

/* The lock is held. The number of a handle's port; -1 if the handle is closed. */
static int port_of(int fd)
{
	return fake.handles[fd] ? atoi(fake.handles[fd]->device->name + strlen("umad")) : -1;
}

static int method_of(const struct device_packet *packet)
{
	return packet->mad[3];
}

/* The lock is held. */
static const struct device_packet *request_of(const struct device_packet *response, int port)
{
	for (unsigned i = fake.packet_count; i-- > 0;) {
		const struct device_packet *packet = fake.packets[i];
		uint32_t upper = htobe32(upper_tid(packet));

		if (packet->in_flight && port_of(packet->fd) == port &&
		    packet->mad[1] == response->mad[1] &&
		    !memcmp(&upper, response->mad + 8, sizeof(upper)) &&
		    !memcmp(packet->mad + 12, response->mad + 12, 4))
			return packet;
	}
	return NULL;
}

static bool serves(const struct device_agent *agent, const struct device_packet *request)
{
	const uint8_t *oui = request->mad + OUI_AT;
	bool range2 = request->mad[1] >= 0x30 && request->mad[1] <= 0x4f;
	int method = method_of(request);

	return agent->registered && agent->mgmt_class == request->mad[1] &&
	       agent->class_version == request->mad[2] &&
	       agent->methods[method / 64] >> method % 64 & 1 &&
	       (!range2 || agent->oui == (uint32_t)(oui[0] << 16 | oui[1] << 8 | oui[2]));
}

/* The lock is held. The handle and agent that receive a request; -1 if there are none. */
static int server_of(const struct device_packet *request, int port, uint32_t *id)
{
	for (int fd = 0; fd < MAX_FD; fd++)
		for (*id = 0; port_of(fd) == port && *id < MAX_AGENTS; ++*id)
			if (serves(&fake.handles[fd]->agents[*id], request))
				return fd;
	return -1;
}

static void address_from(int port, const struct device_packet *packet, ib_mad_addr_t *address)
{
	uint32_t guid = htobe32((uint32_t)(FIRST_GUID + port));

	address->lid = htobe16((uint16_t)(FIRST_LID + port));
	address->qpn = htobe32(1);
	address->grh_present = packet->header.addr.grh_present;
	if (!address->grh_present)
		return;
	address->hop_limit = 255; /* of a response */
	memcpy(address->gid, "\xfe\x80\0\0\0\0\0\0\0\x02\xc9\x03", 12);
	memcpy(address->gid + 12, &guid, sizeof(guid));
}

static void deliver(const struct device_packet *packet)
{
	int to = be16toh(packet->header.addr.lid) - FIRST_LID, from, fd = -1;
	const struct device_packet *request = NULL;
	struct ib_user_mad header = {0};
	bool response = method_of(packet) & RESPONSE;
	uint8_t mad[ONE_MAD] = {0};

	lock();
	from = port_of(packet->fd);
	if (response)
		request = request_of(packet, to);
	else
		fd = server_of(packet, to, &header.agent_id);
	unlock();
	if (request) {
		memcpy(mad, packet->mad, packet->length);
		device_reply(request, mad, sizeof(mad));
	} else if (fd >= 0) {
		device_copy_mad(packet, mad);
		address_from(from, packet, &header.addr);
		device_queue(fd, &header, mad, sizeof(mad));
	} else if (method_of(packet) == GET || method_of(packet) == SET) {
		device_respond(packet, UNSUPPORTED, 0, NULL, 0);
	}
}

/* --- timeouts ------------------------------------------------------------------- */

static pthread_mutex_t timers_lock = PTHREAD_MUTEX_INITIALIZER;
static struct timer {
	struct timer *next;
	const struct device_packet *packet;
	int64_t due_ms;
	uint32_t retries;
} * timers;

static bool waits(const struct device_packet *packet)
{
	bool in_flight;

	lock();
	in_flight = packet->in_flight;
	unlock();
	return in_flight;
}

/* The kernel's timeouts are late by a tick, and by a part of the timeout. */
static void start(struct timer *timer)
{
	uint32_t timeout = timer->packet->header.timeout_ms;

	timer->due_ms = now_ms() + timeout + timeout / 128 * 3 + TICK_MS;
}

/* Returns whether the timer goes on. */
static bool check_timer(struct timer *timer)
{
	if (!waits(timer->packet))
		return false;
	if (now_ms() < timer->due_ms)
		return true;
	if (!timer->retries) {
		device_time_out(timer->packet);
		return false;
	}
	timer->retries--;
	start(timer);
	deliver(timer->packet);
	return true;
}

static void *check_timers(void *unused)
{
	struct timer **link, *timer;

	for (;;) {
		pause_ms(TICK_MS);
		pthread_mutex_lock(&timers_lock);
		for (link = &timers; (timer = *link);) {
			if (check_timer(timer)) {
				link = &timer->next;
				continue;
			}
			*link = timer->next;
			free(timer);
		}
		pthread_mutex_unlock(&timers_lock);
	}
	return unused;
}

static void start_thread(void *run(void *), void *argument)
{
	pthread_t thread;

	expect_equal(pthread_create(&thread, NULL, run, argument), 0);
	pthread_detach(thread);
}

static void start_clock(void)
{
	start_thread(check_timers, NULL);
}

static int carry(const struct device_packet *packet, void *unused)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT; /* in each process of a check */
	struct timer *timer;

	(void)unused;
	if (packet->in_flight && packet->header.timeout_ms != UINT32_MAX) {
		pthread_once(&once, start_clock);
		timer = allocate(sizeof(*timer));
		*timer = (struct timer){.packet = packet, .retries = packet->header.retries};
		start(timer);
		pthread_mutex_lock(&timers_lock);
		timer->next = timers;
		timers = timer;
		pthread_mutex_unlock(&timers_lock);
	}
	deliver(packet);
	return 0;
}

/* --- system calls of the checks ------------------------------------------------- */

int __real_open(const char *path, int flags, ...);
int __real_ioctl(int fd, unsigned long request, ...);
ssize_t __real_read(int fd, void *buf, size_t size);
ssize_t __real_write(int fd, const void *buf, size_t size);
int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
FILE *__real_fopen(const char *path, const char *mode);
int __wrap_open(const char *path, int flags, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);
ssize_t __wrap_read(int fd, void *buf, size_t size);
ssize_t __wrap_write(int fd, const void *buf, size_t size);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
FILE *__wrap_fopen(const char *path, const char *mode);

/* Their names where files may have more than 2 GiB. */
int __wrap_open64(const char *path, int flags, ...) __attribute__((alias("__wrap_open")));
FILE *__wrap_fopen64(const char *path, const char *mode) __attribute__((alias("__wrap_fopen")));

static bool is_handle(int fd)
{
	return fd >= 0 && fd < MAX_FD && fake.handles[fd];
}

static ssize_t with_errno(ssize_t result)
{
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

int __wrap_open(const char *path, int flags, ...)
{
	if (strncmp(path, DEVICES, strlen(DEVICES)) != 0)
		return __real_open(path, flags, 0644);
	return (int)with_errno(sys_open(path, flags));
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	if (!is_handle(fd))
		return __real_ioctl(fd, request, argument);
	return (int)with_errno(sys_ioctl(fd, request, argument));
}

ssize_t __wrap_read(int fd, void *buf, size_t size)
{
	return is_handle(fd) ? with_errno(sys_read(fd, buf, size)) : __real_read(fd, buf, size);
}

ssize_t __wrap_write(int fd, const void *buf, size_t size)
{
	return is_handle(fd) ? with_errno(sys_write(fd, buf, size))
			     : __real_write(fd, buf, size);
}

/* A umad device can always be written; the fake's descriptor is a timer. */
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	bool writable = count == 1 && is_handle(fds->fd) && fds->events & POLLOUT;
	int ready = __real_poll(fds, count, writable ? 0 : timeout_ms);

	if (!writable)
		return ready;
	fds->revents |= POLLOUT;
	return 1;
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	if (!strncmp(path, SYSFS, strlen(SYSFS)))
		path = fake_real_path(path);
	return __real_fopen(path, mode);
}

/* --- checks --------------------------------------------------------------------- */

int __real_start_child(void (*run)(void *), void *argument);
int __wrap_start_child(void (*run)(void *), void *argument);
int __real_run_checks(const struct check *checks, size_t count);
int __wrap_run_checks(const struct check *checks, size_t count);

struct job {
	void (*run)(void *);
	int pipe;
};

static void *run_job(void *argument)
{
	struct job *job = argument;

	job->run(&job->pipe);
	return NULL;
}

static void sleep_on(void *unused)
{
	(void)unused;
	for (;;)
		pause();
}

/*
 * The machine is in the memory of one process: a server is a thread. The child process that is
 * returned can be waited for and killed, and does nothing. The argument of a server is a pipe,
 * of which a child has an own descriptor.
 */
int __wrap_start_child(void (*run)(void *), void *argument)
{
	struct job *job = allocate(sizeof(*job));
	int child = __real_start_child(sleep_on, NULL);

	*job = (struct job){run, dup(*(int *)argument)};
	start_thread(run_job, job);
	return child;
}

#define NO_NODES "the fake machine has no device nodes and no links in sysfs"
#define NO_RMPP  "the fake machine has no RMPP"
#define ONE      "the fake machine is in one process, and a handle has one descriptor"
#define NO_BLOCK "reading from the fake machine does not block"

static const struct {
	const char *check, *reason;
} left_out[] = {
	{"umad_nodes_are_character_devices_of_the_superuser", NO_NODES},
	{"issm_nodes_are_character_devices_of_the_superuser", NO_NODES},
	{"entries_of_the_class_are_links", NO_NODES},
	{"a_child_and_a_copy_have_the_same_device", ONE},
	{"a_read_that_may_block_waits_for_a_response", NO_BLOCK},
	{"a_message_that_nobody_serves_comes_back", NO_RMPP},
	{"a_message_that_has_arrived_is_not_sent_again", NO_RMPP},
	{"a_long_request_is_received_whole", NO_RMPP},
	{"a_long_response_comes_whole", NO_RMPP},
};

static const char *why_not(const char *check)
{
	for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
		if (!strcmp(left_out[i].check, check))
			return left_out[i].reason;
	return NULL;
}

int __wrap_run_checks(const struct check *checks, size_t count)
{
	struct check *kept = allocate(count * sizeof(*kept));
	size_t kept_count = 0;
	int status;

	for (size_t i = 0; i < count; i++) {
		const char *reason = why_not(checks[i].name);

		if (reason)
			printf("%s\n  not here: %s\n  LEFT OUT\n", checks[i].name, reason);
		else
			kept[kept_count++] = checks[i];
	}
	status = __real_run_checks(kept, kept_count);
	free(kept);
	return status;
}
