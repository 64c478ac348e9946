/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_fabric.h - discovery: the nodes, ports and links of a fabric, and what is wrong with it.
 *
 *   if (mad_fabric_discover(port, NULL, &fabric) == 0) {
 *           printf("%zu nodes, %zu problems\n", fabric->node_count, fabric->problem_count);
 *           for (size_t i = 0; i < fabric->node_count; i++)
 *                   puts(mad_fabric_get_node(fabric, i)->description);
 *           mad_fabric_free(fabric);
 *   }
 *
 * A discovery uses directed routes, so it needs IB_SMI_DIRECT_CLASS on the port but neither
 * LIDs nor a subnet manager. It succeeds if the first node responds; everything else that went
 * wrong is in the problems.
 *
 * Nodes, ports and problems belong to their fabric, which any number of threads may read.
 * Numbers are in host order, attribute images (node_info, info, ...) as on the wire, for
 * mad_read_field().
 */
#ifndef INFINIBAND_MAD_FABRIC_H
#define INFINIBAND_MAD_FABRIC_H

#include <infiniband/mad_async.h>
#include <infiniband/mad_link.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- nodes and ports ------------------------------------------------------------ */

struct mad_fabric_port;

/* The library allocates these structures, except options. Members may be added at the end. */

struct mad_fabric {
	size_t node_count;
	size_t port_count; /**< including port 0 of switches */
	size_t problem_count;
	/** where the discovery began, or NULL */
	const struct mad_fabric_port *origin;
};

struct mad_fabric_node {
	uint64_t guid; /**< NodeGUID */
	uint64_t system_guid;
	const uint8_t *node_info;   /**< NodeInfo, 64 bytes, or NULL */
	const uint8_t *switch_info; /**< SwitchInfo, 64 bytes, or NULL */
	uint32_t index;             /**< for mad_fabric_get_node() */
	uint32_t vendor_id;
	uint32_t revision;
	uint16_t device_id;
	/** of a switch's port 0 or another node's entry port; 0: none */
	uint16_t lid;
	uint8_t type;       /**< IB_NODE_CA, IB_NODE_SWITCH, IB_NODE_ROUTER or unknown */
	uint8_t port_count; /**< highest port number; switches also have port 0 */
	uint8_t entry_port; /**< where the route enters the node */
	uint8_t lmc;        /**< the LIDs are lid to lid + 2^lmc - 1 */
	bool enhanced_port0;
	/** NodeDescription, unconverted; "" if it was not read */
	char description[IB_SMP_DATA_SIZE + 1];
	/** from the local port; the first route found */
	ib_dr_path_t route;
};

struct mad_fabric_port {
	const struct mad_fabric_node *node;
	/** other end of the cable, or NULL; in a loaded fabric, peer->peer may differ */
	const struct mad_fabric_port *peer;
	const uint8_t *info;          /**< PortInfo, 64 bytes, or NULL */
	const uint8_t *mlnx_ext_info; /**< Mellanox ExtendedPortInfo, 64 bytes, or NULL */
	uint64_t guid;                /**< PortGUID (of port 0 in a switch); 0: unknown */
	/** mad_link_rate_gbps(); 0: down or unknown, as is speed if port 0 was not read */
	double rate_gbps;
	uint32_t index;           /**< below mad_fabric:port_count */
	uint32_t capability_mask; /**< MAD_PORT_CAP_* */
	int error;                /**< negative errno: PortInfo not read */
	/** negative errno: NodeInfo of the node behind the port not read */
	int peer_error;
	uint16_t lid; /**< 0: none; switches: port 0 only */
	uint16_t sm_lid;
	uint16_t mtu; /**< NeighborMTU in bytes; 0: unknown */
	uint8_t number;
	uint8_t state;
	uint8_t physical_state;
	uint8_t lmc;
	uint8_t width;          /**< active lanes: 1, 2, 4, 8, 12; 0: down or unknown */
	uint8_t width_possible; /**< the most that both ends support; 0: unknown */
	uint8_t speed;          /**< enum mad_link_speed */
	uint8_t speed_possible; /**< the highest that both ends support */
	/** LID for requests about the port (of port 0 in a switch); 0: none */
	uint16_t gmp_lid;
};

