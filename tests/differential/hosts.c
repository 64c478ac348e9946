/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * hosts OUR-LIBRARY THEIR-LIBRARY [HOSTS [SEED]]
 *
 * Compares which ports and pairs two libraries choose on random hosts. The program writes
 * /sys/class/infiniband, /sys/class/infiniband_mad and /dev/infiniband: the script `hosts` runs
 * it where these are folders in memory. Prints how many choices are the same, and why the
 * others differ, with the first host of each reason. Fails if theirs can be used as well as
 * ours and is another one.
 */

#include "random_host.h"

#include <infiniband/umad.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the host ------------------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
	(void)info;
	(void)type;
	return ftw->level ? remove(path) : 0;
}

static void make_parents(const char *path)
{
	char parent[256];

	for (const char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		snprintf(parent, sizeof(parent), "%.*s", (int)(at - path), path);
		mkdir(parent, 0755);
	}
}

static void write_file(const char *path, const char *text, void *user)
{
	size_t size = strlen(text);
	char device[64];
	int fd;

	(void)user;
	make_parents(path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, size) != (ssize_t)size) {
		perror(path);
		exit(1);
	}
	close(fd);
	/* the device itself is a plain file: only its name matters */
	if (sscanf(path, "/sys/class/infiniband_mad/%40[^/]/ibdev", device) == 1 &&
	    !strcmp(strrchr(path, '/'), "/ibdev")) {
		char node[128];

		snprintf(node, sizeof(node), "/dev/infiniband/%s", device);
		fd = open(node, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (fd >= 0)
			close(fd);
	}
}

static void make_host(const struct host *host)
{
	static const char *const folders[] = {"/sys/class/infiniband",
					      "/sys/class/infiniband_mad", "/dev/infiniband"};

	for (int i = 0; i < 3; i++) {
		mkdir(folders[i], 0755);
		nftw(folders[i], remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	}
	host_write(host, write_file, NULL);
}

/* --- what is chosen --------------------------------------------------------------- */

/* A port, or two ports; or no port: name[0] is empty. */
struct side {
	char name[UMAD_CA_NAME_LEN];
	int portnum;
};

struct answer {
	int error; /* 0 or negative */
	struct side port, smi;
};

struct library {
	__typeof__(&umad_get_port) get_port;
	__typeof__(&umad_release_port) release_port;
	__typeof__(&umad_open_port) open_port, open_smi_port;
	__typeof__(&umad_get_smi_gsi_pair_by_ca_name) get_pair;
};

static void load(struct library *library, const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);

	if (!handle) {
		fprintf(stderr, "%s\n", dlerror());
		exit(77);
	}
#define LOAD(member, name) library->member = (__typeof__(library->member))dlsym(handle, #name)
	LOAD(get_port, umad_get_port);
	LOAD(release_port, umad_release_port);
	LOAD(open_port, umad_open_port);
	LOAD(open_smi_port, umad_open_smi_port);
	LOAD(get_pair, umad_get_smi_gsi_pair_by_ca_name);
}

enum call {
	GET,
	OPEN,
	OPEN_SMI,
	PAIR,
	PAIR_SMI,
	CALLS
};
static const char *const call_names[CALLS] = {
	"umad_get_port", "umad_open_port", "umad_open_smi_port",
	"umad_get_smi_gsi_pair_by_ca_name", "the same, with enforce_smi"};

/* Old libraries do not have all calls. */
static bool has_call(const struct library *library, enum call call)
{
	return call >= PAIR ? library->get_pair != NULL
			    : call != OPEN_SMI || library->open_smi_port;
}

/* The port of the umad device with this number. */
static struct side port_of(const struct host *host, int number)
{
	struct side side = {"", -1};

	for (int i = 0; i < host->device_count; i++) {
		const struct host_device *device = &host->devices[i];

		if (number < device->port_count) {
			strcpy(side.name, device->name);
			side.portnum = device->ports[number].number;
			return side;
		}
		number -= device->port_count;
	}
	return side;
}

static struct answer opened(const struct host *host, int fd)
{
	struct answer answer = {.error = fd < 0 ? fd : 0};
	char link[64], path[128] = "";

	if (fd < 0)
		return answer;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, path, sizeof(path) - 1) > 0)
		answer.port = port_of(host, atoi(path + strcspn(path, "0123456789")));
	close(fd);
	return answer;
}

