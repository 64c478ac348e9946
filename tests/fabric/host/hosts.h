/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The kernel's side of MADs on the ports that programs (or the built-in subnet administration)
 * use: agents and whom a MAD is for, requests under way with their time-outs and retries, RMPP.
 * It does what the kernel's ib_mad and ib_umad do (Documentation/infiniband/user_mad.rst).
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

/* A message for an agent: a whole MAD or all of an RMPP message's, or its own request
 * unanswered. */
struct message {
	struct message *next;
	struct ib_user_mad_hdr
		header; /* as the P_Key layout has it, with `length` without header */
	size_t length;  /* of data */
	uint8_t data[];
};

struct agent_rules { /* what an agent asks for when it registers */
	uint8_t class;
	uint8_t class_version;
	uint8_t rmpp_version;
	bool user_rmpp;
	bool is_server; /* takes requests of the methods below */
	uint32_t oui;
	uint8_t qp;
	uint64_t methods[METHODS / 64];
};

struct agent {
	struct agent *next; /* of its port */
	struct host_port *host;
	struct agent_rules rules;
	uint32_t id;       /* its owner's number for it */
	uint32_t tid_high; /* upper half of its requests' transaction ids */
	struct reassembly *reassemblies;
	size_t *reassembled; /* bytes of all of its owner's reassemblies; NULL: not counted */
	void *owner;
	/* the message becomes the owner's */
	void (*deliver)(struct agent *agent, struct message *message);
	/* a request is no longer under way: answered, timed out, cancelled */
	void (*complete)(struct agent *agent, uint64_t tid, uint8_t class);
};

struct host_port { /* an end port that somebody uses */
	uint32_t port;
	bool present; /* false: its device was taken away */
	struct agent *agents;
	struct handle *handles; /* umad.h: those that are open */
	struct issm *issm;      /* issm.h: who holds it, and who waits */
};

struct hosts {
	struct host_port **by_port; /* by port index */
	struct send *table[16384];  /* sends under way, by transaction */
	uint32_t next_tid_high;
};

/* Agents on the fabric's end ports take packets from now on (fabric->to_programs). 0 or
 * -ENOMEM. */
int hosts_init(struct fabric *fabric);
void hosts_free(struct fabric *fabric);

/* The kernel's side of an end port, made when it is first asked for; NULL without memory. */
struct host_port *host_at(struct fabric *fabric, uint32_t port);

/*
 * Registers an agent. 0; -EINVAL: rules that make no sense, or a method that somebody serves
 * already; -EPROTONOSUPPORT; -ENOMEM. The agent's id, owner and functions are the caller's to
 * set.
 */
int agent_register(struct fabric *fabric, struct host_port *host,
		   const struct agent_rules *rules, struct agent **agent);

/* Unregisters it and drops without a word what it has under way. */
void agent_unregister(struct fabric *fabric, struct agent *agent);

/* The agent that a packet is for, or NULL. */
struct agent *agent_for(const struct host_port *host, const uint8_t *mad);

/*
 * Sends what an agent wrote: header (P_Key layout, network order where the kernel has it) and
 * `length` bytes of MAD. 0 or a negative errno: -EINVAL, -ENOMEM. A response of several
 * segments fails with -EINVAL while another response with its transaction id is being sent to
 * the same destination.
 */
int host_send(struct fabric *fabric, struct agent *agent, const struct ib_user_mad_hdr *header,
	      const uint8_t *mad, size_t length);

/* --- between the files of this folder ------------------------------------------- */

struct send {
	struct timer timer;
	struct send *next; /* in the table's chain */
	struct agent *agent;
	struct ib_user_mad_hdr header;
	struct packet packet; /* addresses; the MAD as it is sent, or a segment */
	uint64_t tid;
	uint8_t *data; /* of an RMPP message: all of it */
	size_t length;
	uint32_t retries;  /* left */
	uint32_t segments; /* 0: not RMPP */
	uint32_t acknowledged;
	uint32_t window_end; /* the last segment that the receiver allows */
	uint32_t sent;
	bool expects_reply;
	bool in_flight; /* it counts towards its host's limit */
};

/* What an agent has under way; NULL for the agent: a request, whoever sent it. */
struct send *send_find(const struct fabric *fabric, const struct agent *agent, uint64_t tid,
		       uint8_t class);
/* An RMPP message that an agent sends: the one that a packet from its destination is about. */
struct send *rmpp_find(const struct fabric *fabric, const struct agent *agent,
		       const struct packet *packet);
void send_finish(struct fabric *fabric, struct send *send);
void send_start_timer(struct fabric *fabric, struct send *send, uint64_t milliseconds);

/*
 * Sends the packet of what is no RMPP message. Of a host's requests that wait for a response so
 * many are in flight as a rule says (path-limit); one beyond is dropped. A request is in flight
 * until its response came, until it or its response was lost, or until the kernel gives it up.
 */
void path_send(struct fabric *fabric, struct send *send);
void path_leave(struct fabric *fabric, struct send *send);
void path_lost(struct fabric *fabric, const struct packet *packet); /* fabric->lost */

/* Sends as many segments as the window allows, after the last one acknowledged. */
void rmpp_send_window(struct fabric *fabric, struct send *send);

/* An ACK, STOP or ABORT for what an agent sends. */
void rmpp_receive_control(struct fabric *fabric, struct agent *agent,
			  const struct packet *packet);

/*
 * A packet of an agent that has the kernel do RMPP: the whole message once it is complete, else
 * NULL: it was a segment, or control.
 */
struct message *rmpp_receive(struct fabric *fabric, struct agent *agent,
			     const struct packet *packet);
void rmpp_forget(struct fabric *fabric, struct agent *agent);

/* A message with the addresses of the packet; NULL without memory. */
struct message *message_from(const struct fabric *fabric, const struct agent *agent,
			     const struct packet *packet, const uint8_t *data, size_t length);

#endif