/** Returns a node, in the order of discovery; NULL beyond the last. */
const struct mad_fabric_node *mad_fabric_get_node(const struct mad_fabric *fabric,
						  size_t index);

/** Returns a port by number, or NULL. */
const struct mad_fabric_port *mad_fabric_get_port(const struct mad_fabric_node *node,
						  unsigned number);

/** Iterates over the ports of all nodes: pass NULL to start; returns NULL at the end. */
const struct mad_fabric_port *mad_fabric_next_port(const struct mad_fabric *fabric,
						   const struct mad_fabric_port *port);

/** These return the first match, or NULL; for PortGUID and LID of a switch, port 0. */
const struct mad_fabric_node *mad_fabric_find_guid(const struct mad_fabric *fabric,
						   uint64_t guid);

const struct mad_fabric_port *mad_fabric_find_port_guid(const struct mad_fabric *fabric,
							uint64_t guid);

/** Matches all 2^lmc LIDs. Skips CA and router ports without a link, except the origin. */
const struct mad_fabric_port *mad_fabric_find_lid(const struct mad_fabric *fabric,
						  unsigned lid);

/* --- problems ----------------------------------------------------------------------- */

enum mad_fabric_problem_kind {
	/** the node behind a port did not respond (properly) */
	MAD_FABRIC_PROBLEM_BEHIND,
	/** some attributes of a node could not be read */
	MAD_FABRIC_PROBLEM_NODE,
	/** both ends of a link name different neighbors */
	MAD_FABRIC_PROBLEM_PEER,
	/** duplicate NodeGUID or PortGUID; a discovery omits the second node */
	MAD_FABRIC_PROBLEM_GUID,
	/** a node without ports, or a link to a port that its node does not have */
	MAD_FABRIC_PROBLEM_PORT_COUNT,
	/** neither CA, switch nor router */
	MAD_FABRIC_PROBLEM_NODE_TYPE,
	/** a cable from a node to itself */
	MAD_FABRIC_PROBLEM_LOOP,
	/** two ports have the same LID */
	MAD_FABRIC_PROBLEM_LID,
	/** nodes beyond 63 hops */
	MAD_FABRIC_PROBLEM_ROUTE_TOO_LONG,
	/** more nodes or ports than mad_fabric_options:max_nodes allows */
	MAD_FABRIC_PROBLEM_TOO_MANY,
	/** different state, width, speed or MTU at the ends of a link */
	MAD_FABRIC_PROBLEM_LINK
};

struct mad_fabric_problem {
	enum mad_fabric_problem_kind kind;
	/** of BEHIND and NODE, as mad_reply:error or -EBADMSG */
	int error;
	const struct mad_fabric_node *node;
	const struct mad_fabric_port *port; /**< where the problem is, or is behind; or NULL */
	/** other end of the link, or duplicate of the GUID or LID; or NULL */
	const struct mad_fabric_node *other_node;
	const struct mad_fabric_port *other_port;
	/** NODE: its NodeGUID; BEHIND: see mad_fabric_options:previous; GUID: the duplicate */
	uint64_t guid;
	const char *description; /**< of the node with this guid, or "" */
	/** NODE, BEHIND: the first request that timed out, else the first that failed */
	unsigned attribute;
	unsigned modifier;
	unsigned status; /**< MAD status, for -EIO; 0: it could not be sent */
	/** failed requests, including those not sent because of it */
	unsigned count;
};

/** Returns a problem; NULL beyond the last. */
const struct mad_fabric_problem *mad_fabric_get_problem(const struct mad_fabric *fabric,
							size_t index);

/** Enough for every text of mad_fabric_problem_text(). */
#define MAD_FABRIC_PROBLEM_TEXT_SIZE 384

/** Writes what is wrong and where in one line, with printable names. Returns buf. */
char *mad_fabric_problem_text(const struct mad_fabric_problem *problem, char *buf, size_t size);

/* --- discovery -------------------------------------------------------------------- */

