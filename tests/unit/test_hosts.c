/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The rules of umad_get_port(3) on random hosts. What must be chosen is derived here from the
 * drawn host, not from files: each port gets a key, and the least key must be chosen. HOSTS
 * sets the number of hosts, TEST_SEED the first one.
 */

#include "fake.h"
#include "random_host.h"
#include "test.h"

#include <inttypes.h>

static struct host host;
static uint32_t seed;

/* --- the host on the fake machine ------------------------------------------------- */

static int position(const char *name)
{
	for (int i = 0; i < host.device_count; i++)
		if (!strcmp(host.devices[i].name, name))
			return i;
	return -1;
}

/* Devices in the order of the host, other entries by name. */
static bool before(const char *name, const char *other)
{
	int one = position(name), two = position(other);

	return one >= 0 && two >= 0 ? one < two : strcmp(name, other) < 0;
}

static void write_file(const char *path, const char *text, void *user)
{
	(void)user;
	fake_file(path, "%s", text);
}

/* All ports of the host: the n-th has the device umadN. */
static struct place {
	const struct host_device *device;
	const struct host_port *port;
	int position;
} places[HOST_DEVICES * HOST_PORTS];
static int place_count;

static void make_host(void)
{
	char name[16];

	fake_remove("/sys/class/infiniband");
	fake_remove("/sys/class/infiniband_mad");
	host_draw(&host, seed);
	host_write(&host, write_file, NULL);
	place_count = 0;
	for (int i = 0; i < host.device_count; i++)
		for (int j = 0; j < host.devices[i].port_count; j++) {
			snprintf(name, sizeof(name), "umad%d", place_count);
			fake_device(name);
			places[place_count++] =
				(struct place){&host.devices[i], &host.devices[i].ports[j], i};
		}
}

#define for_each_place(place) \
	for (const struct place *place = places; place < places + place_count; place++)

/* --- what the host's ports are ---------------------------------------------------- */

static bool port_is_readable(const struct host_port *port)
{
	return !port->missing || !strcmp(port->missing, "rate");
}

static bool device_is_whole(const struct host_device *device)
{
	if (device->missing && strstr(device->missing, "guid"))
		return false;
	for (int i = 0; i < device->port_count; i++)
		if (device->ports[i].missing)
			return false;
	return true;
}

static bool device_fits(const struct host_device *device)
{
	return device->port_count < UMAD_CA_MAX_PORTS;
}

static bool is_ethernet(const struct host_port *port)
{
	return port->link_layer && !strcmp(port->link_layer, "Ethernet");
}

static bool is_endpoint(const struct host_device *device)
{
	return device->node_type >= 1 && device->node_type <= 3;
}

static bool is_disabled(const struct host_port *port)
{
	return port->state == 1 && port->phys_state == 3;
}

/* --- ports ------------------------------------------------------------------------ */

/*
 * The rules of umad_get_port(3) as a number: of the ports that can be used, the one with the
 * least number is the choice. 0: the port cannot be used.
 */
static uint64_t key_of_port(const struct place *place, const char *name, int portnum, bool smi)
{
	const struct host_device *device = place->device;
	const struct host_port *port = place->port;
	bool whole = device_is_whole(device) && device_fits(device),
	     is_switch = device->node_type == 2;
	bool ethernet = is_ethernet(port) && !is_switch, active;
	unsigned how, linked;

	if (!port_is_readable(port) ||
	    (name ? strcmp(name, device->name) != 0 : !is_endpoint(device)))
		return 0;
	if ((smi && port->sm_disabled) || (!is_switch && is_disabled(port)))
		return 0;
	if (portnum && !is_switch && port->number != portnum)
		return 0;
	active = is_switch || (port->state == 4 && !ethernet);
	how = active ? 0 : ethernet && (portnum || smi) ? 2 : 1;
	linked = ethernet ? 1 : port->phys_state != 5;
	/* the device first: of one device, an Active port, then a link that is up */
	return 1 + ((uint64_t)!whole << 40 | (uint64_t)how << 32 |
		    (uint64_t)place->position << 24 |
		    (active ? 0 : (uint64_t)(how + linked) << 16) | (uint64_t)port->number);
}

static void show_best(char text[64], const char *name, int portnum, bool smi)
{
	uint64_t key, least = UINT64_MAX;

	strcpy(text, "none");
	for_each_place (place) {
		key = key_of_port(place, name, portnum, smi);
		if (key && key < least) {
			least = key;
			snprintf(text, 64, "%s/%d", place->device->name, place->port->number);
		}
	}
}

/* The port whose umad device is open. */
static void show_opened(char text[64], int fd)
{
	char name[16];

	strcpy(text, "none");
	if (fd < 0)
		return;
	for_each_place (place) {
		snprintf(name, sizeof(name), "umad%d", (int)(place - places));
		if (fake_device(name)->opened)
			snprintf(text, 64, "%s/%d", place->device->name, place->port->number);
	}
	umad_close_port(fd);
}

static void expect(const char *call, const char *name, int portnum, const char *seen,
		   const char *wanted)
{
	if (strcmp(seen, wanted) != 0)
		fail_msg("host %" PRIu32 ": %s(%s, %d): %s, not %s", seed, call,
			 name ? name : "NULL", portnum, seen, wanted);
}

static void check_ports(const char *name, int portnum)
{
	char seen[64] = "none", wanted[64];
	umad_port_t port;

	show_best(wanted, name, portnum, false);
	for (int i = 0; i < 2; i++) { /* always the same */
		if (!umad_get_port(name, portnum, &port)) {
			snprintf(seen, sizeof(seen), "%s/%d", port.ca_name, port.portnum);
			umad_release_port(&port);
		}
		expect("umad_get_port", name, portnum, seen, wanted);
	}
	show_opened(seen, umad_open_port(name, portnum));
	expect("umad_open_port", name, portnum, seen, wanted);
	show_best(wanted, name, portnum, true);
	show_opened(seen, umad_open_smi_port(name, portnum));
	expect("umad_open_smi_port", name, portnum, seen, wanted);
}

FIXTURE(fake_setup, fake_teardown);

TEST(the_choice_on_random_hosts_follows_the_rules)
{
	const char *wanted = getenv("HOSTS");
	unsigned long hosts = wanted ? strtoul(wanted, NULL, 0) : 200;
	uint32_t first = test_seed();
	const char *name;

	fake_order(before);
	for (seed = first; seed - first < hosts; seed++) {
		make_host();
		name = host.devices[seed % (unsigned)host.device_count].name;
		check_ports(name, 0);
		for (int portnum = 0; portnum <= 2; portnum++)
			check_ports(NULL, portnum);
	}
}
