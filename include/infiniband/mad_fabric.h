/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_fabric.h - discovery: the nodes, ports and links of a fabric.
 *
 *   struct mad_fabric *fabric;
 *
 *   if (mad_fabric_discover(port, NULL, &fabric) == 0) {
 *           for (size_t i = 0; i < mad_fabric_node_count(fabric); i++)
 *                   puts(mad_fabric_get_node(fabric, i)->description);
 *           mad_fabric_free(fabric);
 *   }
 *
 * A discovery sends SMPs by directed routes (IBA 14.2.2), as many at once as the fabric
 * accepts. It needs neither LIDs nor a subnet manager. The port must have IB_SMI_DIRECT_CLASS
 * registered.
 *
 * If a node does not respond, the discovery succeeds, and mad_fabric_failure() returns the
 * failure. If responses contradict each other, mad_fabric_oddity() returns the contradiction.
 *
 * Byte order. Numbers are in host order. The images of attributes (node_info, info, ...) are as
 * on the wire, for mad_read_field() and the other readers of mad_fields.h.
 *
 * Memory. mad_fabric_free() frees a fabric. Nodes, ports, failures and oddities belong to their
 * fabric, and are freed with it.
 *
 * Threads. Any number of threads may read a fabric at once.
 *
 * C++. Functions have the names of four structures: mad_fabric_node, mad_fabric_port,
 * mad_fabric_failure, mad_fabric_oddity. C++ needs the word struct before these names:
 *
 *   const struct mad_fabric_node *node = mad_fabric_get_node(fabric, 0);
 *
 * Calls return 0 or more, or a negative errno.
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

struct mad_fabric;

/*
 * The library allocates all structures except struct mad_fabric_options. Later releases may add
 * members at the end of each.
 */

