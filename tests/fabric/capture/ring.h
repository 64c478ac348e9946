/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * MADs on their way from programs to umad-capture: a ring in memory that all of them share.
 *
 * Any thread of any process puts packets in, one at a time: a robust mutex is held while a
 * packet is copied, and the packet counts when it is complete. So a program that is killed in
 * the middle leaves nothing behind that others wait for. A program never waits for
 * umad-capture: what finds no room is counted and left out.
 */
#ifndef UMAD_CAPTURE_RING_H
#define UMAD_CAPTURE_RING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The file of the ring: a path that is valid while umad-capture runs. */
#define ENV_RING          "UMAD_CAPTURE_RING"
/* The descriptor on which the library says that it is there. */
#define ENV_CAPTURE_READY "UMAD_CAPTURE_READY"

#define RING_BYTES ((size_t)16 << 20)

#define HEADER_BYTES 64 /* struct ib_user_mad's header with P_Key index */

/* One MAD; what is of the other side is in the header. */
struct packet_record {
	uint32_t size;   /* of this and the MAD (in the ring: without the MAD's last zeros), a
			    multiple of 8 */
	uint32_t length; /* of the MAD, which follows */
	int64_t seconds; /* CLOCK_REALTIME */
	uint32_t nanoseconds;
	int32_t process, portid, agentid;
	bool sent;       /* false: received */
	uint8_t lmc;     /* of the own port, host order, like the members below */
	uint16_t lid;    /* 0: unknown */
	uint16_t pkey;   /* of the header's P_Key index */
	uint8_t gid[16]; /* of the header's GID index, if there is a GRH */
	uint8_t header[HEADER_BYTES];
};

struct ring {
	uint32_t magic;
	uint64_t capacity;
	pthread_mutex_t lock;      /* of those who put */
	_Atomic uint64_t head;     /* bytes put since the ring was empty */
	_Atomic uint64_t tail;     /* bytes taken since then */
	_Atomic uint64_t left_out; /* packets that found no room */
	_Atomic uint32_t programs; /* that have the library which calls the hook */
	uint8_t data[] __attribute__((aligned(64)));
};

/* Makes a ring in a memory file: its descriptor, or a negative errno. */
int ring_create(struct ring **ring, size_t bytes);

/* Maps the ring of a file. NULL: the file is not there, or is none. */
struct ring *ring_open(const char *path);

void ring_close(struct ring *ring);

/*
 * Puts a packet; its size is computed. A packet without room is left out, and so is one that
 * waits 10 ms for the lock, whose owner was stopped then.
 */
void ring_put(struct ring *ring, struct packet_record *record, const void *mad);

/*
 * Takes the oldest packet, for free(). NULL: there is none, or there is no memory for it. One
 * thread of one process takes.
 */
struct packet_record *ring_take(struct ring *ring);

static inline const uint8_t *record_mad(const struct packet_record *record)
{
	return (const uint8_t *)(record + 1);
}

#endif
