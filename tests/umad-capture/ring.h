/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A ring in shared memory that carries MADs from the captured programs to umad-capture.
 *
 * Any thread of any process adds packets, one at a time: it holds a robust mutex while copying,
 * and a packet counts only once it is complete. A program killed while copying blocks nobody.
 * Programs never wait for umad-capture: a packet that does not fit is counted and left out.
 */
#ifndef UMAD_CAPTURE_RING_H
#define UMAD_CAPTURE_RING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The path of the ring's file, valid while umad-capture runs. */
#define ENV_RING          "UMAD_CAPTURE_RING"
/* The descriptor on which the library reports that it is loaded. */
#define ENV_CAPTURE_READY "UMAD_CAPTURE_READY"

#define RING_BYTES ((size_t)16 << 20)

#define HEADER_BYTES 64 /* struct ib_user_mad's header with P_Key index */

/* One MAD. The header has the other side's addresses. */
struct packet_record {
	uint32_t size;   /* of this structure and the MAD (in the ring: without the MAD's last
			  * zeros), a multiple of 8 */
	uint32_t length; /* of the MAD, which follows the structure */
	int64_t seconds; /* CLOCK_REALTIME */
	uint32_t nanoseconds;
	int32_t process, portid, agentid;
	bool sent;       /* false: received */
	uint8_t lmc;     /* of the own port; host order, as in the members below */
	uint16_t lid;    /* 0: unknown */
	uint16_t pkey;   /* the P_Key at the header's P_Key index */
	uint8_t gid[16]; /* the GID at the header's GID index, if the header has a GRH */
	uint8_t header[HEADER_BYTES];
};

struct ring {
	uint32_t magic;
	uint64_t capacity;
	pthread_mutex_t lock;      /* held while adding packets */
	_Atomic uint64_t head;     /* bytes added since the ring was empty */
	_Atomic uint64_t tail;     /* bytes taken since the ring was empty */
	_Atomic uint64_t left_out; /* packets that did not fit */
	_Atomic uint32_t programs; /* programs whose libibumad calls the hook */
	uint8_t data[] __attribute__((aligned(64)));
};

/* Creates a ring in a memory file. Returns its descriptor, or a negative errno. */
int ring_create(struct ring **ring, size_t bytes);

/* Maps the ring in a file. NULL if the file does not exist or is not a ring. */
struct ring *ring_open(const char *path);

void ring_close(struct ring *ring);

/* Adds a packet; computes its size. Leaves it out if it does not fit, or if the lock cannot be
 * taken within 10 ms (its owner was stopped). */
void ring_put(struct ring *ring, struct packet_record *record, const void *mad);

/* Takes the oldest packet, which the caller frees. NULL if the ring is empty, or on OOM. Only
 * one thread of one process may take packets. */
struct packet_record *ring_take(struct ring *ring);

static inline const uint8_t *record_mad(const struct packet_record *record)
{
	return (const uint8_t *)(record + 1);
}

#endif
