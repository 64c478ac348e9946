// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/* Packets of unreliable datagrams (IBA 7.7, 8.3, 9.2, 9.3). */
#include "sim_hca.h"

enum {
	LRH_BYTES = 8,
	GRH_BYTES = 40,
	BTH_BYTES = 12,
	DETH_BYTES = 8,
	ICRC_BYTES = 4
};

#define NEXT_BTH  2
#define NEXT_GRH  3
#define GRH_NEXT  0x1b
#define SEND_ONLY 0x64

#define SMP_VL 15

static u8 *put_lrh(u8 *at, const struct address *address, bool smp, u32 bytes)
{
	at[0] = smp ? SMP_VL << 4 : 0;
	at[1] = address->sl << 4 | (address->grh ? NEXT_GRH : NEXT_BTH);
	put_unaligned_be16(address->dlid, at + 2);
	put_unaligned_be16(bytes / 4, at + 4);
	put_unaligned_be16(address->path_bits, at + 6);
	return at + LRH_BYTES;
}

static u8 *put_grh(u8 *at, const struct address *address, u32 bytes)
{
	put_unaligned_be32(6U << 28 | (u32)address->traffic_class << 20 |
				   (address->flow_label & 0xfffff),
			   at);
	put_unaligned_be16(bytes, at + 4);
	at[6] = GRH_NEXT;
	at[7] = address->hop_limit;
	memcpy(at + 8, address->sgid.raw, 16);
	memcpy(at + 24, address->dgid.raw, 16);
	return at + GRH_BYTES;
}

u32 packet_build(u8 *packet, const struct address *address, u32 source_qp, u32 qp, u32 qkey,
		 u16 pkey)
{
	u32 transport = BTH_BYTES + DETH_BYTES + SIM_HCA_MAD_BYTES + ICRC_BYTES;
	u8 *at = put_lrh(packet, address, source_qp == 0,
			 LRH_BYTES + (address->grh ? GRH_BYTES : 0) + transport);

	if (address->grh)
		at = put_grh(at, address, transport);
	at[0] = SEND_ONLY;
	at[1] = 0;
	put_unaligned_be16(pkey, at + 2);
	put_unaligned_be32(qp & 0xffffff, at + 4);
	put_unaligned_be32(0, at + 8);
	at += BTH_BYTES;
	put_unaligned_be32(qkey, at);
	put_unaligned_be32(source_qp, at + 4);
	return at + DETH_BYTES - packet;
}

bool packet_parse(const u8 *packet, u32 length, struct arrived *arrived)
{
	const u8 *at = packet + LRH_BYTES;
	u8 next;

	memset(arrived, 0, sizeof(*arrived));
	if (length < SIM_HCA_PACKET_BYTES)
		return false;
	next = packet[1] & 3;
	if (next == NEXT_GRH) {
		arrived->grh = at;
		at += GRH_BYTES;
	} else if (next != NEXT_BTH) {
		return false;
	}
	if (at + BTH_BYTES + DETH_BYTES + SIM_HCA_MAD_BYTES != packet + length ||
	    at[0] != SEND_ONLY)
		return false;
	arrived->sl = packet[1] >> 4;
	arrived->dlid = get_unaligned_be16(packet + 2);
	arrived->slid = get_unaligned_be16(packet + 6);
	arrived->pkey = get_unaligned_be16(at + 2);
	arrived->qp = get_unaligned_be32(at + 4) & 0xffffff;
	arrived->qkey = get_unaligned_be32(at + BTH_BYTES);
	arrived->source_qp = get_unaligned_be32(at + BTH_BYTES + 4) & 0xffffff;
	arrived->mad = at + BTH_BYTES + DETH_BYTES;
	return true;
}