/** Attributes to read of each node, besides NodeInfo. */
enum mad_fabric_read {
	MAD_FABRIC_READ_DESCRIPTIONS = 1,
	MAD_FABRIC_READ_PORTS = 2,
	MAD_FABRIC_READ_SWITCHES = 4,
	/** also ExtendedPortInfo of QDR links, which may be FDR10 */
	MAD_FABRIC_READ_MLNX_EXT_PORTS = 8,
	/** just NodeInfo; no effect with other bits */
	MAD_FABRIC_READ_NODES = 16,
	MAD_FABRIC_READ_DEFAULT = 7
};

struct mad_fabric_progress {
	size_t nodes;
	size_t switches;
	size_t links;
	size_t ports; /**< of the nodes found */
	size_t problems;
	size_t requests;
	size_t in_flight; /**< requests */
};

typedef void mad_fabric_progress_fn(const struct mad_fabric_progress *progress, void *arg);

/** 0 stands for the default of each member. */
struct mad_fabric_options {
	/** enum mad_fabric_read; without PORTS, a port without a link costs a timeout */
	unsigned read;
	unsigned max_hops; /**< hops from the first node; 0: 63 */
	/** NULL: the local node; if it starts at a LID, drpath.drslid must be the local LID */
	const ib_portid_t *from;
	/** 0: 200,000; the limit of ports is 65,536 + 16 x max_nodes */
	size_t max_nodes;
	int timeout_ms; /**< of an attempt; 0: the port's */
	/** called up to ten times a second, and before a discovery succeeds */
	mad_fabric_progress_fn *progress;
	void *progress_arg;
	/** an earlier fabric that tells what was behind a dead port; must stay valid */
	const struct mad_fabric *previous;
	/** M_Key of all SMPs, in host order; 0: the port's */
	uint64_t m_key;
	/** for mad_fabric_discover() only, see mad_cancel_set() */
	const struct mad_cancel *cancel;
	/** milliseconds until -ETIME; 0: no limit */
	unsigned time_limit_ms;
	/** if it ends early, return what is known, with its error in unread ports and peers */
	bool partial;
	uint64_t reserved[4];
};

/** Free *fabric with mad_fabric_free(). On failure, it is NULL or (options->partial) a part. */
int mad_fabric_discover(struct ibmad_port *port, const struct mad_fabric_options *options,
			struct mad_fabric **fabric);

/** Called once per discovery, with its result. The callback owns the fabric. */
typedef void mad_fabric_fn(struct mad_async *async, int error, struct mad_fabric *fabric,
			   void *arg);

/** The same on an engine; *id is for mad_async_cancel(), so options->cancel must be NULL. */
int mad_fabric_submit(struct mad_async *async, const struct mad_fabric_options *options,
		      mad_fabric_fn *done, void *arg, uint64_t *id);

/** NULL is a no-op. */
void mad_fabric_free(struct mad_fabric *fabric);

/* --- comparison --------------------------------------------------------------------- */

enum mad_fabric_change {
	MAD_FABRIC_NODE_ADDED,
	MAD_FABRIC_NODE_REMOVED,
	MAD_FABRIC_NODE_CHANGED, /**< description, type, ports, LIDs, SystemImageGUID */
	MAD_FABRIC_LINK_ADDED,
	MAD_FABRIC_LINK_REMOVED,
	MAD_FABRIC_LINK_CHANGED, /**< state, physical state, width, speed or MTU */
	MAD_FABRIC_PORT_CHANGED  /**< the same for a port without a link; LIDs, PortGUID */
};

/** before_* is in the first fabric, after_* in the second; NULL if it is not there. */
struct mad_fabric_difference {
	enum mad_fabric_change change;
	const struct mad_fabric_node *before_node, *after_node;
	const struct mad_fabric_port *before_port, *after_port; /**< one end of a link */
};

/** Returns 0 to continue; another number ends the comparison. */
typedef int mad_fabric_change_fn(const struct mad_fabric_difference *difference, void *arg);

/**
 * Calls changed() (unless NULL) for each change, removals first, each link once. Changes that
 * may only be due to ports that did not respond are left out. Returns the number of changes,
 * the result of changed() that ended the comparison, -EINVAL or -ENOMEM.
 */
int mad_fabric_compare(const struct mad_fabric *before, const struct mad_fabric *after,
		       mad_fabric_change_fn *changed, void *arg);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_FABRIC_H */
