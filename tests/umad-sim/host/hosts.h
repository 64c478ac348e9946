/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The kernel's part of sending and receiving MADs on the ports that programs (or the built-in
 * SA) use: agents and the dispatch of MADs to them, requests in flight with their timeouts and
 * retries, RMPP. It behaves like the kernel's ib_mad and ib_umad
 * (Documentation/infiniband/user_mad.rst).
 */
#ifndef FABRIC_HOSTS_H
#define FABRIC_HOSTS_H

#include "classes.h"
#include "kernel_abi.h"
#include "rmpp.h"
#include "timers.h"
#include "wire.h"

#define METHODS     128
#define DEFAULT_OUI 0x001405

struct agent;
struct send;
struct reassembly;

/* A message for an agent: a whole MAD, all data of an RMPP message, or a request of the
 * agent's that timed out. */
struct message {
	struct message *next;
	struct ib_user_mad_hdr
		header; /* in the P_Key layout; its `length` does not include the header */
	size_t length;  /* of data */
	uint8_t data[];
};

struct agent_rules { /* what an agent registers */
	uint8_t class;
	uint8_t class_version;
	uint8_t rmpp_version;
	bool user_rmpp;
	bool is_server; /* receives requests of the methods below */
	uint32_t oui;
	uint8_t qp;
	uint64_t methods[METHODS / 64];
};

struct agent {
	struct agent *next; /* on the same port */
	struct host_port *host;
	struct agent_rules rules;
	uint32_t id;       /* the owner's number for the agent */
	uint32_t tid_high; /* upper half of the transaction IDs of its requests */
	struct reassembly *reassemblies;
	size_t *reassembled; /* bytes of all reassemblies of the owner; NULL: not counted */
	void *owner;
	/* passes the message to the owner, who frees it */
	void (*deliver)(struct agent *agent, struct message *message);
	/* a request is completed: response, timeout or cancel */
	void (*complete)(struct agent *agent, uint64_t tid, uint8_t class);
};

struct host_port { /* an end port that programs or the SA use */
	uint32_t port;
	bool present; /* false: its device was removed */
	struct agent *agents;
	struct handle *handles;       /* umad.h: the open ones */
	struct issm *issm;            /* issm.h: its holder, and who waits for it */
	struct kernel_device *kernel; /* server.h; NULL: it is simulated, too */
	/* passes a packet that is for no agent to the real kernel; false: it is not for it */
	bool (*to_kernel)(struct host_port *host, const struct packet *packet);
};

struct hosts {
	struct host_port **by_port; /* by port index */
	struct send *table[16384];  /* sends in flight, by transaction */
	uint32_t next_tid_high;
};

/* From now on, agents on the fabric's end ports receive packets (fabric->to_programs). 0 or
 * -ENOMEM. */
int hosts_init(struct fabric *fabric);
void hosts_free(struct fabric *fabric);

/* The kernel of an end port, allocated when first needed; NULL without memory. */
struct host_port *host_at(struct fabric *fabric, uint32_t port);

/* Registers an agent. 0; -EINVAL: the rules are invalid, or another agent serves one of the
 * methods; -EPROTONOSUPPORT; -ENOMEM. The caller sets the agent's id, owner and functions. */
int agent_register(struct fabric *fabric, struct host_port *host,
		   const struct agent_rules *rules, struct agent **agent);

/* Unregisters an agent and drops what it has in flight, without a report. */
void agent_unregister(struct fabric *fabric, struct agent *agent);

/* The agent that receives a packet, or NULL. */
struct agent *agent_for(const struct host_port *host, const uint8_t *mad);

/*
 * Sends a message that an agent wrote: header (P_Key layout, network order where the kernel
 * has it) and `length` bytes of MAD. 0 or a negative errno: -EINVAL, -ENOMEM. A response of
 * several segments fails with -EINVAL while another response with its transaction ID is being
 * sent to the same destination.
 */
int host_send(struct fabric *fabric, struct agent *agent, const struct ib_user_mad_hdr *header,
	      const uint8_t *mad, size_t length);

/* --- internal to this folder -------------------------------------------------------- */

struct send {
	struct timer timer;
	struct send *next; /* in the table's chain */
	struct agent *agent;
	struct ib_user_mad_hdr header;
	struct packet packet; /* the addresses; the whole MAD, or its current segment */
	uint64_t tid;
	uint8_t *data; /* the whole RMPP message */
	size_t length;
	uint32_t retries;  /* retries that are left */
	uint32_t segments; /* 0: not RMPP */
	uint32_t acknowledged;
	uint32_t window_end; /* the last segment that the receiver's window allows */
	uint32_t sent;
	bool expects_reply;
	bool in_flight; /* it counts towards the path limit of its host */
};

/* A send of the agent that is in flight. If the agent is NULL: a request of any agent. */
struct send *send_find(const struct fabric *fabric, const struct agent *agent, uint64_t tid,
		       uint8_t class);
/* The RMPP message that an agent sends and that a packet from its destination refers to. */
struct send *rmpp_find(const struct fabric *fabric, const struct agent *agent,
		       const struct packet *packet);
void send_finish(struct fabric *fabric, struct send *send);
void send_start_timer(struct fabric *fabric, struct send *send, uint64_t milliseconds);

/*
 * Sends the packet of a message without RMPP. The rule path-limit limits how many requests of
 * a host that expect a response are in flight; a request beyond the limit is dropped. A
 * request is in flight until its response arrives, until the request or the response is lost,
 * or until the kernel times it out.
 */
void path_send(struct fabric *fabric, struct send *send);
void path_leave(struct fabric *fabric, struct send *send);
void path_lost(struct fabric *fabric, const struct packet *packet); /* fabric->lost */

/* Sends the segments that the window allows, from the last acknowledged one on. */
void rmpp_send_window(struct fabric *fabric, struct send *send);

/* Handles an ACK, STOP or ABORT for a message that an agent sends. */
void rmpp_receive_control(struct fabric *fabric, struct agent *agent,
			  const struct packet *packet);

/* Handles a packet for an agent whose RMPP the kernel does. Returns the whole message when it
 * is complete, or NULL for a segment or a control packet. */
struct message *rmpp_receive(struct fabric *fabric, struct agent *agent,
			     const struct packet *packet);
void rmpp_forget(struct fabric *fabric, struct agent *agent);

/* A message with the addresses of the packet; NULL without memory. */
struct message *message_from(const struct fabric *fabric, const struct agent *agent,
			     const struct packet *packet, const uint8_t *data, size_t length);

#endif
