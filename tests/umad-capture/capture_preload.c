/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The library that umad-capture preloads into programs. It sets libibumad's packet hook and
 * copies each packet into the ring. It also wraps the calls that open ports, to learn the
 * device of a handle, because the header of a MAD lacks the port's own LID, GID and P_Key;
 * umad_set_packet_hook(), because a program may have a hook, too; and ioctl(2), because a
 * program may load libibumad late.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <arpa/inet.h>

#include <infiniband/umad_ext.h>

#include "ready.h"
#include "ring.h"

#define EXPORT __attribute__((visibility("default")))

#define DIRECTED_SMP_CLASS 0x81
#define HOP_COUNT          7
#define ATTR_PORT_INFO     0x0015
#define DEFAULT_PKEY       0xffff

#define UMAD_IOCTLS 0x1b /* the type of the umad device's ioctls (rdma/ib_user_mad.h) */

/* The symbol to which the C library's header redirects ioctl(), for 64-bit time on machines
 * where 32 bits are the default. */
#if __WORDSIZE == 32 && defined(__USE_TIME_BITS64)
#define IOCTL "__ioctl_time64"
#else
#define IOCTL "ioctl"
#endif

static struct ring *ring;
static pid_t process; /* cached: getpid(2) is a system call */

/*
 * Finds a function of libibumad, or returns NULL. If the program loaded libibumad with
 * dlopen(3) but without RTLD_GLOBAL, as Python's ctypes does, only the loader's list has it. It
 * then stays loaded: a second copy would have no hook.
 */
static void *find(const char *name)
{
	static _Atomic(void *) library;
	void *symbol = dlsym(RTLD_NEXT, name);

	if (symbol)
		return symbol;
	if (!atomic_load(&library))
		atomic_store(&library, dlopen("libibumad.so.3", RTLD_LAZY | RTLD_NOLOAD));
	return atomic_load(&library) ? dlsym(atomic_load(&library), name) : NULL;
}

/* --- ports ---------------------------------------------------------------------- */

struct port {
	int portid; /* -1: none */
	int portnum;
	char ca_name[UMAD_CA_NAME_LEN];
	int64_t read_at; /* second in which sysfs was read; 0: not yet */
	uint16_t lid, pkey;
	uint8_t lmc, gid_index;
	uint16_t pkey_index;
	uint8_t gid[16];
};

/* Protects the ports and the program's hook. If a program opens more ports, the table holds the
 * last ones. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define PORTS 64
static struct port ports[PORTS];
static unsigned int ports_used, next_port;

/* The program's own packet hook. */
struct own_hook {
	umad_packet_fn *function;
	void *user;
};
static struct own_hook own_hook;
static atomic_bool has_own_hook;

static void take_lock(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static void begin_child(void)
{
	process = getpid();
	unlock();
}

/* Reads a file below the port's folder in sysfs; "" if that fails. */
static void read_file(const struct port *port, const char *name, unsigned int index,
		      char text[64])
{
	char path[256];
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d/%s", port->ca_name,
		 port->portnum, name);
	if (strchr(name, '/'))
		snprintf(path + strlen(path), sizeof(path) - strlen(path), "%u", index);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? 0 : read(fd, text, 63);
	if (fd >= 0)
		close(fd);
	text[length > 0 ? length : 0] = '\0';
}

static void read_port(struct port *port, const ib_mad_addr_t *address, int64_t second)
{
	char text[64];

	read_file(port, "lid", 0, text);
	port->lid = (uint16_t)strtoul(text, NULL, 0);
	read_file(port, "lid_mask_count", 0, text);
	port->lmc = (uint8_t)strtoul(text, NULL, 0);
	port->gid_index = address->gid_index;
	read_file(port, "gids/", port->gid_index, text);
	text[strcspn(text, "\n")] = '\0';
	if (inet_pton(AF_INET6, text, port->gid) != 1)
		memset(port->gid, 0, sizeof(port->gid));
	port->pkey_index = address->pkey_index;
	read_file(port, "pkeys/", port->pkey_index, text);
	port->pkey = text[0] ? (uint16_t)strtoul(text, NULL, 0) : DEFAULT_PKEY;
	port->read_at = second;
}

