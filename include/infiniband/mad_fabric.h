/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_fabric.h - discovery: the nodes, ports and links of a fabric, and what is wrong with it.
 *
 *   struct mad_fabric *fabric;
 *
 *   if (mad_fabric_discover(port, NULL, &fabric) == 0) {
 *           printf("%zu nodes, %zu problems\n", fabric->node_count, fabric->problem_count);
 *           for (size_t i = 0; i < fabric->node_count; i++)
 *                   puts(mad_fabric_get_node(fabric, i)->description);
 *           mad_fabric_free(fabric);
 *   }
 *
 * A discovery sends SMPs by directed routes: it needs neither LIDs nor a subnet manager, but a
 * port with IB_SMI_DIRECT_CLASS registered. It succeeds if the first node responds. Nodes that
 * do not respond, and responses that contradict each other, are problems of the result: look at
 * problem_count.
 *
 * Numbers are in host order. The images of attributes (node_info, info, ...) are as on the
 * wire, for mad_read_field().
 *
 * Memory. Nodes, ports and problems belong to their fabric, which mad_fabric_free() frees.
 *
 * Threads. Any number of threads may read a fabric at once.
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

/*
 * The library allocates all structures of this header but the options. Members may be added at
 * the end of each.
 */

struct mad_fabric {
	size_t node_count;
	size_t port_count;    /**< of all nodes, the ports 0 of switches included */
	size_t problem_count; /**< what was not found, and what is wrong */
	/** The port where the discovery began; NULL: not known. */
	const struct mad_fabric_port *origin;
};

struct mad_fabric_node {
	uint64_t guid;              /**< NodeGUID */
	uint64_t system_guid;       /**< SystemImageGUID */
	const uint8_t *node_info;   /**< NodeInfo, 64 bytes; NULL if it was not read */
	const uint8_t *switch_info; /**< SwitchInfo, 64 bytes; NULL if it was not read */
	uint32_t index;             /**< from 0 to mad_fabric:node_count - 1 */
	uint32_t vendor_id;
	uint32_t revision;
	uint16_t device_id;
	/** The LID of a switch's port 0, or of another node's entry port; 0: none. */
	uint16_t lid;
	uint8_t type; /**< IB_NODE_CA, IB_NODE_SWITCH, IB_NODE_ROUTER; or another number */
	uint8_t port_count;  /**< the highest number of a port; a switch has a port 0, too */
	uint8_t entry_port;  /**< the port by which the route enters the node */
	uint8_t lmc;         /**< of the port that has the LID: 2^lmc LIDs from lid on */
	bool enhanced_port0; /**< of a switch (SwitchInfo) */
	/** NodeDescription, byte by byte as the node has it; "" if it was not read. */
	char description[IB_SMP_DATA_SIZE + 1];
	/**
	 * The route from the local port to the node. If there are several routes, the route
	 * that the discovery found first.
	 */
	ib_dr_path_t route;
};

struct mad_fabric_port {
	const struct mad_fabric_node *node;
	/**
	 * The port at the other end of the cable; NULL: not known. In a fabric that was loaded,
	 * peer->peer may be another port or NULL (MAD_FABRIC_PROBLEM_PEER).
	 */
	const struct mad_fabric_port *peer;
	const uint8_t *info;          /**< PortInfo, 64 bytes; NULL if it was not read */
	const uint8_t *mlnx_ext_info; /**< Mellanox ExtendedPortInfo, 64 bytes, or NULL */
	uint64_t guid;                /**< PortGUID, of a switch that of port 0; 0: not known */
	/**
	 * mad_link_rate_gbps(); 0: down, or not known. Speed and rate of a switch's port with
	 * extended speeds are not known if port 0 was not read: port 0 has the CapabilityMask.
	 */
	double rate_gbps;
	uint32_t index;           /**< from 0 to mad_fabric:port_count - 1 */
	uint32_t capability_mask; /**< CapabilityMask: bits MAD_PORT_CAP_* */
	int error; /**< a negative errno: PortInfo could not be read; otherwise 0 */
	/**
	 * A negative errno: NodeInfo of the node behind this port could not be read
	 * (MAD_FABRIC_PROBLEM_BEHIND); otherwise 0. The peer may be known from the other end.
	 */
	int peer_error;
	uint16_t lid;    /**< 0: none, or a port of a switch other than 0 */
	uint16_t sm_lid; /**< MasterSMLID */
	uint16_t mtu;    /**< NeighborMTU in bytes; 0: not known */
	uint8_t number;
	uint8_t state;          /**< enum mad_port_state */
	uint8_t physical_state; /**< enum mad_port_physical_state */
	uint8_t lmc;
	uint8_t width;          /**< lanes in use: 1, 2, 4, 8, 12; 0: none, or not known */
	uint8_t width_possible; /**< the most lanes that both ends support; 0: not known */
	uint8_t speed;          /**< enum mad_link_speed; MAD_SPEED_NONE: none, or not known */
	uint8_t speed_possible; /**< the highest speed that both ends support, or not known */
	/**
	 * The LID to which requests about the port are sent, for example for its counters: that
	 * of a switch's port 0, otherwise the port's own. 0: none, or not of this subnet, see
	 * mad_fabric_find_lid(): a request would reach another node.
	 */
	uint16_t gmp_lid;
};

