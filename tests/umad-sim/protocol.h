/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The protocol between programs and the fabric. A umad or issm handle is a SOCK_SEQPACKET
 * connection to the fabric's socket. It begins with a request and its reply; then each packet
 * carries the data of one write() or read() on the device. All other requests use a connection
 * each.
 *
 * A message longer than LONGEST_PACKET is sent as a packet with its beginning (header and one
 * MAD) and the descriptor of a memory file with the whole message.
 */
#ifndef UMAD_SIM_PROTOCOL_H
#define UMAD_SIM_PROTOCOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define PROTOCOL_MAGIC  0x75736d36 /* changes with every change below */
#define SOCKET_NAME     "socket"   /* in the fabric's folder */
#define LIBRARY_NAME    "libumad-sim.so"
#define LONGEST_PACKET  4096
#define LONGEST_TEXT    3072
#define LONGEST_MESSAGE (64UL * 1024 * 1024 + LONGEST_PACKET) /* 64 MiB and headers */
#define ARGUMENT_BYTES  64 /* of an ioctl: the largest argument has 40 */

/* What umad-sim puts into a program's environment. */
#define ENV_FOLDER "UMAD_SIM_FOLDER" /* the fabric's folder */
#define ENV_VIEW   "UMAD_SIM_VIEW"   /* the program's view: N of folder view-N */
#define ENV_READY                                                                     \
	"UMAD_SIM_READY" /* the socket on which the library reports that it is loaded \
			    (ready.h) */

/* The open devices that a program hands over at exec():
 * "descriptor:kind:number:flags:handle,...". */
#define ENV_HANDLES "UMAD_SIM_HANDLES"

/* Marks a sysfs file of the view, in its mode, for the library, which shows the kernel's size
 * and mode instead. */
#define SYSFS_FILE       01000 /* S_ISVTX, which has no effect on files */
#define SYSFS_FILE_BYTES 4096

#define UEVENTS_LOST  1
#define UEVENTS_JOIN  '+'
#define UEVENTS_LEAVE '-'

#define HEADER_BYTES      64 /* struct ib_user_mad's header with P_Key index */
#define OLD_HEADER_BYTES  56 /* without P_Key index */
#define SINGLE_MAD_BYTES  256
#define AGENTS_PER_HANDLE 32

