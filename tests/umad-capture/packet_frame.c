/* SPDX-License-Identifier: BSD-2-Clause */

#include "packet_frame.h"

#include <endian.h>
#include <string.h>

#include "classes.h"

#define PERMISSIVE_LID 0xffff
#define GMP_QKEY       0x80010000

/* Offsets of the LIDs in an SMP with a directed route (IBA 14.2.1.2). */
#define DR_SLID 32
#define DR_DLID 34

struct ib_user_mad record_umad(const struct packet_record *record)
{
	struct ib_user_mad umad;

	_Static_assert(sizeof(umad) == HEADER_BYTES, "the header in a record");
	memcpy(&umad, record->header, sizeof(umad));
	return umad;
}

unsigned int record_status(const struct packet_record *record)
{
	return record->sent ? 0 : record_umad(record).status;
}

void record_beginning(const struct packet_record *record, uint8_t mad[MAD_BYTES])
{
	size_t length = record->length < MAD_BYTES ? record->length : MAD_BYTES;

	memcpy(mad, record_mad(record), length);
	memset(mad + length, 0, MAD_BYTES - length);
}

struct frame_address packet_address(const struct packet_record *record)
{
	struct ib_user_mad umad = record_umad(record);
	const ib_mad_addr_t *address = &umad.addr;
	struct frame_address frame = {.pkey = record->pkey, .sl = address->sl & 0xf};
	uint16_t own_lid = record->lid, other_lid = be16toh(address->lid);
	uint32_t qp = be32toh(address->qpn);
	uint8_t mad[DR_DLID + 2] = {0};
	uint32_t own_qp;

	memcpy(mad, record_mad(record),
	       record->length < sizeof(mad) ? record->length : sizeof(mad));
	own_qp = is_smp(mad) ? 0 : 1;
	frame.vl = is_smp(mad) ? 15 : 0;
	if (own_lid)
		own_lid |= (uint16_t)(address->path_bits & ((1U << record->lmc) - 1));
	if (mad_class_of(mad) == CLASS_DIRECTED_SMP) {
		if (get16(mad + DR_SLID) == PERMISSIVE_LID &&
		    get16(mad + DR_DLID) == PERMISSIVE_LID)
			own_lid = other_lid = PERMISSIVE_LID;
	}
	frame.slid = record->sent ? own_lid : other_lid;
	frame.dlid = record->sent ? other_lid : own_lid;
	frame.source_qp = record->sent ? own_qp : qp;
	frame.qp = record->sent ? qp : own_qp;
	/* the kernel does not report the Q_Key of received MADs */
	frame.qkey = be32toh(address->qkey);
	if (!record->sent)
		frame.qkey = own_qp ? GMP_QKEY : 0;
	if (address->grh_present) {
		frame.grh = true;
		frame.traffic_class = address->traffic_class;
		frame.hop_limit = address->hop_limit;
		frame.flow_label = be32toh(address->flow_label) & 0xfffff;
		memcpy(frame.sgid, record->sent ? record->gid : address->gid, 16);
		memcpy(frame.dgid, record->sent ? address->gid : record->gid, 16);
	}
	return frame;
}