/** A node, in the order in which the nodes were found; NULL beyond the last one. */
const struct mad_fabric_node *mad_fabric_get_node(const struct mad_fabric *fabric,
						  size_t index);

/** A port of a node by its number; NULL if there is none, such as port 0 of a CA. */
const struct mad_fabric_port *mad_fabric_get_port(const struct mad_fabric_node *node,
						  unsigned number);

/** Iterates over the ports of all nodes: pass NULL to start; returns NULL at the end. */
const struct mad_fabric_port *mad_fabric_next_port(const struct mad_fabric *fabric,
						   const struct mad_fabric_port *port);

/** The node with this NodeGUID, of several nodes the first one; or NULL. */
const struct mad_fabric_node *mad_fabric_find_guid(const struct mad_fabric *fabric,
						   uint64_t guid);

/** The port with this PortGUID, of several ports the first one; port 0 of a switch; or NULL. */
const struct mad_fabric_port *mad_fabric_find_port_guid(const struct mad_fabric *fabric,
							uint64_t guid);

/**
 * The port that has this LID as one of its 2^lmc LIDs; port 0 of a switch; or NULL. A port of a
 * CA or router without a link in the fabric is not found, because its LID may belong to another
 * subnet. The port where the discovery began is found, also without a link.
 */
const struct mad_fabric_port *mad_fabric_find_lid(const struct mad_fabric *fabric,
						  unsigned lid);

/* --- problems ----------------------------------------------------------------------- */

enum mad_fabric_problem_kind {
	/** The node behind a port did not respond, or not as it should. */
	MAD_FABRIC_PROBLEM_BEHIND,
	/** A node was found, but not all of its attributes could be read. */
	MAD_FABRIC_PROBLEM_NODE,
	/** Two ports respond with different nodes at the other end of their links. */
	MAD_FABRIC_PROBLEM_PEER,
	/** A NodeGUID or PortGUID is there twice. A discovery leaves out the second node. */
	MAD_FABRIC_PROBLEM_GUID,
	/** A node without ports, or a link to a port that its node does not have. */
	MAD_FABRIC_PROBLEM_PORT_COUNT,
	/** A node that is neither CA, switch nor router. */
	MAD_FABRIC_PROBLEM_NODE_TYPE,
	/** A cable from a node to itself. */
	MAD_FABRIC_PROBLEM_LOOP,
	/** Two ports have one LID. */
	MAD_FABRIC_PROBLEM_LID,
	/** There are nodes beyond 63 hops. */
	MAD_FABRIC_PROBLEM_ROUTE_TOO_LONG,
	/** There are more nodes or ports than mad_fabric_options:max_nodes permits. */
	MAD_FABRIC_PROBLEM_TOO_MANY,
	/** State, width, speed or MTU differ at the two ends of a link. */
	MAD_FABRIC_PROBLEM_LINK
};

