/* SPDX-License-Identifier: BSD-2-Clause */

/* The smaller general services agents of every node, and what all agents on QP1 share. */
#ifndef FABRIC_GMP_AGENTS_H
#define FABRIC_GMP_AGENTS_H

#include <stddef.h>

#include "query.h"

/* They answer a MAD in its place; false: no answer is due. */
bool congestion_answer(struct query *query); /* class 0x21 (IBA A10.4) */
bool baseboard_answer(struct query *query);  /* class 0x05 (IBA 16.2) */
bool vendor_answer(struct query *query);     /* classes 0x09-0x0f, 0x30-0x4f (IBA 16.5) */

/*
 * What was set on nodes: bytes, by what a GMP names them with. There is a limit to all of it
 * together, so that no client can use up the memory.
 */
struct gmp_memory; /* fabric->gmp_memory */

struct gmp_place {
	uint32_t node;
	uint32_t modifier;
	uint16_t attribute;
	uint8_t class;
};

#define GMP_MEMORY_LIMIT (64U << 20) /* bytes */

/* Stores bytes in the place of what was there. 0, -ENOMEM, -ENOSPC. */
int gmp_keep(struct fabric *fabric, const struct gmp_place *place, const void *bytes,
	     size_t length);

/* Copies out what is there; false: nothing, or not of that length. */
bool gmp_recall(const struct fabric *fabric, const struct gmp_place *place, void *bytes,
		size_t length);

/* What was set on one node is gone, as after it was without power. */
void gmp_forget(struct fabric *fabric, uint32_t node);

void gmp_memory_free(struct gmp_memory *memory);

/*
 * The key of a class (B_Key: IBA 16.2; CC_Key: A10.4.3.4): who does not bring it cannot set
 * anything. The key of a request is at byte 24, and the attribute that sets it has the same
 * layout in both classes.
 */
struct key_info {
	uint64_t key;       /* 0: none */
	uint64_t lease_end; /* when the protection falls; 0: no lease runs */
	uint16_t lease;     /* seconds; 0: forever */
	uint16_t violations;
	bool protect; /* the key cannot be read without having it */
};

/* Whether a request may change something; if not, that is noted. */
bool key_admits(struct query *query, unsigned int attribute);

#define KEY_INFO_SIZE 16 /* BKeyInfo, CongestionKeyInfo */

/* From and to the attribute; a protected key reads as 0 for who does not have it. */
void key_read(struct query *query, unsigned int attribute, uint8_t *data);
void key_write(struct query *query, unsigned int attribute, const uint8_t *data);

struct class_info {
	uint8_t version;
	uint16_t capabilities;
	uint32_t capabilities2;
};

/*
 * Answers a Get or Set of ClassPortInfo (IBA 13.4.8.1), at this byte of the MAD. Where traps go
 * can be set.
 */
void class_port_info(struct query *query, const struct class_info *info, int offset);

#endif