struct mad_fabric_node {
	uint64_t guid;              /**< NodeGUID */
	uint64_t system_guid;       /**< SystemImageGUID */
	const uint8_t *node_info;   /**< NodeInfo, 64 bytes; NULL if it was not read */
	const uint8_t *switch_info; /**< SwitchInfo, 64 bytes; NULL if it was not read */
	uint32_t index;             /**< from 0 to mad_fabric_node_count() - 1 */
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
	 * peer->peer may be another port or NULL (MAD_FABRIC_ODD_PEER).
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
	uint32_t index;           /**< from 0 to mad_fabric_port_count() - 1 */
	uint32_t capability_mask; /**< CapabilityMask: bits MAD_PORT_CAP_* */
	int error; /**< a negative errno: PortInfo could not be read; otherwise 0 */
	/**
	 * A negative errno: NodeInfo of the node behind this port could not be read, see
	 * mad_fabric_failure; otherwise 0. The peer may be known from the other end.
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
};

/** The number of nodes. */
size_t mad_fabric_node_count(const struct mad_fabric *fabric);

/** A node, in the order in which the nodes were found; NULL beyond the last one. */
const struct mad_fabric_node *mad_fabric_get_node(const struct mad_fabric *fabric,
						  size_t index);

/** The number of ports of all nodes, the ports 0 of switches included. */
size_t mad_fabric_port_count(const struct mad_fabric *fabric);

/** A port of a node by its number; NULL if there is none, such as port 0 of a CA. */
const struct mad_fabric_port *mad_fabric_get_port(const struct mad_fabric_node *node,
						  unsigned number);

/**
 * The port that follows a port; after NULL the first port of the first node. NULL after the
 * last one. The ports of a node follow each other; their indexes ascend.
 */
const struct mad_fabric_port *mad_fabric_next_port(const struct mad_fabric *fabric,
						   const struct mad_fabric_port *port);

/** The port where the discovery began: the first node's entry port; NULL if it is not known. */
const struct mad_fabric_port *mad_fabric_origin(const struct mad_fabric *fabric);

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

/**
 * The LID to which requests about a port are sent, for example for its counters: that of a
 * switch's port 0, otherwise the port's own. 0: none, or not of this subnet, see
 * mad_fabric_find_lid(): a request would reach another node.
 */
uint16_t mad_fabric_port_lid(const struct mad_fabric *fabric,
			     const struct mad_fabric_port *port);

/**
 * The first node with this NodeDescription. If after is not NULL, the next such node after it.
 * NULL if there is none.
 */
const struct mad_fabric_node *mad_fabric_find_description(const struct mad_fabric *fabric,
							  const char *description,
							  const struct mad_fabric_node *after);

/* --- failures and contradictions --------------------------------------------------- */

/**
 * A failure. Each known node with failed requests has one entry. Each port with a peer_error
 * has one entry, so that a dead switch has one entry for each cable. If
 * mad_fabric_options:previous has the node that does not respond, one entry is for all ports
 * that lead to the node.
 */
struct mad_fabric_failure {
	/**
	 * The port behind which NodeInfo of a node could not be read; or NULL. The node did not
	 * respond, or its response had an error status (-EIO) or was malformed (-EBADMSG). If
	 * the entry is for several ports, this is the port with the lowest index.
	 */
	const struct mad_fabric_port *behind;
	const struct mad_fabric_node *node; /**< the node with failed requests; or NULL */
	/**
	 * NodeGUID and NodeDescription of that node. With "behind", they are those of the node
	 * that was behind the port in mad_fabric_options:previous, if the request timed out;
	 * otherwise 0 and "".
	 */
	uint64_t guid;
	const char *description;
	/** Of the first request that timed out, or of the first that failed if none timed out.
	 */
	unsigned attribute;
	unsigned modifier; /**< of that request */
	unsigned count;    /**< requests that failed, and requests not sent for this reason */
	int error;         /**< of that request: as mad_reply:error, or -EBADMSG */
	unsigned status;   /**< of its response, if the error is -EIO */
};

size_t mad_fabric_failure_count(const struct mad_fabric *fabric);

/** A failure; NULL beyond the last one. */
const struct mad_fabric_failure *mad_fabric_failure(const struct mad_fabric *fabric,
						    size_t index);

enum mad_fabric_oddity_kind {
	/** two ports respond with different nodes at the other end of their links */
	MAD_FABRIC_ODD_PEER,
	/**
	 * One of these:
	 *   - Two ports have the same PortGUID.
	 *   - One port has two PortGUIDs. The result has the first one.
	 *   - Two nodes have the same NodeGUID. A discovery leaves out the second node;
	 *     mad_fabric_load() does not.
	 *   - Two links lead to one port. The result has the first one.
	 */
	MAD_FABRIC_ODD_GUID,
	/** a node without ports, or a link to a port that its node does not have */
	MAD_FABRIC_ODD_PORT_COUNT,
	/** a node that is neither CA, switch nor router */
	MAD_FABRIC_ODD_NODE_TYPE,
	/** a cable from a node to itself */
	MAD_FABRIC_ODD_LOOP,
	/** two ports have one LID */
	MAD_FABRIC_ODD_LID,
	/** the fabric has nodes beyond 63 hops */
	MAD_FABRIC_ODD_ROUTE_TOO_LONG,
	/** the fabric has more nodes or ports than mad_fabric_options:max_nodes permits */
	MAD_FABRIC_ODD_TOO_MANY,
	/** state, width, speed or MTU differ at the two ends of a link */
	MAD_FABRIC_ODD_LINK
};

struct mad_fabric_oddity {
	enum mad_fabric_oddity_kind kind;
	const struct mad_fabric_port *port;  /**< the port where it was found */
	const struct mad_fabric_port *other; /**< the other port that it concerns, or NULL */
	const struct mad_fabric_node *node;  /**< the node that it concerns */
};

size_t mad_fabric_oddity_count(const struct mad_fabric *fabric);

/** An oddity; NULL beyond the last one. */
const struct mad_fabric_oddity *mad_fabric_oddity(const struct mad_fabric *fabric,
						  size_t index);

/** A kind of oddity in a few English words; "?" for another number. */
const char *mad_fabric_oddity_text(enum mad_fabric_oddity_kind kind);

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
	size_t ports;    /**< of the nodes found */
	size_t failures; /**< requests that failed; not an ExtendedPortInfo that a node lacks */
	size_t requests; /**< submitted so far */
	size_t in_flight; /**< requests that are not complete */
};

typedef void mad_fabric_progress_fn(const struct mad_fabric_progress *progress, void *arg);

/** All members may be 0. */
struct mad_fabric_options {
	/**
	 * Bits of enum mad_fabric_read; 0: MAD_FABRIC_READ_DEFAULT. The discovery follows a
	 * link if PortInfo has the state LinkUp. Without MAD_FABRIC_READ_PORTS, it sends
	 * NodeInfo through each port of each switch. Then a port without a link takes a
	 * timeout, and becomes a failure.
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
	 * (mad_fabric_failure). The new fabric keeps this information for the next discovery.
	 * The previous fabric must not be freed before the discovery is complete.
	 */
	const struct mad_fabric *previous;
	/**
	 * The M_Key of all SMPs, in host order; 0: that of the port when the discovery starts,
	 * see smp_mkey_set(). Nodes with the protection level 2 or 3 do not respond to another
	 * M_Key (IBA 14.2.4).
	 */
	uint64_t m_key;
	/** Cancels the discovery, which ends with -ECANCELED, see mad_cancel_set(); or NULL. */
	const struct mad_cancel *cancel;
	/** The milliseconds after which the discovery ends with -ETIME; 0: no limit. */
	unsigned time_limit_ms;
	/**
	 * If the discovery ends early, it also returns the part of the fabric that is known. In
	 * this part, a port or peer that was not read has the error of the discovery (error,
	 * peer_error), and a failure. So mad_fabric_compare() reports no removal.
	 */
	bool partial;
	uint64_t reserved[4]; /**< 0 */
};