struct mad_fabric_problem {
	enum mad_fabric_problem_kind kind;
	/** A negative errno of BEHIND and NODE: as mad_reply:error, or -EBADMSG; otherwise 0.
	 */
	int error;
	const struct mad_fabric_node *node; /**< of the port, or the node itself; or NULL */
	const struct mad_fabric_port *port; /**< where the problem is, or behind it; or NULL */
	/** The second place: the other end, the other port or node with the GUID or LID; or
	 * NULL.
	 */
	const struct mad_fabric_node *other_node;
	const struct mad_fabric_port *other_port;
	/**
	 * NODE: the node's NodeGUID. BEHIND: that of the node which was there in
	 * mad_fabric_options:previous, if the request timed out. GUID: the GUID that is there
	 * twice. Otherwise 0.
	 */
	uint64_t guid;
	const char *description; /**< of the node with this guid (NODE, BEHIND); otherwise "" */
	/** NODE, BEHIND: the first request that timed out, otherwise the first that failed. */
	unsigned attribute;
	unsigned modifier;
	unsigned status; /**< of its response, if the error is -EIO; 0: it could not be sent */
	/** Requests that failed, and those that were not sent for this reason. */
	unsigned count;
};

/** A problem; NULL beyond the last one. */
const struct mad_fabric_problem *mad_fabric_get_problem(const struct mad_fabric *fabric,
							size_t index);

/** The buffer that the longest text of mad_fabric_problem_text() needs. */
#define MAD_FABRIC_PROBLEM_TEXT_SIZE 384

/**
 * What is wrong, and where, in one line. Names are as mad_printable_text() writes them. The
 * text is cut if it does not fit. Returns buf.
 */
char *mad_fabric_problem_text(const struct mad_fabric_problem *problem, char *buf, size_t size);

/* --- discovery -------------------------------------------------------------------- */

/** The attributes that a discovery reads of each node, besides NodeInfo. */
enum mad_fabric_read {
	MAD_FABRIC_READ_DESCRIPTIONS = 1, /**< NodeDescription */
	MAD_FABRIC_READ_PORTS = 2,        /**< PortInfo of each port */
	MAD_FABRIC_READ_SWITCHES = 4,     /**< SwitchInfo */
	/**
	 * Mellanox ExtendedPortInfo of ports with a link of QDR, which may be one of FDR10.
	 * With this bit, PortInfo is read, too.
	 */
	MAD_FABRIC_READ_MLNX_EXT_PORTS = 8,
	/** Only NodeInfo, if it is the only bit. With other bits it has no effect. */
	MAD_FABRIC_READ_NODES = 16,
	MAD_FABRIC_READ_DEFAULT = 7
};

/** How far a discovery is. */
struct mad_fabric_progress {
	size_t nodes;
	size_t switches;
	size_t links;
	size_t ports;     /**< of the nodes found */
	size_t problems;  /**< found so far */
	size_t requests;  /**< submitted so far */
	size_t in_flight; /**< requests that are not complete */
};

typedef void mad_fabric_progress_fn(const struct mad_fabric_progress *progress, void *arg);