static struct port *find_port(int portid)
{
	for (unsigned int i = 0; i < ports_used; i++)
		if (ports[i].portid == portid)
			return &ports[i];
	return NULL;
}

/* The port that umad_open_port() would choose for this name and number. */
static void choose_port(struct port *port, const char *ca_name, int portnum)
{
	__typeof__(umad_get_port) *get = (__typeof__(get))find("umad_get_port");
	__typeof__(umad_release_port) *release = (__typeof__(release))find("umad_release_port");
	umad_port_t chosen;

	snprintf(port->ca_name, sizeof(port->ca_name), "%s", ca_name ? ca_name : "");
	port->portnum = portnum;
	if (!get || !release || get(ca_name, portnum, &chosen))
		return;
	memcpy(port->ca_name, chosen.ca_name, sizeof(port->ca_name));
	port->portnum = chosen.portnum;
	release(&chosen);
}

static void note_port(int portid, const char *ca_name, int portnum)
{
	struct port port = {.portid = portid}, *place;

	choose_port(&port, ca_name, portnum);
	take_lock();
	place = find_port(portid);
	if (!place) {
		place = &ports[next_port++ % PORTS];
		if (ports_used < PORTS)
			ports_used++;
	}
	*place = port;
	unlock();
}

/* Fills in the port's own addresses. */
static void describe(struct packet_record *record, const ib_mad_addr_t *address, bool changes)
{
	struct port *port;

	take_lock();
	port = find_port(record->portid);
	if (!port) {
		/* a handle opened by another program: most likely of the first port */
		unlock();
		note_port(record->portid, NULL, 0);
		take_lock();
		port = find_port(record->portid);
	}
	if (port) {
		/* a subnet manager may have changed the P_Key */
		if (port->read_at != record->seconds || port->gid_index != address->gid_index ||
		    port->pkey_index != address->pkey_index)
			read_port(port, address, record->seconds);
		record->lid = port->lid;
		record->lmc = port->lmc;
		record->pkey = port->pkey;
		memcpy(record->gid, port->gid, sizeof(record->gid));
		if (changes)
			port->read_at = 0;
	}
	unlock();
}

/* --- packets -------------------------------------------------------------------- */

/* Whether the MAD accesses the port's own PortInfo, so that its LID may change. */
static bool changes_port(const uint8_t *mad, int length)
{
	return length >= 24 && mad[1] == DIRECTED_SMP_CLASS && mad[HOP_COUNT] == 0 &&
	       (mad[16] << 8 | mad[17]) == ATTR_PORT_INFO;
}

static void call_own_hook(const struct umad_packet_info *packet)
{
	struct own_hook hook;

	take_lock();
	hook = own_hook;
	unlock();
	if (hook.function)
		hook.function(packet, hook.user);
}

static void capture(const struct umad_packet_info *packet, void *user)
{
	size_t header = (size_t)((const uint8_t *)packet->mad - (const uint8_t *)packet->umad);
	struct packet_record record = {
		.length = (uint32_t)packet->length,
		.seconds = packet->time / 1000000000,
		.nanoseconds = (uint32_t)(packet->time % 1000000000),
		.process = process,
		.portid = packet->portid,
		.agentid = packet->agentid,
		.sent = packet->direction == UMAD_PACKET_SENT,
		.pkey = DEFAULT_PKEY,
	};
	struct ib_user_mad umad = {0};
	int cancel_state;

	(void)user;
	/* cancelling the thread while it reads sysfs would leave the mutex locked */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	/* the old layout has no P_Key index */
	memcpy(&umad, packet->umad, header < sizeof(umad) ? header : sizeof(umad));
	memcpy(record.header, &umad, sizeof(record.header));
	describe(&record, &umad.addr, changes_port(packet->mad, packet->length));
	ring_put(ring, &record, packet->mad);
	pthread_setcancelstate(cancel_state, NULL);
	if (atomic_load_explicit(&has_own_hook, memory_order_relaxed))
		call_own_hook(packet);
}

