/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */

/*
 * Messages between umad-sim and the kernel module sim_hca (tests/kernel/hca). Each open file of
 * /dev/sim_hca is one HCA. A read() returns as many whole messages as fit; a write() must
 * consist of whole messages. Numbers are in host order, packets and MADs in network order.
 *
 * A packet is a link frame without its CRCs: LRH, GRH if the LRH says so, BTH, DETH, and a MAD
 * of 256 bytes. In packets from the kernel, the SLID has only the path bits.
 */
#ifndef HCA_PROTOCOL_H
#define HCA_PROTOCOL_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdint.h>
#endif

#define SIM_HCA_DEVICE  "/dev/sim_hca"
#define SIM_HCA_VERSION 1

enum sim_hca_kind {
	SIM_HCA_CREATE =
		1,       /* to the kernel, once, as the first message: struct sim_hca_create */
	SIM_HCA_CREATED, /* from the kernel: `id` is 0, or an errno if there is no device */
	SIM_HCA_PACKET,  /* both directions: a packet that leaves or reaches a port */
	SIM_HCA_COMMAND, /* from the kernel, for the adapter: struct sim_hca_command */
	SIM_HCA_REPLY,   /* to the kernel: struct sim_hca_reply; `id` is the command's */
	SIM_HCA_EVENT,   /* to the kernel: `id` is an enum sim_hca_event */
};

struct sim_hca_message { /* the header of each message */
	uint32_t kind;
	uint32_t port; /* counted from 1; 0: the device */
	uint32_t id;
	uint32_t length; /* bytes that follow */
};

#define SIM_HCA_MAD_BYTES      256
#define SIM_HCA_PACKET_BYTES   (8 + 12 + 8 + SIM_HCA_MAD_BYTES) /* and 40 with a GRH */
#define SIM_HCA_PACKET_LONGEST (40 + SIM_HCA_PACKET_BYTES)

struct sim_hca_create {   /* texts end with NUL */
	uint32_t version; /* SIM_HCA_VERSION */
	uint32_t port_count;
	uint64_t node_guid;
	uint64_t system_guid;
	uint32_t vendor_id;
	uint32_t device_id;
	uint32_t hardware_version;
	uint32_t reserved;
	char name[64];
	char node_description[64]; /* may have no NUL */
	char firmware[32];
	char board[32];
	char type[32];
};

enum sim_hca_operation {
	SIM_HCA_MAD = 1,      /* `data` is a MAD for an agent of the adapter */
	SIM_HCA_CAPABILITIES, /* sets and clears bits of PortInfo:CapabilityMask */
	SIM_HCA_DESCRIPTION,  /* `data` is the NodeDescription, 64 bytes */
};

#define SIM_HCA_IGNORE_MKEY 1 /* the MAD is the driver's own */

struct sim_hca_command {
	uint32_t operation;
	uint32_t flags;
	uint32_t set;
	uint32_t clear;
	uint8_t data[SIM_HCA_MAD_BYTES];
};

struct sim_hca_reply {
	uint32_t status;   /* 0, or an errno */
	uint32_t responds; /* 1: `data` is the response */
	uint8_t data[SIM_HCA_MAD_BYTES];
};

enum sim_hca_event {
	SIM_HCA_LID_CHANGE = 1,
	SIM_HCA_SM_CHANGE,
	SIM_HCA_REREGISTER,
	SIM_HCA_PKEY_CHANGE,
	SIM_HCA_GID_CHANGE,
	SIM_HCA_PORT_ACTIVE,
	SIM_HCA_PORT_ERROR,
};

#endif