static struct answer ask(const struct library *library, const struct host *host, enum call call,
			 const char *name, int portnum)
{
	struct answer answer = {0};
	struct umad_ca_pair pair = {0};
	umad_port_t port = {0};

	switch (call) {
	case GET:
		answer.error = library->get_port(name, portnum, &port);
		if (!answer.error) {
			strcpy(answer.port.name, port.ca_name);
			answer.port.portnum = port.portnum;
			library->release_port(&port);
		}
		break;
	case OPEN:
		return opened(host, library->open_port(name, portnum));
	case OPEN_SMI:
		return opened(host, library->open_smi_port(name, portnum));
	default:
		answer.error =
			library->get_pair(name, (uint8_t)portnum, &pair, call == PAIR_SMI);
		if (answer.error)
			break;
		strcpy(answer.port.name, pair.gsi_name);
		answer.port.portnum = (int)pair.gsi_preferred_port;
		strcpy(answer.smi.name, pair.smi_name);
		answer.smi.portnum = pair.smi_name[0] ? (int)pair.smi_preferred_port : 0;
	}
	return answer;
}

/* --- what can be used -------------------------------------------------------------- */

static const struct host_device *device_named(const struct host *host, const char *name)
{
	for (int i = 0; i < host->device_count; i++)
		if (!strcmp(host->devices[i].name, name))
			return &host->devices[i];
	return NULL;
}

static const struct host_port *port_named(const struct host *host, const struct side *side)
{
	const struct host_device *device = device_named(host, side->name);

	for (int i = 0; device && i < device->port_count; i++)
		if (device->ports[i].number == side->portnum)
			return &device->ports[i];
	return NULL;
}

static bool is_ethernet(const struct host_port *port)
{
	return port->link_layer && !strcmp(port->link_layer, "Ethernet");
}

/* What is wrong with an answer, the worst first. */
enum fault {
	EMPTY,
	ABSENT,
	LAYER,
	ZERO_GUID,
	MIXED_GUIDS,
	SM_DISABLED,
	NO_PORT,
	ETHERNET,
	UNREADABLE,
	NO_SMI,
	PORT_DISABLED,
	PORT_DOWN,
	NOTHING
};
static const char *const fault_texts[] = {
	[NO_PORT] = "no port",
	[EMPTY] = "success without a port",
	[ABSENT] = "a port that does not exist",
	[LAYER] = "an Ethernet port in a pair",
	[ETHERNET] = "an Ethernet port for SMPs, as the last choice",
	[ZERO_GUID] = "a port with GUID 0 in a pair",
	[MIXED_GUIDS] = "ports with different GUIDs in a pair",
	[SM_DISABLED] = "a port with IsSMDisabled for SMPs",
	[UNREADABLE] = "a device or port with missing files",
	[NO_SMI] = "no device for SMPs, although the port sends SMPs",
	[PORT_DISABLED] = "a disabled port",
	[PORT_DOWN] = "a port that is Down",
	[NOTHING] = "a port that can be used",
};

static enum fault fault_of_port(const struct host *host, enum call call, bool smi,
				const struct side *side)
{
	const struct host_port *port = port_named(host, side);
	const struct host_device *device = device_named(host, side->name);

	if (!port)
		return ABSENT;
	if (call >= PAIR && is_ethernet(port))
		return LAYER;
	if (call >= PAIR && !port->guid)
		return ZERO_GUID;
	if (smi && port->sm_disabled)
		return SM_DISABLED;
	if (smi && is_ethernet(port))
		return ETHERNET;
	if (port->missing || (device->missing && strstr(device->missing, "guid")))
		return UNREADABLE;
	if (device->node_type == 2 && call < PAIR)
		return NOTHING;
	if (port->state == 1 && port->phys_state == 3)
		return PORT_DISABLED;
	return call >= PAIR && port->state == 1 ? PORT_DOWN : NOTHING;
}

static enum fault fault_of(const struct host *host, enum call call, const struct answer *answer)
{
	enum fault fault, fault_of_smi;