/** All members may be 0. */
struct mad_fabric_options {
	/**
	 * Bits of enum mad_fabric_read; 0: MAD_FABRIC_READ_DEFAULT. The discovery follows a
	 * link if PortInfo has the state LinkUp. Without MAD_FABRIC_READ_PORTS, it sends
	 * NodeInfo through each port of each switch. Then a port without a link takes a
	 * timeout, and becomes a problem.
	 */
	unsigned read;
	unsigned max_hops; /**< the largest number of hops from the first node; 0: 63 */
	/**
	 * The route to the first node: a directed route, or a LID and a directed route from the
	 * node with that LID. NULL: the local node. With a LID, drpath.drslid is the LID of the
	 * local port, to which responses return. Both must be unicast LIDs.
	 */
	const ib_portid_t *from;
	/**
	 * The largest number of nodes; 0: 200,000. The limit of ports is 65,536 +
	 * 16 x max_nodes.
	 */
	size_t max_nodes;
	int timeout_ms; /**< of an attempt; 0: the port's */
	/** Called ten times a second at most, and before a discovery succeeds; or NULL. */
	mad_fabric_progress_fn *progress;
	void *progress_arg;
	/**
	 * An earlier result of a discovery or of mad_fabric_load(), or NULL. If no node
	 * responds behind a port now, the previous fabric tells which node was there
	 * (MAD_FABRIC_PROBLEM_BEHIND). The new fabric keeps this information for the next
	 * discovery. The previous fabric must not be freed before the discovery is complete.
	 */
	const struct mad_fabric *previous;
	/**
	 * The M_Key of all SMPs, in host order; 0: that of the port when the discovery starts,
	 * see smp_mkey_set(). Nodes with the protection level 2 or 3 do not respond to another
	 * M_Key (IBA 14.2.4).
	 */
	uint64_t m_key;
	/** Cancels mad_fabric_discover(), see mad_cancel_set(); NULL: nothing does. */
	const struct mad_cancel *cancel;
	/** The milliseconds after which the discovery ends with -ETIME; 0: no limit. */
	unsigned time_limit_ms;
	/**
	 * If the discovery ends early, it also returns the part of the fabric that is known. In
	 * this part, a port or peer that was not read has the error of the discovery (error,
	 * peer_error), and a problem. So mad_fabric_compare() reports no removal.
	 */
	bool partial;
	uint64_t reserved[4]; /**< 0 */
};

/**
 * Discovers a fabric. Returns 0, or a negative errno if the first node does not respond or the
 * discovery ends early; then *fabric is NULL or, with mad_fabric_options:partial, the part that
 * is known. mad_fabric_free() frees *fabric.
 */
int mad_fabric_discover(struct ibmad_port *port, const struct mad_fabric_options *options,
			struct mad_fabric **fabric);

/**
 * Called once for each discovery. The callback owns the fabric. error is an error of
 * mad_fabric_discover(), and then fabric is NULL, or with mad_fabric_options:partial the part
 * that is known.
 */
typedef void mad_fabric_fn(struct mad_async *async, int error, struct mad_fabric *fabric,
			   void *arg);

/**
 * Starts a discovery on an engine. *id (id may be NULL) is for mad_async_cancel(), also before
 * a request was sent, so options->cancel must be NULL. The options and options->from are
 * copied. If the call fails, done is not called.
 */
int mad_fabric_submit(struct mad_async *async, const struct mad_fabric_options *options,
		      mad_fabric_fn *done, void *arg, uint64_t *id);

/** Frees a fabric; NULL is allowed. */
void mad_fabric_free(struct mad_fabric *fabric);

/* --- comparison --------------------------------------------------------------------- */

enum mad_fabric_change {
	MAD_FABRIC_NODE_ADDED,
	MAD_FABRIC_NODE_REMOVED,
	MAD_FABRIC_NODE_CHANGED, /**< description, type, ports, LID, LMC, SystemImageGUID */
	MAD_FABRIC_LINK_ADDED,
	MAD_FABRIC_LINK_REMOVED,
	MAD_FABRIC_LINK_CHANGED, /**< state, physical state, width, speed or MTU */
	MAD_FABRIC_PORT_CHANGED  /**< the same of a port without a link; LID, LMC, PortGUID */
};

/**
 * A change. before_*: in the first fabric; NULL if it was added. after_*: in the second fabric;
 * NULL if it was removed.
 */
struct mad_fabric_difference {
	enum mad_fabric_change change;
	const struct mad_fabric_node *before_node, *after_node;
	const struct mad_fabric_port *before_port, *after_port; /**< of links: of one end */
};

/** Called for each change. With 0 the comparison continues; any other number ends it. */
typedef int mad_fabric_change_fn(const struct mad_fabric_difference *difference, void *arg);

/**
 * Compares two fabrics, and calls changed() for each change: removals first, a link once. A
 * removal or an addition is reported only if it is certain: not if the node or link may be
 * behind a port that did not respond (mad_fabric_compare(3) has the rules). Returns the number
 * of changes, the number other than 0 that changed() returned, -EINVAL or -ENOMEM. changed may
 * be NULL.
 */
int mad_fabric_compare(const struct mad_fabric *before, const struct mad_fabric *after,
		       mad_fabric_change_fn *changed, void *arg);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_FABRIC_H */
