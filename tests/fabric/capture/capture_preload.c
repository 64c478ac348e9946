/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The library that umad-capture preloads into programs. It sets the packet hook of libibumad
 * and copies each packet into the ring. It also wraps the calls that open ports, to learn the
 * device of a handle: the header of a MAD does not have the port's own LID, GID and P_Key.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>

#include <infiniband/umad_ext.h>

#include "ring.h"

#define EXPORT __attribute__((visibility("default")))

#define DIRECTED_SMP_CLASS 0x81
#define HOP_COUNT          7
#define ATTR_PORT_INFO     0x0015
#define DEFAULT_PKEY       0xffff

static struct ring *ring;
static pid_t process; /* of getpid(2), which is a system call */

/* --- ports ---------------------------------------------------------------------- */

struct port {
	int portid; /* -1: none */
	int portnum;
	char ca_name[UMAD_CA_NAME_LEN];
	int64_t read_at; /* the second in which sysfs was read; 0: it must be read */
	uint16_t lid, pkey;
	uint8_t lmc, gid_index;
	uint16_t pkey_index;
	uint8_t gid[16];
};

/* Protects the ports. If a program opens more ports, the table has the last ones. */
static pthread_mutex_t ports_lock = PTHREAD_MUTEX_INITIALIZER;
#define PORTS 64
static struct port ports[PORTS];
static unsigned int ports_used, next_port;

static void lock_ports(void)
{
	pthread_mutex_lock(&ports_lock);
}

static void unlock_ports(void)
{
	pthread_mutex_unlock(&ports_lock);
}

static void begin_child(void)
{
	process = getpid();
	unlock_ports();
}

/* A file below the port's folder in sysfs. "": it cannot be read. */
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

/* The port that umad_open_port() chooses for the name and the number. */
static void choose_port(struct port *port, const char *ca_name, int portnum)
{
	static __typeof__(umad_get_port) *get;
	static __typeof__(umad_release_port) *release;
	umad_port_t chosen;

	snprintf(port->ca_name, sizeof(port->ca_name), "%s", ca_name ? ca_name : "");
	port->portnum = portnum;
	get = (__typeof__(get))dlsym(RTLD_DEFAULT, "umad_get_port");
	release = (__typeof__(release))dlsym(RTLD_DEFAULT, "umad_release_port");
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
	lock_ports();
	place = find_port(portid);
	if (!place) {
		place = &ports[next_port++ % PORTS];
		if (ports_used < PORTS)
			ports_used++;
	}
	*place = port;
	unlock_ports();
}

/* Fills in the addresses of the own port. */
static void describe(struct packet_record *record, const ib_mad_addr_t *address, bool changes)
{
	struct port *port;

	lock_ports();
	port = find_port(record->portid);
	if (!port) {
		/* a handle that another program opened: most likely of the first port */
		unlock_ports();
		note_port(record->portid, NULL, 0);
		lock_ports();
		port = find_port(record->portid);
	}
	if (port) {
		/* a subnet manager may change the P_Key */
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
	unlock_ports();
}

/* --- packets -------------------------------------------------------------------- */

/* Whether the MAD accesses the own port's PortInfo, so that the port's LID may change. */
static bool changes_port(const uint8_t *mad, int length)
{
	return length >= 24 && mad[1] == DIRECTED_SMP_CLASS && mad[HOP_COUNT] == 0 &&
	       (mad[16] << 8 | mad[17]) == ATTR_PORT_INFO;
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
	/* a thread that is cancelled while it reads sysfs would never unlock the mutex */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	/* the old layout has no P_Key index */
	memcpy(&umad, packet->umad, header < sizeof(umad) ? header : sizeof(umad));
	memcpy(record.header, &umad, sizeof(record.header));
	describe(&record, &umad.addr, changes_port(packet->mad, packet->length));
	ring_put(ring, &record, packet->mad);
	pthread_setcancelstate(cancel_state, NULL);
}

/* --- the library ---------------------------------------------------------------- */

/* Ends a program with another libibumad: its capture would be empty. */
static void __attribute__((noreturn)) refuse(void *symbol)
{
	Dl_info where;

	if (!dladdr(symbol, &where))
		where.dli_fname = "libibumad.so.3";
	dprintf(STDERR_FILENO,
		"umad-capture: %s: %s has no umad_set_packet_hook(): it is not the libibumad "
		"of "
		"this project: its MADs cannot be captured\n",
		program_invocation_name, where.dli_fname);
	_exit(125);
}

static void set_hook(void)
{
	static atomic_bool done;
	void (*set)(umad_packet_fn *, void *);
	void *send = dlsym(RTLD_DEFAULT, "umad_send");

	if (!ring || !send || atomic_exchange(&done, true))
		return;
	set = (__typeof__(set))dlsym(RTLD_DEFAULT, "umad_set_packet_hook");
	atomic_fetch_add(&ring->programs, 1);
	if (!set)
		refuse(send);
	set(capture, NULL);
}

EXPORT int umad_open_port(const char *ca_name, int portnum)
{
	__typeof__(umad_open_port) *open_port =
		(__typeof__(open_port))dlsym(RTLD_NEXT, "umad_open_port");
	int portid;

	if (!open_port) {
		errno = ENOSYS;
		return -ENOSYS;
	}
	set_hook(); /* the program may have loaded libibumad since */
	portid = open_port(ca_name, portnum);
	if (ring && portid >= 0)
		note_port(portid, ca_name, portnum);
	return portid;
}

EXPORT int umad_open_smi_port(const char *ca_name, int portnum)
{
	__typeof__(umad_open_smi_port) *open_port =
		(__typeof__(open_port))dlsym(RTLD_NEXT, "umad_open_smi_port");
	int portid;

	if (!open_port) {
		errno = ENOSYS;
		return -ENOSYS;
	}
	set_hook();
	portid = open_port(ca_name, portnum);
	if (ring && portid >= 0)
		note_port(portid, ca_name, portnum);
	return portid;
}

/* Tells umad-capture, which waits for it, that the library is loaded. */
static void say_ready(void)
{
	const char *text = getenv(ENV_CAPTURE_READY);
	int fd = text ? atoi(text) : -1;

	unsetenv(ENV_CAPTURE_READY);
	if (fd < 0)
		return;
	if (write(fd, "", 1) != 1)
		dprintf(STDERR_FILENO, "umad-capture: descriptor %d cannot be written\n", fd);
	close(fd);
}

static void __attribute__((constructor)) start(void)
{
	const char *path = getenv(ENV_RING);

	say_ready();
	ring = path ? ring_open(path) : NULL;
	process = getpid();
	pthread_atfork(lock_ports, unlock_ports, begin_child);
	set_hook();
}