	if (answer->error)
		return NO_PORT;
	if (!answer->port.name[0])
		return EMPTY;
	fault = fault_of_port(host, call, call == OPEN_SMI, &answer->port);
	if (fault <= LAYER || call < PAIR)
		return fault;
	if (!answer->smi.name[0])
		return fault > NO_SMI && !port_named(host, &answer->port)->sm_disabled ? NO_SMI
										       : fault;
	fault_of_smi = fault_of_port(host, call, true, &answer->smi);
	if (fault_of_smi > MIXED_GUIDS && fault > MIXED_GUIDS &&
	    port_named(host, &answer->port)->guid != port_named(host, &answer->smi)->guid)
		return MIXED_GUIDS;
	return fault < fault_of_smi ? fault : fault_of_smi;
}

/* --- the comparison ---------------------------------------------------------------- */

#define REASONS 64

struct reason {
	char text[256];
	unsigned long count;
	uint32_t seed;
	char example[256];
};

static struct reason reasons[REASONS];

static void show(char *text, size_t size, const struct answer *answer)
{
	if (answer->error)
		snprintf(text, size, "%s", strerror(-answer->error));
	else if (answer->smi.name[0])
		snprintf(text, size, "%s/%d with %s/%d", answer->smi.name, answer->smi.portnum,
			 answer->port.name, answer->port.portnum);
	else
		snprintf(text, size, "%s/%d", answer->port.name, answer->port.portnum);
}

static void count(const char *text, uint32_t seed, enum call call, const char *name,
		  int portnum, const struct answer *ours, const struct answer *theirs)
{
	char one[64], other[64];
	int i = 0;

	while (i < REASONS - 1 && reasons[i].count && strcmp(reasons[i].text, text) != 0)
		i++;
	if (!reasons[i].count++) {
		show(one, sizeof(one), ours);
		show(other, sizeof(other), theirs);
		strcpy(reasons[i].text, text);
		reasons[i].seed = seed;
		snprintf(reasons[i].example, sizeof(reasons[i].example),
			 "%s(%.20s, %d): ours %s, theirs %s", call_names[call],
			 name ? name : "NULL", portnum, one, other);
	}
}

static bool same(const struct answer *a, const struct answer *b)
{
	if (a->error || b->error)
		return a->error && b->error;
	return !strcmp(a->port.name, b->port.name) && a->port.portnum == b->port.portnum &&
	       !strcmp(a->smi.name, b->smi.name) && a->smi.portnum == b->smi.portnum;
}

int main(int argc, char **argv)
{
	unsigned long hosts = argc > 3 ? strtoul(argv[3], NULL, 0) : 1000, asked = 0, equal = 0;
	uint32_t first = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 0) : 1;
	unsigned long hosts_that_differ = 0, unexplained = 0;
	struct library libraries[2];
	static struct host host;

	if (argc < 3)
		return 2;
	load(&libraries[0], argv[1]);
	load(&libraries[1], argv[2]);
	for (uint32_t seed = first; seed - first < hosts; seed++) {
		bool differs = false;

		host_draw(&host, seed);
		make_host(&host);
		for (int i = -1; i < 1; i++) {
			const char *name = i < 0 ? NULL : host.devices[i].name;

			for (int step = 0; step < CALLS * 3; step++) {
				enum call call = (enum call)(step % CALLS);
				struct answer ours, theirs;
				enum fault fault, our_fault;
				int portnum = step / CALLS;
				bool known;
				char text[256];

				/* a port that is named is taken as it is */
				if ((name && portnum && call < PAIR) ||
				    !has_call(&libraries[1], call))
					continue;
				ours = ask(&libraries[0], &host, call, name, portnum);
				theirs = ask(&libraries[1], &host, call, name, portnum);
				asked++;
				if (same(&ours, &theirs)) {
					equal++;
					continue;
				}
				differs = true;
				fault = fault_of(&host, call, &theirs);
				our_fault = fault_of(&host, call, &ours);
				known = fault < our_fault;
				snprintf(text, sizeof(text), "%stheirs: %s; ours: %s",
					 known ? "" : "UNEXPLAINED: ", fault_texts[fault],
					 fault_texts[our_fault]);
				unexplained += !known;
				count(text, seed, call, name, portnum, &ours, &theirs);
			}
		}
		hosts_that_differ += differs;
	}
	printf("%lu hosts, %lu calls: %lu with the same result; %lu hosts differ in a call\n",
	       hosts, asked, equal, hosts_that_differ);
	for (int i = 0; i < REASONS && reasons[i].count; i++)
		printf("%8lu  %s\n          host %u: %s\n", reasons[i].count, reasons[i].text,
		       reasons[i].seed, reasons[i].example);
	return unexplained ? 1 : 0;
}
