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

/* A message for an agent: a MAD, a reassembled RMPP message, or one of the agent's own requests
 * that timed out. */
struct message {
	struct message *next;
	struct ib_user_mad_hdr
		header; /* in the P_Key layout; its `length` does not include the header */
	size_t length;
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
	uint32_t tid_high; /* upper half of its requests' TIDs */
	struct reassembly *reassemblies;
	size_t *reassembled; /* bytes in the owner's reassemblies; NULL: not counted */
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
	struct issm *issm;            /* issm.h: who holds it, and who waits for it */
	struct kernel_device *kernel; /* server.h; NULL: the kernel is simulated, too */
	/* gives the real kernel a packet that no agent receives; false: not for the kernel
	 * either */
	bool (*to_kernel)(struct host_port *host, const struct packet *packet);
};

struct hosts {
	struct host_port **by_port; /* by port index */
	struct send *table[16384];  /* sends in flight, by TID */
	uint32_t next_tid_high;
};

/* Makes agents on the end ports receive packets (sets fabric->to_programs). Returns 0 or
 * -ENOMEM. */
int hosts_init(struct fabric *fabric);
void hosts_free(struct fabric *fabric);

/* Returns an end port's kernel, allocated on first use; NULL on OOM. */
struct host_port *host_at(struct fabric *fabric, uint32_t port);

/* Registers an agent; the caller sets its id, owner and functions. Returns 0; -EINVAL: invalid
 * rules, or another agent already serves one of the methods; -EPROTONOSUPPORT; -ENOMEM. */
int agent_register(struct fabric *fabric, struct host_port *host,
		   const struct agent_rules *rules, struct agent **agent);

/* Unregisters an agent and silently drops its sends in flight. */
void agent_unregister(struct fabric *fabric, struct agent *agent);

/* Returns the agent that receives a packet, or NULL. */
struct agent *agent_for(const struct host_port *host, const uint8_t *mad);

/*
 * Sends a message from an agent: header (P_Key layout, network order where the kernel has it)
 * and `length` bytes of MAD. Returns 0, -EINVAL or -ENOMEM. A response of several segments
 * fails with -EINVAL while the agent is sending another one with the same TID to the same
 * destination.
 */
int host_send(struct fabric *fabric, struct agent *agent, const struct ib_user_mad_hdr *header,
	      const uint8_t *mad, size_t length);

/* --- internal to this folder -------------------------------------------------------- */

struct send {
	struct timer timer;
	struct send *next; /* in the table's chain */
	struct agent *agent;
	struct ib_user_mad_hdr header;
	struct packet packet; /* addresses; the whole MAD or the current segment */
	uint64_t tid;
	uint8_t *data; /* the whole RMPP message */
	size_t length;
	uint32_t retries;  /* retries left */
	uint32_t segments; /* 0: not RMPP */
	uint32_t acknowledged;
	uint32_t window_end; /* last segment that the receiver's window allows */
	uint32_t sent;
	bool expects_reply;
	bool in_flight; /* counts towards its host's path limit */
};

/* Finds an agent's send in flight; with a NULL agent, a request of any agent. */
struct send *send_find(const struct fabric *fabric, const struct agent *agent, uint64_t tid,
		       uint8_t class);
/* Finds the RMPP message that an agent is sending and that a packet from its destination refers
 * to. */
struct send *rmpp_find(const struct fabric *fabric, const struct agent *agent,
		       const struct packet *packet);
void send_finish(struct fabric *fabric, struct send *send);
void send_start_timer(struct fabric *fabric, struct send *send, uint64_t milliseconds);

/*
 * Sends the packet of a non-RMPP message. The rule path-limit caps how many requests that
 * expect a response a host has in flight; those beyond the cap are dropped. A request counts
 * until its response arrives, it or its response is lost, or the kernel times it out.
 */
void path_send(struct fabric *fabric, struct send *send);
void path_leave(struct fabric *fabric, struct send *send);
void path_lost(struct fabric *fabric, const struct packet *packet); /* fabric->lost */

/* Sends the segments after the last acknowledged one, as far as the window allows. */
void rmpp_send_window(struct fabric *fabric, struct send *send);

/* Handles an ACK, STOP or ABORT for a message that an agent is sending. */
void rmpp_receive_control(struct fabric *fabric, struct agent *agent,
			  const struct packet *packet);

/* Handles a packet for an agent whose RMPP the kernel does. Returns the message once it is
 * complete; NULL for other segments and control packets. */
struct message *rmpp_receive(struct fabric *fabric, struct agent *agent,
			     const struct packet *packet);
void rmpp_forget(struct fabric *fabric, struct agent *agent);

/* Creates a message with the packet's addresses; NULL on OOM. */
struct message *message_from(const struct fabric *fabric, const struct agent *agent,
			     const struct packet *packet, const uint8_t *data, size_t length);

#endif
