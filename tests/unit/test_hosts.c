/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The rules of umad_get_port(3) and umad_get_smi_gsi_pairs(3) on random hosts. What must be
 * chosen is derived here from the drawn host, not from files: each port gets a key, and the
 * least key must be chosen. HOSTS sets the number of hosts, TEST_SEED the first one.
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

/* --- pairs ------------------------------------------------------------------------ */

static bool may_pair(const struct place *place)
{
	return is_endpoint(place->device) && device_is_whole(place->device) &&
	       !is_ethernet(place->port) && place->port->guid;
}

/* The port; without a port if there is none. */
static struct place place_of(const char *name, uint32_t portnum)
{
	for_each_place (place)
		if (!strcmp(place->device->name, name) && place->port->number == (int)portnum)
			return *place;
	return (struct place){0};
}

static unsigned use_of(const struct host_port *port)
{
	return port->state > 1 ? 2 : port->phys_state != 3;
}

/* Another port with the GUID that does, or does not, send SMPs. */
static const struct host_port *counterpart(const struct host_port *port)
{
	for_each_place (place)
		if (may_pair(place) && place->port->guid == port->guid &&
		    place->port->sm_disabled != port->sm_disabled)
			return place->port;
	return NULL;
}

/* A pair that was found fits what the caller asked for, and its ports belong together. */
static void check_found(const char *name, uint8_t portnum, unsigned enforce,
			const struct umad_ca_pair *pair)
{
	struct place gsi = place_of(pair->gsi_name, pair->gsi_preferred_port);
	struct place smi = place_of(pair->smi_name, pair->smi_preferred_port);
	bool fits = gsi.port && may_pair(&gsi);

	if (fits && pair->smi_name[0])
		fits = smi.port && may_pair(&smi) && !smi.port->sm_disabled &&
		       smi.port->guid == gsi.port->guid &&
		       (smi.port == gsi.port || gsi.port->sm_disabled);
	else
		fits = fits && gsi.port->sm_disabled && !enforce;
	if (fits && name)
		fits = (!strcmp(name, pair->gsi_name) &&
			(!portnum || pair->gsi_preferred_port == portnum)) ||
		       (!strcmp(name, pair->smi_name) &&
			(!portnum || pair->smi_preferred_port == portnum));
	else if (fits && portnum)
		fits = (smi.port ? smi : gsi).port->number == portnum;
	if (!fits)
		fail_msg("host %" PRIu32 ": pair of (%s, %d, %u): %s/%u with %s/%u", seed,
			 name ? name : "NULL", portnum, enforce, pair->smi_name,
			 pair->smi_preferred_port, pair->gsi_name, pair->gsi_preferred_port);
}

/* No port that the caller can mean is better than the one that was found. */
static void check_best(const char *name, uint8_t portnum, unsigned enforce,
		       const struct umad_ca_pair *pair)
{
	const struct host_port *other;
	unsigned use, found = 0;
	struct place gsi, smi;

	if (pair) {
		gsi = place_of(pair->gsi_name, pair->gsi_preferred_port);
		smi = pair->smi_name[0] ? place_of(pair->smi_name, pair->smi_preferred_port)
					: gsi;
		found = use_of(gsi.port) < use_of(smi.port) ? use_of(gsi.port)
							    : use_of(smi.port);
	}
	for_each_place (place) {
		if (!may_pair(place) || (name && strcmp(name, place->device->name) != 0) ||
		    (portnum && place->port->number != portnum))
			continue;
		other = counterpart(place->port);
		if ((enforce && place->port->sm_disabled && !other) ||
		    (!name && other && place->port->sm_disabled))
			continue;
		use = use_of(place->port);
		if (other && use_of(other) < use)
			use = use_of(other);
		if (use > found || (!pair && (name || use_of(place->port))))
			fail_msg("host %" PRIu32 ": pair of (%s, %d, %u): %s/%d is better",
				 seed, name ? name : "NULL", portnum, enforce,
				 place->device->name, place->port->number);
	}
}

static void check_pairs(const char *name, uint8_t portnum, unsigned enforce)
{
	struct umad_ca_pair pair;
	int ret = umad_get_smi_gsi_pair_by_ca_name(name, portnum, &pair, enforce);

	assert_true(!ret || ret == -ENODEV);
	if (!ret)
		check_found(name, portnum, enforce, &pair);
	check_best(name, portnum, enforce, ret ? NULL : &pair);
}

/* Each device that has a port for pairs is in one, and no pair comes twice. */
static void check_list(void)
{
	struct umad_ca_pair pairs[64];
	int count = umad_get_smi_gsi_pairs(pairs, 64);

	for (int i = 0; i < count; i++)
		for (int j = 0; j < i; j++)
			assert_memory_not_equal(&pairs[i], &pairs[j], sizeof(pairs[i]));
	for (int i = 0; i < host.device_count; i++) {
		bool wanted = false, found = false;

		for_each_place (place)
			wanted |= place->position == i && may_pair(place);
		for (int j = 0; j < count; j++)
			found |= !strcmp(pairs[j].gsi_name, host.devices[i].name) ||
				 !strcmp(pairs[j].smi_name, host.devices[i].name);
		if (wanted != found)
			fail_msg("host %" PRIu32 ": %s is in %s pair", seed,
				 host.devices[i].name, found ? "a" : "no");
	}
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
		for (uint8_t portnum = 0; portnum <= 2; portnum++) {
			check_ports(NULL, portnum);
			check_pairs(NULL, portnum, (seed + portnum) % 2);
			check_pairs(name, portnum, (seed + portnum) % 2);
		}
		check_list();
	}
}
