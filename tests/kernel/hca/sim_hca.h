/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */

/*
 * An HCA for management: an InfiniBand device whose ports have QP0 and QP1, and no other queue
 * pair. Its wire is a file of /dev/sim_hca that a process has open.
 *
 * One spin lock guards the queues of an HCA: packets and commands for the process, work
 * requests, completions. It is the innermost lock. The completion handler of a CQ is called
 * with it held: those of the core (ib_alloc_cq()) only schedule the work.
 */
#ifndef SIM_HCA_H
#define SIM_HCA_H

#include <linux/completion.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_smi.h>
#include <rdma/ib_verbs.h>

#include "compat.h"
#include "hca_protocol.h"

#define MOST_PORTS       16
#define PATIENCE         (2 * HZ) /* the process replies and reads within this time */
#define MOST_WORK        4096     /* work requests of a queue */
#define MOST_COMPLETIONS (8 * MOST_WORK)

/* What a port counts: rdma statistic's hw_counters. */
enum count {
	COUNT_SENT,          /* packets that the process read */
	COUNT_SENDS_DROPPED, /* not read in time */
	COUNT_RECEIVED,      /* packets that reached a queue pair */
	COUNT_MALFORMED,     /* wrong length or header */
	COUNT_WRONG_QP,      /* no queue pair, or none that receives */
	COUNT_WRONG_QKEY,
	COUNT_NO_BUFFER, /* no work request in the receive queue */
	COUNT_COMMANDS,
	COUNT_COMMANDS_FAILED, /* no reply in time, or an error */
	COUNT_EVENTS,
	COUNTS
};

struct hca;

struct item { /* in the list of messages for the process */
	struct list_head list;
	struct sim_hca_message message;
	const void *payload; /* message.length bytes */
};

struct command {
	struct item item;
	struct list_head list; /* those without a reply */
	struct sim_hca_command request;
	struct sim_hca_reply reply;
	struct completion done;
	bool replied;
};

struct completion_queue {
	struct ib_cq ib;
	struct ib_wc *ring;
	u32 size, first, count;
	bool armed;
};

struct send { /* a work request, until its packet is read */
	struct item item;
	struct list_head free;
	struct queue_pair *qp;
	struct ib_cqe *cqe;
	unsigned long posted; /* jiffies */
	bool signaled;
	u8 packet[SIM_HCA_PACKET_LONGEST];
};

struct receive {
	struct ib_cqe *cqe;
	u8 *buffer;
	u32 length;
};

struct queue_pair {
	struct ib_qp ib;
	struct ib_qp_init_attr init;
	struct ib_qp_attr attributes;
	enum ib_qp_state state;
	u32 number; /* 0 or 1 */
	u32 port;
	struct send *sends;
	struct list_head free_sends;
	struct receive *receives;
	u32 first, count; /* of the receives */
};

struct address {
	struct ib_ah ib;
	u32 port;
	u16 dlid;
	u8 path_bits;
	u8 sl;
	bool grh;
	u8 hop_limit;
	u8 traffic_class;
	u8 sgid_index;
	u32 flow_label;
	union ib_gid sgid, dgid;
};

struct port {
	struct queue_pair *qps[2]; /* QP0 and QP1 */
	atomic64_t counts[COUNTS];
};

struct wire { /* an open file */
	spinlock_t lock;
	struct list_head items;    /* for the process */
	struct list_head commands; /* without a reply */
	wait_queue_head_t readable;
	struct mutex reading; /* guards `buffer` */
	struct mutex creating;
	u8 *buffer;
	bool dead;    /* the process closes the file */
	bool stalled; /* a command timed out: others fail at once, until the process reads, or
		       */
	unsigned long retry_at; /* until this time (jiffies) */
	u32 next_id;
	struct delayed_work watch;
	struct work_struct registering;
	struct item created;
	bool registered;
	struct hca *hca; /* NULL: none yet */
};

struct hca {
	struct ib_device ib;
	struct wire *wire;
	struct sim_hca_create create;
	struct device *adapter;
	u32 pkey_count;
	struct port ports[MOST_PORTS + 1]; /* counted from 1 */
};

static inline struct hca *hca_of(struct ib_device *device)
{
	return container_of(device, struct hca, ib);
}

static inline struct wire *wire_of(struct ib_device *device)
{
	return hca_of(device)->wire;
}

static inline struct queue_pair *qp_of(struct ib_qp *qp)
{
	return container_of(qp, struct queue_pair, ib);
}

static inline struct address *address_of(struct ib_ah *ah)
{
	return container_of(ah, struct address, ib);
}

static inline void count(struct hca *hca, u32 port, enum count what)
{
	atomic64_inc(&hca->ports[port].counts[what]);
}

/* --- wire.c: messages ------------------------------------------------------------ */

/* Lets the process perform a command and reply. 0, or a negative errno: -ETIMEDOUT; -ENODEV:
 * the process is gone. Sleeps. */
int command_perform(struct hca *hca, u32 port, struct command *command);

/* Puts a packet into the list of messages; with the lock held. */
void wire_send(struct wire *wire, struct send *send);

extern const struct file_operations wire_operations;

/* --- packet.c: headers ----------------------------------------------------------- */

struct arrived {       /* a packet, parsed; its pointers point into the packet */
	const u8 *grh; /* 40 bytes, or NULL */
	const u8 *mad;
	u32 qp, source_qp;
	u32 qkey;
	u16 dlid, slid;
	u16 pkey;
	u8 sl;
};

/* Writes a packet up to its MAD. Returns the offset of the MAD. */
u32 packet_build(u8 *packet, const struct address *address, u32 source_qp, u32 qp, u32 qkey,
		 u16 pkey);

/* False: the packet is malformed. */
bool packet_parse(const u8 *packet, u32 length, struct arrived *arrived);

/* --- queues.c: queue pairs and completions --------------------------------------- */

extern const struct ib_device_ops queue_operations;

/* With the lock held: a completion; all posted receives complete with an error. */
void queue_complete(struct ib_cq *cq, const struct ib_wc *wc);
void queue_flush_receives(struct queue_pair *qp);

/* --- post.c: work requests --- */

int queue_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad);
int queue_post_receive(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad);

/* A packet reached a port. */
void queues_receive(struct hca *hca, u32 port, const u8 *packet, u32 length);

/* With the lock held: the packet of a work request is read, or will not be sent. */
void queues_sent(struct send *send, enum ib_wc_status status);

/* --- mads.c: the agents of the adapter ------------------------------------------- */

int hca_process_mad(struct ib_device *device, int flags, u32 port, const struct ib_wc *wc,
		    const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out,
		    size_t *out_size, u16 *out_pkey_index);

/* Reads an attribute of the own node by an SMP. 0 or a negative errno. */
int hca_get(struct hca *hca, u32 port, __be16 attribute, u32 modifier,
	    u8 data[IB_SMP_DATA_SIZE]);

/* --- device.c -------------------------------------------------------------------- */

/* Allocates the device. It is registered by wire->registering. 0 or a negative errno. */
int hca_create(struct wire *wire, const struct sim_hca_create *create);
int hca_register(struct hca *hca);
void hca_unregister(struct hca *hca);

void hca_event(struct hca *hca, u32 port, u32 event);

#endif