/**
 * Discovers a fabric, and returns when the discovery is complete. *fabric becomes the fabric,
 * which the caller frees by mad_fabric_free(). If the call fails, *fabric is NULL. With
 * mad_fabric_options:partial it is the part that is known, if the first node has responded.
 *
 * The call succeeds if the first node responds. Otherwise it returns the error of that request
 * (as mad_reply:error), or
 * -EINVAL    an argument is wrong
 * -EPROTONOSUPPORT  IB_SMI_DIRECT_CLASS is not registered on the port
 * -EBADMSG   the first node's response is malformed
 * -ENOMEM    out of memory; *fabric is NULL
 * -ENODEV    the device is gone
 * -ENETDOWN  the link of the local port is down; the library reads its PortInfo four
 *            times a second
 * -ETIME     the time of mad_fabric_options:time_limit_ms is over
 * -ECANCELED mad_fabric_options:cancel is set, or the port was closed
 * mad_last_failure_text() returns the error in words.
 */
int mad_fabric_discover(struct ibmad_port *port, const struct mad_fabric_options *options,
			struct mad_fabric **fabric);

struct mad_fabric_discovery;

/**
 * Called once for each discovery. If error is 0, the callback frees the fabric. Otherwise error
 * is an error of mad_fabric_discover(), and fabric is NULL. With mad_fabric_options:partial it
 * may be the part that is known, which the callback frees.
 */
typedef void mad_fabric_fn(struct mad_async *async, int error, struct mad_fabric *fabric,
			   void *arg);

/**
 * Starts a discovery on an engine. The options and options->from are copied. The function done
 * is called from mad_async_process(), mad_async_wait() or mad_async_free().
 *
 * If discovery is not NULL, *discovery becomes a pointer for mad_fabric_discovery_cancel(). The
 * pointer is valid until done is called.
 *
 * If the call fails, done is not called:
 * -EINVAL  an argument is wrong
 * -ENOMEM  out of memory
 * and the errors of mad_async_submit()
 */
int mad_fabric_submit(struct mad_async *async, const struct mad_fabric_options *options,
		      mad_fabric_fn *done, void *arg, struct mad_fabric_discovery **discovery);

/**
 * Cancels a discovery: done is called with -ECANCELED by the next calls of mad_async_process().
 * Call it from a callback of the engine, or from the only thread that processes the engine.
 */
void mad_fabric_discovery_cancel(struct mad_fabric_discovery *discovery);

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
 * Compares two fabrics. Nodes are the same if they have the same NodeGUID, ports if they have
 * the same number, and links if they connect the same ports. First, removed nodes and links are
 * called back, then added and changed ones, both in the order of the nodes. A link is called
 * back once. Attributes that only one of the fabrics has are not compared. If several nodes
 * have the same NodeGUID, the first one is compared.
 *
 * A removal or an addition is called back only if it is certain. A fabric may lack a node or a
 * link because the discovery could not find it:
 *
 * A port with an error or a peer_error is silent. The cables of silent nodes are taken to be as
 * they are in the other fabric: the nodes that such cables connect are not certain. A silent
 * port that has another cable in the other fabric, or none, is unexplored.
 *
 * A port that is LinkUp and has no peer is unexplored: the discovery did not go on (63 hops,
 * max_hops, max_nodes), or the response was of no use. Each node may be behind the port, so no
 * node is certain. The ports of CAs and routers lead to no further node.
 *
 * If two nodes have the same NodeGUID, no link and no change of this NodeGUID is certain. If
 * they are switches, no node is certain. The same holds for a PortGUID that has another
 * NodeGUID in the other fabric.
 *
 * A link is certain if the other fabric shows it: one of its ports has another cable there, or
 * is not LinkUp, or its node is certain. So a link that was cut is called back, although the
 * nodes behind it are not. A fabric of mad_fabric_load() has all nodes and links.
 *
 * Returns the number of changes, or the number other than 0 that changed() returned, or
 * -EINVAL  a fabric is NULL
 * -ENOMEM  out of memory
 * changed may be NULL.
 */
int mad_fabric_compare(const struct mad_fabric *before, const struct mad_fabric *after,
		       mad_fabric_change_fn *changed, void *arg);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_FABRIC_H */
