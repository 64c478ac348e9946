/* SPDX-License-Identifier: BSD-2-Clause */

/* The subnet management agent of every node (IBA 14). */
#ifndef FABRIC_SMA_H
#define FABRIC_SMA_H

#include "query.h"

#define SMP_DATA 64 /* offset and size of an SMP's attribute */

#define IS_SM           0x2 /* PortInfo: CapabilityMask */
#define SM_PRIORITY     5   /* of the built-in SM, which is the master */
#define SM_STATE_MASTER 3

/*
 * Replaces an SMP with its response; false if no response is due. SMPs that are not for the
 * agent (a subnet manager's SMInfo, traps) do not get here, except SMInfo for the built-in SM.
 */
bool sma_respond(struct query *query);

/*
 * Reads the 64 bytes that a Get of this attribute returns; false if the node does not have it.
 */
bool sma_read(struct fabric *fabric, uint32_t node, unsigned int attribute, uint32_t modifier,
	      uint8_t in_port, uint8_t data[SMP_DATA]);

/* Set, in sma_set.c: applies the 64 bytes. Returns a status of enum mad_status. */
unsigned int sma_write(struct fabric *fabric, uint32_t node, unsigned int attribute,
		       uint32_t modifier, uint8_t in_port, uint8_t data[SMP_DATA]);

/* Returns the port (by index) whose PortInfo a modifier selects on a node, or NONE. */
uint32_t sma_port(const struct fabric *fabric, uint32_t node, unsigned int number,
		  uint8_t in_port);

#endif
