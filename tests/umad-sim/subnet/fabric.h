/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The subnet in memory: a topology and the state of its nodes, which is what a subnet manager
 * has set, which links are up, and counters. Most ports have their fabric's default values, so
 * a port takes few bytes; other values are in separate structures (struct port_settings, struct
 * counters), allocated when a value is first set.
 *
 * A fabric must be used by one thread only.
 */
#ifndef FABRIC_FABRIC_H
#define FABRIC_FABRIC_H

#include <stdbool.h>
#include <stdint.h>

#include "graph.h"

#define LID_COUNT      0xc000 /* unicast LIDs are 1 .. 0xbfff (IBA 4.1.3) */
#define MLID_FIRST     0xc000
#define MLID_COUNT     1024 /* the size of a switch's multicast table (SwitchInfo) */
#define PERMISSIVE_LID 0xffff
#define DEFAULT_PREFIX 0xfe80000000000000ULL
#define DEFAULT_PKEY   0xffff
#define NO_ROUTE       255 /* in a linear forwarding table (IBA 14.2.5.10) */

#define NANOSECOND  1ULL
#define MICROSECOND 1000ULL
#define MILLISECOND 1000000ULL
#define SECOND      1000000000ULL

enum port_state { /* IBA 14.2.5.6 */
	PORT_DOWN = 1,
	PORT_INIT,
	PORT_ARMED,
	PORT_ACTIVE
};

enum port_phys_state {
	PHYS_POLLING = 2,
	PHYS_DISABLED = 3,
	PHYS_LINK_UP = 5
};

struct port_settings; /* settings.h: values that a subnet manager rarely sets */
struct counters;      /* counters.h */
struct gmp_memory;    /* gmp_agents.h: values set by GMPs */
struct switch_tables; /* routes.h: forwarding tables that were set */
struct workload;      /* workload.h: requests a node received and sent */
struct manager;       /* manager.h */
struct trees;         /* trees.h: state for computing multicast tables */
struct packet;        /* wire_packet.h */
struct capture;       /* capture.h: NULL: none */

struct port {
	struct port_settings *settings; /* NULL: default values */
	struct counters *counters;      /* NULL: never cleared, no events */
	uint32_t capability_mask;
	uint16_t lid; /* host order; a switch has it at port 0 */
	uint16_t sm_lid;
	uint8_t lmc;
	uint8_t sm_sl;
	uint8_t state;      /* enum port_state */
	uint8_t phys_state; /* enum port_phys_state */
	uint8_t mtu;        /* NeighborMTU, encoded: 1 (256) .. 5 (4096) */
	uint8_t operational_vls;
	uint8_t width : 4;    /* lanes with which the link trained; 0: no cable */
	uint8_t speed : 4;    /* enum link_speed, likewise */
	bool cut : 1;         /* a fault: the cable is unplugged */
	bool powered_off : 1; /* its node has no power */
	bool of_kernel : 1;   /* an end port: a real kernel receives its packets */
};

struct node {
	struct switch_tables *tables; /* NULL: a CA, or all tables are computed */
	struct workload *workload;    /* NULL: no requests received or sent */
	uint16_t linear_top;          /* SwitchInfo: LinearFDBTop */
	uint8_t life_time;            /* SwitchInfo: LifeTimeValue */
	uint32_t rank;                /* index among the switches (routes.c); NONE: a CA */
	char *description; /* NodeDescription, if its host set one; NULL: the node's name */
	uint64_t power_at; /* powered off until then: links.h, node_reboot() */
	bool removed;      /* a fault: its devices are removed */
	bool state_change; /* SwitchInfo: PortStateChange */
};

struct fabric {
	struct graph graph;
	struct port *ports; /* parallel to graph.ports */
	struct node *nodes; /* parallel to graph.nodes */
	uint32_t *lids;     /* LID_COUNT entries: the port with the LID, or NONE */
	struct routes *routes;
	struct trees *trees;     /* NULL: no port has joined a group yet */
	struct manager *manager; /* NULL: routes do not change */
	struct faults *faults;
	struct events *events;
	struct hosts *hosts;
	struct trace *trace;
	struct capture *capture;
	struct gmp_memory *gmp_memory;
	struct trap *traps; /* those being sent */
	uint64_t trap_count;
	uint64_t seed;
	uint64_t now;  /* nanoseconds since the start */
	double load;   /* traffic: share of each link's rate, 0 .. 1 */
	double errors; /* traffic: symbol errors a second on each link */
	/* callbacks: a port's settings changed; an end port became Active, or ceased to be; a
	 * node's devices are removed or come back; the built-in SA forgets */
	void (*port_changed)(struct fabric *fabric, uint32_t port);
	void (*service_changed)(struct fabric *fabric, uint32_t end_port, bool in_service);
	void (*device_changed)(struct fabric *fabric, uint32_t node, bool present);
	void (*sa_forgets)(struct fabric *fabric);
	/* a packet arrived by this port (by index; port 0 of a switch: from the switch itself);
	 * a response may replace its MAD */
	void (*arrived)(struct fabric *fabric, uint32_t port, struct packet *packet);
	/* a packet is lost, so its request is no longer in flight; NULL: no callback */
	void (*lost)(struct fabric *fabric, const struct packet *packet);
	/*
	 * whether a program takes the packet, on the end port of this port; NULL: no programs
	 */
	bool (*to_programs)(struct fabric *fabric, uint32_t port, const struct packet *packet);
	uint32_t sm_port; /* the port of the built-in SM and SA; NONE: none (--bare) */
};

static inline struct graph_port *cable(const struct fabric *fabric, uint32_t port)
{
	return &fabric->graph.ports[port];
}

/* The speed to which a port's link trained. */
static inline enum link_speed active_speed(const struct fabric *fabric, uint32_t port)
{
	return (enum link_speed)fabric->ports[port].speed;
}

static inline struct graph_node *hardware(const struct fabric *fabric, uint32_t node)
{
	return &fabric->graph.nodes[node];
}

/* The port that has a node's LID: port 0 of a switch, else the port itself. */
static inline uint32_t end_port(const struct fabric *fabric, uint32_t port)
{
	const struct graph_node *node = hardware(fabric, cable(fabric, port)->node);

	return node->type == NODE_SWITCH ? node->first_port : port;
}

/* Whether the multicast tables have this LID. */
static inline bool is_multicast(uint16_t lid)
{
	return lid >= MLID_FIRST && lid < MLID_FIRST + MLID_COUNT;
}

/* The end port with a LID, or NONE. */
static inline uint32_t lid_owner(const struct fabric *fabric, uint16_t lid)
{
	return lid < LID_COUNT ? fabric->lids[lid] : NONE;
}

/* Gives an end port a LID (0: none) with 2^lmc addresses, and removes its earlier LIDs. */
void set_lid(struct fabric *fabric, uint32_t port, uint16_t lid, uint8_t lmc);

/* Whether a port's physical link is up, whatever state the SM sets. */
static inline bool link_is_up(const struct fabric *fabric, uint32_t port)
{
	return fabric->ports[port].phys_state == PHYS_LINK_UP;
}

/* A pseudo-random number, uniform over 64 bits, that depends only on the fabric's seed and the
 * arguments. */
uint64_t fabric_hash(const struct fabric *fabric, uint64_t what, uint64_t a, uint64_t b);

#endif