/* Space for a descriptor sent with a packet (unix(7), SCM_RIGHTS). */
union passed_fd {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

enum request_kind {
	REQUEST_ATTACH = 1, /* text: nodes; reply: the view's number */
	REQUEST_OPEN_UMAD,  /* view, number; the connection becomes the handle */
	REQUEST_OPEN_ISSM,  /* a packet follows the reply, so that poll() reports the device as
			       ready */
	REQUEST_SHARE,      /* handle; the reply has the descriptor of struct shared */
	REQUEST_IOCTL,      /* handle, code, argument */
	REQUEST_REFRESH,    /* view; sent before a program reads the files of counters */
	REQUEST_COMMAND,    /* text: a rule (fault_rules.h) or a query; reply: text, or the
			       descriptor of a file with it */
	REQUEST_OWN,        /* the fabric ends when this connection does */
	REQUEST_UEVENTS, /* view; the connection becomes a socket for the uevents of the view's
			    devices: one packet each, and a packet of UEVENTS_LOST bytes if some
			    were lost. The program sends a byte to join or leave the kernel's
			    group */
	REQUEST_BEGIN    /* the program begins, and with it the times of rules with "after" */
};

struct request {
	uint32_t magic;
	uint32_t kind;
	uint32_t view;
	uint32_t number;   /* N of umadN, issmN */
	uint32_t nonblock; /* issm: do not wait */
	uint32_t code;     /* ioctl */
	uint64_t handle;
	uint8_t argument[ARGUMENT_BYTES];
	char text[]; /* the rest of the packet, not NUL-terminated */
};

struct reply {
	int32_t error; /* 0 or a negative errno */
	uint32_t view;
	uint64_t handle; /* identifies the handle in ioctls; the reply has a descriptor of
			  * struct shared */
	uint8_t argument[ARGUMENT_BYTES];
	char text[];
};

#define BUCKETS     8192
#define BUCKET_KEYS 8

/* State that write() needs to fail at once, as in the kernel; shared between the fabric and the
 * processes that hold the handle. */
struct shared {
	_Atomic uint32_t gone;        /* the device was removed */
	_Atomic uint32_t pkey_layout; /* headers have HEADER_BYTES bytes */
	_Atomic uint32_t used;        /* an agent was registered: the layout stays */
	_Atomic uint32_t smi_port;    /* where directed routes begin; 0: any port of a switch */
	/* by agent id; 0: not registered; AGENT_REGISTERED, and AGENT_RMPP if the kernel does
	 * RMPP */
	_Atomic uint32_t agents[AGENTS_PER_HANDLE];
	/* transactions in flight, as transaction_key(): each is in one of two buckets */
	_Atomic uint64_t transactions[BUCKETS * BUCKET_KEYS];
};

enum {
	AGENT_REGISTERED = 1,
	AGENT_RMPP = 2
};

static inline uint64_t transaction_key(uint32_t agent, uint8_t class, uint32_t tid)
{
	return 1ULL << 63 | (uint64_t)agent << 40 | (uint64_t) class << 32 | tid;
}

static inline uint64_t transaction_hash(uint64_t key)
{
	key *= 0x9e3779b97f4a7c15ULL;
	return key ^ key >> 29;
}

static inline _Atomic uint64_t *transaction_bucket(struct shared *shared, uint64_t key,
						   unsigned int choice)
{
	uint64_t hash = transaction_hash(key);

	return &shared->transactions[(choice ? hash >> 32 : hash) % BUCKETS * BUCKET_KEYS];
}

/*
 * Enters a transaction; false if it is already there. Uses the bucket with fewer entries. If
 * both are full, which takes tens of thousands of transactions, does not enter it: a second one
 * with the same TID is then not refused.
 */
static inline bool transaction_enter(struct shared *shared, uint64_t key)
{
	for (;;) {
		_Atomic uint64_t *free_slot[2] = {0};
		unsigned int taken[2] = {0};
		uint64_t expected = 0;
		unsigned int choice;

		for (unsigned int i = 0; i < 2 * BUCKET_KEYS; i++) {
			unsigned int bucket = i / BUCKET_KEYS;
			_Atomic uint64_t *slot =
				transaction_bucket(shared, key, bucket) + i % BUCKET_KEYS;
			uint64_t found = atomic_load(slot);

			if (found == key)
				return false;
			if (found)
				taken[bucket]++;
			else if (!free_slot[bucket])
				free_slot[bucket] = slot;
		}
		choice = taken[1] < taken[0];
		if (!free_slot[choice])
			return true;
		if (atomic_compare_exchange_strong(free_slot[choice], &expected, key))
			return true; /* else another thread was faster: try again */
	}
}

static inline void transaction_leave(struct shared *shared, uint64_t key)
{
	for (unsigned int i = 0; i < 2 * BUCKET_KEYS; i++) {
		uint64_t expected = key;

		if (atomic_compare_exchange_strong(
			    transaction_bucket(shared, key, i / BUCKET_KEYS) + i % BUCKET_KEYS,
			    &expected, 0))
			return;
	}
}

/*
 * The checks of write() on a umad device, in the order of the kernel's user_mad.c. The packet
 * has `count` bytes, of which the first HEADER_BYTES + SINGLE_MAD_BYTES are read. Returns 0 or
 * a negative errno.
 */
int check_write(const struct shared *shared, const uint8_t *packet, uint64_t count);

/* The key of a packet's transaction, a duplicate of which the kernel refuses while it is in
 * flight; 0 if it would not: the packet is no request, or the program does RMPP itself. */
uint64_t transaction_of(const struct shared *shared, const uint8_t *packet);

#endif