/* --- the library ---------------------------------------------------------------- */

/* Reports another libibumad. Ends a program that has not begun: its capture would be empty. */
static void report_other(void *symbol, bool begins)
{
	Dl_info where;

	if (!dladdr(symbol, &where))
		where.dli_fname = "libibumad.so.3";
	dprintf(STDERR_FILENO,
		"umad-capture: %s: %s has no umad_set_packet_hook(): it is not the libibumad "
		"of "
		"this project, and its MADs cannot be captured; set LD_LIBRARY_PATH to the "
		"folder "
		"of this project's libraries\n",
		program_invocation_name, where.dli_fname);
	if (begins)
		_exit(125);
}

/* When the program begins, the loader's list has no libraries from dlopen(3) yet. */
static void set_hook(bool begins)
{
	static atomic_bool done;
	__typeof__(umad_set_packet_hook) *set;
	void *send;

	if (!ring || atomic_load(&done))
		return;
	send = begins ? dlsym(RTLD_NEXT, "umad_send") : find("umad_send");
	if (!send || atomic_exchange(&done, true))
		return;
	atomic_fetch_add(&ring->programs, 1);
	set = (__typeof__(set))find("umad_set_packet_hook");
	if (set)
		set(capture, NULL);
	else
		report_other(send, begins);
}

static int open_port(const char *function, const char *ca_name, int portnum)
{
	__typeof__(umad_open_port) *next = (__typeof__(next))find(function);
	int portid;

	if (!next) {
		errno = ENOSYS;
		return -ENOSYS;
	}
	set_hook(false);
	portid = next(ca_name, portnum);
	if (ring && portid >= 0)
		note_port(portid, ca_name, portnum);
	return portid;
}

EXPORT int umad_open_port(const char *ca_name, int portnum)
{
	return open_port("umad_open_port", ca_name, portnum);
}

EXPORT int umad_open_smi_port(const char *ca_name, int portnum)
{
	return open_port("umad_open_smi_port", ca_name, portnum);
}

EXPORT void umad_set_packet_hook(umad_packet_fn *hook, void *user)
{
	__typeof__(umad_set_packet_hook) *next = (__typeof__(next))find("umad_set_packet_hook");

	if (!ring) {
		if (next)
			next(hook, user);
		return;
	}
	set_hook(false);
	take_lock();
	own_hook = (struct own_hook){hook, user};
	unlock();
	atomic_store(&has_own_hook, hook != NULL);
}

/* Agents are registered with ioctls. A program that calls libibumad only through dlsym(3) calls
 * none of the functions above. */
EXPORT int ioctl(int fd, unsigned long request, ...)
{
	static _Atomic(void *) found;
	__typeof__(ioctl) *next;
	void *argument;
	va_list list;

	va_start(list, request);
	argument = va_arg(list, void *);
	va_end(list);
	if (!atomic_load(&found))
		atomic_store(&found, dlsym(RTLD_NEXT, IOCTL));
	if (_IOC_TYPE(request) == UMAD_IOCTLS)
		set_hook(false);
	next = (__typeof__(next))atomic_load(&found);
	return next(fd, request, argument);
}

/* Tells umad-capture, which is waiting, that the library is loaded. */
static void say_ready(void)
{
	int fd = ready_descriptor(getenv(ENV_CAPTURE_READY));

	unsetenv(ENV_CAPTURE_READY);
	if (fd < 0)
		return;
	send(fd, "", 1, READY_SEND_FLAGS);
	close(fd);
}

static void __attribute__((constructor)) start(void)
{
	const char *path = getenv(ENV_RING);

	say_ready();
	ring = path ? ring_open(path) : NULL;
	process = getpid();
	pthread_atfork(take_lock, unlock, begin_child);
	set_hook(true);
}
