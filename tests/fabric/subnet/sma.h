/* SPDX-License-Identifier: BSD-2-Clause */

/* The subnet management agent of every node (IBA 14). */
#ifndef FABRIC_SMA_H
#define FABRIC_SMA_H

#include "query.h"

#define SMP_DATA 64 /* where an SMP's attribute begins, and how long it is */

#define IS_SM           0x2 /* PortInfo: CapabilityMask */
#define SM_PRIORITY     5   /* of the built-in one, which is master */
#define SM_STATE_MASTER 3

/*
 * Answers an SMP in its place; false: no answer is due. What it has for others than the agent
 * (a subnet manager's SMInfo, traps) does not come here, but SMInfo for the built-in manager
 * does.
 */
bool sma_answer(struct query *query);

/* The 64 bytes that a Get of this attribute answers; false: the node has no such thing. */
bool sma_read(struct fabric *fabric, uint32_t node, unsigned int attribute, uint32_t modifier,
	      uint8_t in_port, uint8_t data[SMP_DATA]);

/* The Set half, in sma_set.c: applies what the 64 bytes say; a status of enum mad_status. */
unsigned int sma_write(struct fabric *fabric, uint32_t node, unsigned int attribute,
		       uint32_t modifier, uint8_t in_port, uint8_t data[SMP_DATA]);

/* The port (by index) whose PortInfo a modifier names on a node; NONE where there is none. */
uint32_t sma_port(const struct fabric *fabric, uint32_t node, unsigned int number,
		  uint8_t in_port);

#endif
