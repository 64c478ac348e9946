/* SPDX-License-Identifier: BSD-2-Clause */

/* Values of a port that a subnet manager can set, but rarely does (IBA 14.2.5). */
#ifndef FABRIC_SETTINGS_H
#define FABRIC_SETTINGS_H

#include "fabric.h"

#define PKEY_COUNT      128 /* NodeInfo: PartitionCap */
#define PKEYS_PER_BLOCK 32
#define GUID_COUNT      8 /* PortInfo: GUIDCap of a CA's port */
#define VL_ARB_BLOCKS   4 /* VLArbitration: low, low, high, high priority */
#define OPERATIONAL_VLS 3 /* as encoded: VL0 - VL3 */
#define DEFAULT_MTU     5 /* as encoded: 4096 bytes */

struct sl_to_vl { /* for packets that arrived by port `input`; in a list */
	struct sl_to_vl *next;
	uint8_t input;
	uint8_t map[8];
};

struct port_settings {
	uint64_t mkey;
	uint64_t gid_prefix;
	uint64_t guids[GUID_COUNT]; /* entry 0 is unused: it is the port's own GUID */
	uint16_t pkeys[PKEY_COUNT];
	struct sl_to_vl *sl_to_vl;
	uint8_t (*vl_arbitration)[64]; /* VL_ARB_BLOCKS of them, or NULL: zeroes */
	uint16_t mkey_lease;
	uint16_t mkey_violations;
	uint16_t pkey_violations;
	uint16_t qkey_violations;
	uint64_t lease_end; /* when the M_Key's protection ends; 0: no lease is running */
	uint8_t mkey_protect;
	uint8_t width_enabled;
	uint8_t speed_enabled;
	uint8_t speed_ext_enabled;
	uint8_t speed_ext2_enabled;
	uint8_t link_down_default;
	uint8_t high_limit;
	uint8_t stall_count;
	uint8_t hoq_life;
	uint8_t enforcement; /* P_Key and raw filters, inbound and outbound: 4 bits */
	uint8_t subnet_timeout;
	uint8_t error_thresholds; /* LocalPhyErrors, OverrunErrors: 4 bits each */
	uint8_t fdr10_enabled;    /* vendor specific: MlnxExtendedPortInfo */
	bool client_reregister;
};

/* A port's settings for writing; NULL on OOM. */
struct port_settings *settings_of(struct fabric *fabric, uint32_t port);

/* A port's settings for reading: those that were set, else `defaults`, filled in. */
const struct port_settings *settings_read(const struct fabric *fabric, uint32_t port,
					  struct port_settings *defaults);

/* The GID prefix of a port; an entry of its P_Key table. */
uint64_t gid_prefix(const struct fabric *fabric, uint32_t port);
uint16_t pkey_at(const struct fabric *fabric, uint32_t port, unsigned int index);

/* The size of a port's GUID table (PortInfo: GUIDCap); 0 if it is no end port. */
unsigned int guid_capacity(const struct fabric *fabric, uint32_t port);

void settings_free(struct port_settings *settings);

#endif
