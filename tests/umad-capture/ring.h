/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A ring in shared memory that carries MADs from the captured programs to umad-capture.
 *
 * Any thread of any process adds packets, one at a time: a robust mutex is held while a packet
 * is copied, and the packet counts only when it is complete. A program that is killed while it
 * copies blocks nobody. A program never waits for umad-capture: a packet that does not fit is
 * counted and left out.
 */
#ifndef UMAD_CAPTURE_RING_H
#define UMAD_CAPTURE_RING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The path of the ring's file. It is valid while umad-capture runs. */
#define ENV_RING          "UMAD_CAPTURE_RING"
/* The descriptor on which the library reports that it is loaded. */
#define ENV_CAPTURE_READY "UMAD_CAPTURE_READY"

#define RING_BYTES ((size_t)16 << 20)

#define HEADER_BYTES 64 /* struct ib_user_mad's header with P_Key index */

/* One MAD. The header has the addresses of the other side. */
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
	pthread_mutex_t lock;      /* for adding packets */
	_Atomic uint64_t head;     /* bytes added since the ring was empty */
	_Atomic uint64_t tail;     /* bytes taken since the ring was empty */
	_Atomic uint64_t left_out; /* packets that did not fit */
	_Atomic uint32_t programs; /* programs with a libibumad that calls the hook */
	uint8_t data[] __attribute__((aligned(64)));
};

/* Makes a ring in a memory file. Returns the file's descriptor, or a negative errno. */
int ring_create(struct ring **ring, size_t bytes);

/* Maps the ring of a file. NULL: the file does not exist, or is no ring. */
struct ring *ring_open(const char *path);

void ring_close(struct ring *ring);

/* Adds a packet; its size is computed. The packet is left out if it does not fit, or if the
 * lock is not available for 10 ms (its owner was stopped). */
void ring_put(struct ring *ring, struct packet_record *record, const void *mad);

/* Takes the oldest packet, to be freed by the caller. NULL: the ring is empty, or there is no
 * memory. Only one thread of one process may take packets. */
struct packet_record *ring_take(struct ring *ring);

static inline const uint8_t *record_mad(const struct packet_record *record)
{
	return (const uint8_t *)(record + 1);
}

#endif
