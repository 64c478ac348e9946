/* SPDX-License-Identifier: BSD-2-Clause */

/* Decodes notices (IBA 13.4.8.2, 14.2.5.1). */

#include "base/export.h"
#include "base/report.h"
#include "mad/layout.h"

#include <infiniband/mad_notice.h>

#define NOTICE_SIZE     64
#define ISSUER_GID_OFFS 64
#define GENERIC         0x80
#define PATH_MAX_HOPS   30

static uint64_t get64(const uint8_t *at, int offset)
{
	return (uint64_t)get32(at, offset) << 32 | get32(at, offset + 4);
}

static uint32_t get24(const uint8_t *at, int offset)
{
	return (uint32_t)at[offset] << 16 | get16(at, offset + 1);
}

static void decode_mkey(struct mad_notice *notice, const uint8_t *raw)
{
	notice->details = MAD_NOTICE_LID | MAD_NOTICE_KEY | MAD_NOTICE_REQUEST;
	notice->lid = get16(raw, 12);
	notice->dr_slid = get16(raw, 14);
	notice->method = raw[16];
	notice->attribute = get16(raw, 18);
	notice->modifier = get32(raw, 20);
	notice->key = get64(raw, 24);
	if (!(raw[33] & 0x80)) /* no directed route */
		return;
	notice->path_length = raw[33] & 0x3f;
	if (notice->path_length > PATH_MAX_HOPS)
		notice->path_length = PATH_MAX_HOPS;
	memcpy(notice->path, raw + 34, PATH_MAX_HOPS);
}

/* A packet with a bad key; "rest" follows the key. */
static void decode_packet(struct mad_notice *notice, const uint8_t *raw, const uint8_t *rest)
{
	notice->details = MAD_NOTICE_LID | MAD_NOTICE_LID2 | MAD_NOTICE_KEY | MAD_NOTICE_SL |
			  MAD_NOTICE_QP | MAD_NOTICE_GID | MAD_NOTICE_GID2;
	notice->lid = get16(raw, 12);
	notice->lid2 = get16(raw, 14);
	notice->sl = rest[0] >> 4;
	notice->qp = get24(rest, 1);
	notice->qp2 = get24(rest, 5);
	memcpy(notice->gid, rest + 8, 16);
	memcpy(notice->gid2, rest + 24, 16);
}

static void decode_details(struct mad_notice *notice, const uint8_t *raw)
{
	switch (notice->trap) {
	case 64: /* GID in or out of service, group created or deleted */
	case 65:
	case 66:
	case 67:
		notice->details = MAD_NOTICE_GID;
		memcpy(notice->gid, raw + 16, 16);
		break;
	case 128:
		notice->details = MAD_NOTICE_LID;
		notice->lid = get16(raw, 10);
		break;
	case 129:
	case 130:
	case 131:
		notice->details = MAD_NOTICE_LID | MAD_NOTICE_PORT_NUMBER;
		notice->lid = get16(raw, 12);
		notice->port = raw[14];
		break;
	case 144:
		notice->details = MAD_NOTICE_LID | MAD_NOTICE_CAPABILITIES;
		notice->lid = get16(raw, 12);
		notice->capability_mask = get32(raw, 16);
		if (raw[15] & 1) /* OtherLocalChanges: the notice has the changes, too */
			notice->changes = get16(raw, 20);
		notice->capability_mask2 = get16(raw, 22);
		break;
	case 145:
		notice->details = MAD_NOTICE_LID | MAD_NOTICE_GUID;
		notice->lid = get16(raw, 12);
		notice->guid = get64(raw, 16);
		break;
	case 256:
		decode_mkey(notice, raw);
		break;
	case 257:
	case 258:
		/* a P_Key or Q_Key the receiver lacks */
		decode_packet(notice, raw, raw + 20);
		notice->key = get32(raw, 16);
		break;
	case 259:
		/* a P_Key the switch port lacks */
		decode_packet(notice, raw, raw + 18);
		notice->details |= MAD_NOTICE_SWITCH | MAD_NOTICE_PORT_NUMBER;
		notice->key = get16(raw, 16);
		notice->switch_lid = get16(raw, 58);
		notice->port = raw[60];
		break;
	}
}

EXPORT int mad_notice_decode(const void *raw, size_t raw_size, struct mad_notice *notice,
			     size_t size)
{
	struct mad_notice decoded = {0};

	if (!raw || !notice)
		return failure_of_call(0, -EINVAL);
	if (raw_size >= NOTICE_SIZE) {
		memcpy(decoded.raw, raw,
		       raw_size < sizeof(decoded.raw) ? raw_size : sizeof(decoded.raw));
		decoded.kind = MAD_NOTICE_TRAP;
		decoded.generic = (decoded.raw[0] & GENERIC) != 0;
		decoded.type = decoded.raw[0] & 0x7f;
		decoded.producer = get24(decoded.raw, 1);
		decoded.trap = get16(decoded.raw, 4);
		decoded.issuer_lid = get16(decoded.raw, 6);
		decoded.toggle = decoded.raw[8] >> 7;
		decoded.count = get16(decoded.raw, 8) & 0x7fff;
		memcpy(decoded.issuer_gid, decoded.raw + ISSUER_GID_OFFS,
		       sizeof(decoded.issuer_gid));
		if (decoded.generic)
			decode_details(&decoded, decoded.raw);
	}
	memset(notice, 0, size);
	memcpy(notice, &decoded, size < sizeof(decoded) ? size : sizeof(decoded));
	return raw_size < NOTICE_SIZE ? failure_of_call(0, -EBADMSG) : 0;
}
