/* SPDX-License-Identifier: BSD-2-Clause */

/* Smaller general services agents of every node, and what all agents on QP1 share. */
#ifndef FABRIC_GMP_AGENTS_H
#define FABRIC_GMP_AGENTS_H

#include <stddef.h>

#include "query.h"

/* Replace a request by its response; false: no response is due. */
bool congestion_respond(struct query *query); /* class 0x21 (IBA A10.4) */
bool baseboard_respond(struct query *query);  /* class 0x05 (IBA 16.2) */
bool vendor_respond(struct query *query);     /* classes 0x09-0x0f, 0x30-0x4f (IBA 16.5) */

/* Values set on nodes: bytes, with a key from the GMP. The total size is limited, so that no
 * client can exhaust the memory. */
struct gmp_memory; /* fabric->gmp_memory */

struct gmp_place {
	uint32_t node;
	uint32_t modifier;
	uint16_t attribute;
	uint8_t class;
};

#define GMP_MEMORY_LIMIT (64U << 20) /* bytes */

/* Stores bytes, replacing those with the same key. Returns 0, -ENOMEM or -ENOSPC. */
int gmp_keep(struct fabric *fabric, const struct gmp_place *place, const void *bytes,
	     size_t length);

/* Copies the bytes; false if none are stored or their length differs. */
bool gmp_recall(const struct fabric *fabric, const struct gmp_place *place, void *bytes,
		size_t length);

/* Removes all values of a node, as a power cycle does. */
void gmp_forget(struct fabric *fabric, uint32_t node);

void gmp_memory_free(struct gmp_memory *memory);

/* The key of a class (B_Key: IBA 16.2; CC_Key: A10.4.3.4): only requests with the key, at byte
 * 24, can set values. The attribute that sets the key has the same layout in both classes. */
struct key_info {
	uint64_t key;       /* 0: none */
	uint64_t lease_end; /* when the protection ends; 0: no lease is running */
	uint16_t lease;     /* seconds; 0: forever */
	uint16_t violations;
	bool protect; /* the key can be read only with the key */
};

/* Whether a request may change values; if not, notes the violation. */
bool key_admits(struct query *query, unsigned int attribute);

#define KEY_INFO_SIZE 16 /* BKeyInfo, CongestionKeyInfo */

/* Convert from and to the attribute; without the right key, a protected key reads as 0. */
void key_read(struct query *query, unsigned int attribute, uint8_t *data);
void key_write(struct query *query, unsigned int attribute, const uint8_t *data);

struct class_info {
	uint8_t version;
	uint16_t capabilities;
	uint32_t capabilities2;
};

/* Responds to a Get or Set of ClassPortInfo (IBA 13.4.8.1), which begins at this byte of the
 * MAD. The destination of traps can be set. */
void class_port_info(struct query *query, const struct class_info *info, int offset);

#endif
