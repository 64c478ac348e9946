/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The subnet in memory: a topology, and what its nodes know besides: what a subnet manager
 * has set, which links are up, what has been counted. Most ports keep to the defaults of their
 * fabric, so a port has few bytes of its own; what was set differently hangs below it
 * (struct port_settings, struct counters) and is allocated when it is first set.
 *
 * One thread uses a fabric.
 */
#ifndef FABRIC_FABRIC_H
#define FABRIC_FABRIC_H

#include <stdbool.h>
#include <stdint.h>

#include "graph.h"

#define LID_COUNT      0xc000 /* unicast LIDs are 1 .. 0xbfff (IBA 4.1.3) */
#define MLID_FIRST     0xc000
#define MLID_COUNT     1024 /* as many as a switch's multicast table has (SwitchInfo) */
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

struct port_settings; /* settings.h: what a subnet manager can set and seldom does */
struct counters;      /* counters.h */
struct gmp_memory;    /* gmp_agents.h: what was set by GMPs */
struct switch_tables; /* routes.h: forwarding tables as they were set */
struct workload;      /* workload.h: what a node's agents had to do */
struct manager;       /* manager.h */
struct trees;         /* trees.h: what multicast tables are computed from */
struct packet;        /* wire_packet.h */
struct capture;       /* capture.h: NULL: none */

struct port {
	struct port_settings *settings; /* NULL: all as by default */
	struct counters *counters;      /* NULL: nothing ever cleared or counted */
	uint32_t capability_mask;
	uint16_t lid; /* host order; a switch's is its port 0's */
	uint16_t sm_lid;
	uint8_t lmc;
	uint8_t sm_sl;
	uint8_t state;      /* enum port_state */
	uint8_t phys_state; /* enum port_phys_state */
	uint8_t mtu;        /* NeighborMTU, as encoded: 1 is 256 .. 5 is 4096 */
	uint8_t operational_vls;
	bool cut;         /* a fault: its cable is pulled, */
	bool powered_off; /* its node has no power */
};

struct node {
	struct switch_tables *tables; /* NULL: a CA's, or all as computed */
	struct workload *workload;    /* NULL: nothing was ever asked of it, nor did it ask */
	uint16_t linear_top;          /* SwitchInfo: LinearFDBTop */
	uint8_t life_time;            /* SwitchInfo: LifeTimeValue */
	uint64_t power_at;            /* it has no power before then: links.h, node_reboot() */
	bool removed;                 /* a fault: its devices are taken from programs */
	bool state_change;            /* SwitchInfo: PortStateChange */
};

struct fabric {
	struct graph graph;
	struct port *ports; /* beside graph.ports */
	struct node *nodes; /* beside graph.nodes */
	uint32_t *lids;     /* LID_COUNT entries: which port has it (NONE: nobody) */
	struct routes *routes;
	struct trees *trees;     /* NULL: nobody joined a group yet */
	struct manager *manager; /* NULL: routes stay as they are */
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
	double load;   /* traffic: the share of each link's rate that is in use, 0 .. 1 */
	double errors; /* traffic: symbol errors a second on each link */
	/* who wants to know: a port's settings changed; an end port became Active, or is no
	 * longer; a node's devices are taken away or given back */
	void (*port_changed)(struct fabric *fabric, uint32_t port);
	void (*service_changed)(struct fabric *fabric, uint32_t end_port, bool in_service);
	void (*device_changed)(struct fabric *fabric, uint32_t node, bool present);
	/* a packet arrived by this port (by index; port 0 of a switch: from the node itself) */
	void (*arrived)(struct fabric *fabric, uint32_t port, const struct packet *packet);
	/* a packet went no further: who counts those in flight wants to know; NULL: nobody */
	void (*lost)(struct fabric *fabric, const struct packet *packet);
	/* whether a program on the end port of this port takes the packet; NULL: there are no
	 * programs */
	bool (*to_programs)(struct fabric *fabric, uint32_t port, const struct packet *packet);
	uint32_t sm_port; /* where the built-in SM and SA live; NONE: nowhere (--bare) */
};

static inline struct graph_port *cable(const struct fabric *fabric, uint32_t port)
{
	return &fabric->graph.ports[port];
}

static inline struct graph_node *hardware(const struct fabric *fabric, uint32_t node)
{
	return &fabric->graph.nodes[node];
}

/* The port that holds a node's LID and answers for it: a switch's port 0; else the port itself.
 */
uint32_t end_port(const struct fabric *fabric, uint32_t port);

/* Whether a LID is one of those that the multicast tables have. */
static inline bool is_multicast(uint16_t lid)
{
	return lid >= MLID_FIRST && lid < MLID_FIRST + MLID_COUNT;
}

/* The end port that answers to a LID, or NONE. */
uint32_t lid_owner(const struct fabric *fabric, uint16_t lid);

/* Notes that an end port has a LID (0: none) of 2^lmc addresses, and forgets the ones it had.
 */
void set_lid(struct fabric *fabric, uint32_t port, uint16_t lid, uint8_t lmc);

/* Whether two ends of a cable see each other, whatever the subnet manager says. */
bool link_is_up(const struct fabric *fabric, uint32_t port);

/* A number that is the same for the same seed and arguments, evenly spread over 64 bits. */
uint64_t fabric_hash(const struct fabric *fabric, uint64_t what, uint64_t a, uint64_t b);

#endif
