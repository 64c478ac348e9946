/* SPDX-License-Identifier: BSD-2-Clause */

/* MADs as frames of a link. */
#include "frame.h"

#include <string.h>

#include "classes.h"
#include "rmpp.h"

enum {
	LRH_BYTES = 8,
	GRH_BYTES = 40,
	BTH_BYTES = 12,
	DETH_BYTES = 8,
	ICRC_BYTES = 4,
	VCRC_BYTES = 2
};

/* LRH: the next header (IBA 7.7.5). GRH: the same (IBA 8.3.6). BTH: the opcode (IBA 9.2.1). */
#define NEXT_BTH  2
#define NEXT_GRH  3
#define GRH_NEXT  0x1b
#define SEND_ONLY 0x64 /* unreliable datagram */

#define ERF_INFINIBAND     21
#define ERF_VARYING_LENGTH 0x04

/* Both CRCs process bits in the order of transmission, least significant first, so their
 * polynomials are reversed. */
#define ICRC_POLYNOMIAL 0xedb88320 /* 0x04c11db7 */
#define VCRC_POLYNOMIAL 0xd008     /* 0x100b */

/* MADs have many zeros: one step processes this many */
#define ZERO_BYTES 32

/* Tables for computing a CRC. */
struct crc_tables {
	uint32_t bytes[8][256]; /* of a byte with 0 to 7 zeros after it: one step processes
				 * eight bytes */
	uint32_t zeros[4][256]; /* of each byte of the CRC, with ZERO_BYTES zeros after it */
};

static struct crc_tables icrc_tables, vcrc_tables;

static void fill_tables(struct crc_tables *tables, uint32_t polynomial)
{
	for (unsigned int byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
		tables->bytes[0][byte] = crc;
	}
	for (unsigned int zeros = 1; zeros < 8; zeros++)
		for (unsigned int byte = 0; byte < 256; byte++) {
			uint32_t crc = tables->bytes[zeros - 1][byte];

			tables->bytes[zeros][byte] = crc >> 8 ^ tables->bytes[0][crc & 0xff];
		}
	for (unsigned int place = 0; place < 4; place++)
		for (uint32_t byte = 0; byte < 256; byte++) {
			uint32_t crc = byte << 8 * place;

			for (int zeros = 0; zeros < ZERO_BYTES; zeros++)
				crc = crc >> 8 ^ tables->bytes[0][crc & 0xff];
			tables->zeros[place][byte] = crc;
		}
}

static void __attribute__((constructor)) fill_all_tables(void)
{
	fill_tables(&icrc_tables, ICRC_POLYNOMIAL);
	fill_tables(&vcrc_tables, VCRC_POLYNOMIAL);
}

static uint32_t little32(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static bool are_zeros(const uint8_t *bytes)
{
	static const uint8_t zeros[ZERO_BYTES];

	return !memcmp(bytes, zeros, ZERO_BYTES);
}

static uint32_t after_zeros(uint32_t crc, const struct crc_tables *tables)
{
	return tables->zeros[0][crc & 0xff] ^ tables->zeros[1][crc >> 8 & 0xff] ^
	       tables->zeros[2][crc >> 16 & 0xff] ^ tables->zeros[3][crc >> 24];
}

static uint32_t after_eight(uint32_t first, uint32_t second, const struct crc_tables *tables)
{
	return tables->bytes[7][first & 0xff] ^ tables->bytes[6][first >> 8 & 0xff] ^
	       tables->bytes[5][first >> 16 & 0xff] ^ tables->bytes[4][first >> 24] ^
	       tables->bytes[3][second & 0xff] ^ tables->bytes[2][second >> 8 & 0xff] ^
	       tables->bytes[1][second >> 16 & 0xff] ^ tables->bytes[0][second >> 24];
}

static uint32_t after_byte(uint32_t crc, uint8_t byte, const struct crc_tables *tables)
{
	return crc >> 8 ^ tables->bytes[0][(crc ^ byte) & 0xff];
}

struct crcs {
	uint32_t icrc, vcrc;
};

/* Computes both CRCs in one loop, which takes little longer than one. The invariant CRC differs
 * only in the headers, where some bits count as ones. */
static void add_bytes(struct crcs *crcs, const uint8_t *masked, const uint8_t *bytes,
		      size_t count)
{
	uint32_t icrc = crcs->icrc, vcrc = crcs->vcrc;
	size_t at = 0;

	while (count - at >= 8) {
		uint32_t first = little32(masked + at), second = little32(masked + at + 4);

		if (!(first | second) && count - at >= ZERO_BYTES && are_zeros(masked + at)) {
			icrc = after_zeros(icrc, &icrc_tables);
			vcrc = after_zeros(vcrc, &vcrc_tables);
			at += ZERO_BYTES;
		} else {
			icrc = after_eight(icrc ^ first, second, &icrc_tables);
			vcrc = after_eight(vcrc ^ little32(bytes + at),
					   little32(bytes + at + 4), &vcrc_tables);
			at += 8;
		}
	}
	for (; at < count; at++) {
		icrc = after_byte(icrc, masked[at], &icrc_tables);
		vcrc = after_byte(vcrc, bytes[at], &vcrc_tables);
	}
	*crcs = (struct crcs){icrc, vcrc};
}

/* Fields that routers and switches change count as ones (IBA 7.8.1). Returns where the headers
 * end. */
static size_t mask_headers(uint8_t *masked, const uint8_t *frame)
{
	bool grh = (frame[1] & 3) == NEXT_GRH;
	size_t bth = LRH_BYTES + (grh ? GRH_BYTES : 0);

	memcpy(masked, frame, bth + BTH_BYTES);
	masked[0] |= 0xf0; /* the virtual lane */
	if (grh) {
		masked[8] |= 0x0f; /* the traffic class and the flow label */
		memset(masked + 9, 0xff, 3);
		masked[15] = 0xff; /* the hop limit */
	}
	masked[bth + 4] = 0xff; /* FECN, BECN and the reserved bits after them */
	return bth + BTH_BYTES;
}

size_t frame_put_crcs(uint8_t *frame, size_t length)
{
	struct crcs crcs = {.icrc = UINT32_MAX, .vcrc = UINT16_MAX};
	uint8_t masked[LRH_BYTES + GRH_BYTES + BTH_BYTES];
	size_t headers = mask_headers(masked, frame);

	add_bytes(&crcs, masked, frame, headers);
	add_bytes(&crcs, frame + headers, frame + headers, length - headers);
	for (int i = 0; i < ICRC_BYTES; i++) {
		frame[length] = (uint8_t)(~crcs.icrc >> 8 * i);
		crcs.vcrc = after_byte(crcs.vcrc, frame[length++], &vcrc_tables);
	}
	for (int i = 0; i < VCRC_BYTES; i++)
		frame[length++] = (uint8_t)(~crcs.vcrc >> 8 * i);
	return length;
}

static uint8_t *put_lrh(uint8_t *at, const struct frame_address *address, size_t bytes)
{
	at[0] = (uint8_t)(address->vl << 4);
	at[1] = (uint8_t)(address->sl << 4 | (address->grh ? NEXT_GRH : NEXT_BTH));
	put16(at + 2, address->dlid);
	put16(at + 4, (unsigned int)bytes / 4);
	put16(at + 6, address->slid);
	return at + LRH_BYTES;
}

static uint8_t *put_grh(uint8_t *at, const struct frame_address *address, size_t bytes)
{
	put32(at, 6U << 28 | (uint32_t)address->traffic_class << 20 |
			  (address->flow_label & 0xfffff));
	put16(at + 4, (unsigned int)bytes);
	at[6] = GRH_NEXT;
	at[7] = address->hop_limit;
	memcpy(at + 8, address->sgid, 16);
	memcpy(at + 24, address->dgid, 16);
	return at + GRH_BYTES;
}

static uint8_t *put_bth(uint8_t *at, const struct frame_address *address)
{
	at[0] = SEND_ONLY;
	at[1] = 0;
	put16(at + 2, address->pkey);
	put32(at + 4, address->qp & 0xffffff);
	put32(at + 8, address->psn & 0xffffff);
	return at + BTH_BYTES;
}

static uint8_t *put_deth(uint8_t *at, const struct frame_address *address)
{
	put32(at, address->qkey);
	put32(at + 4, address->source_qp & 0xffffff);
	return at + DETH_BYTES;
}

size_t frame_put(uint8_t *frame, const struct frame_address *address,
		 const uint8_t mad[MAD_BYTES])
{
	size_t transport = BTH_BYTES + DETH_BYTES + MAD_BYTES + ICRC_BYTES;
	size_t grh = address->grh ? GRH_BYTES : 0;
	uint8_t *at = put_lrh(frame, address, LRH_BYTES + grh + transport);

	if (address->grh)
		at = put_grh(at, address, transport);
	at = put_deth(put_bth(at, address), address);
	memcpy(at, mad, MAD_BYTES);
	return (size_t)(at + MAD_BYTES - frame);
}

size_t frame_build(uint8_t frame[FRAME_BYTES], const struct frame_address *address,
		   const uint8_t mad[MAD_BYTES])
{
	return frame_put_crcs(frame, frame_put(frame, address, mad));
}

static const uint8_t *parse_grh(const uint8_t *at, struct frame_address *address)
{
	address->grh = true;
	address->traffic_class = (uint8_t)(get32(at) >> 20);
	address->flow_label = get32(at) & 0xfffff;
	address->hop_limit = at[7];
	memcpy(address->sgid, at + 8, 16);
	memcpy(address->dgid, at + 24, 16);
	return at + GRH_BYTES;
}

bool frame_parse(const uint8_t *frame, size_t length, struct frame_address *address,
		 uint8_t mad[MAD_BYTES])
{
	size_t shortest = LRH_BYTES + BTH_BYTES + DETH_BYTES + MAD_BYTES;
	const uint8_t *at = frame + LRH_BYTES;

	*address = (struct frame_address){0};
	if (length != shortest && length != shortest + GRH_BYTES)
		return false;
	if ((frame[1] & 3) != (length == shortest ? NEXT_BTH : NEXT_GRH))
		return false;
	address->vl = frame[0] >> 4;
	address->sl = frame[1] >> 4;
	address->dlid = (uint16_t)get16(frame + 2);
	address->slid = (uint16_t)get16(frame + 6);
	if (length != shortest)
		at = parse_grh(at, address);
	if (at[0] != SEND_ONLY)
		return false;
	address->pkey = (uint16_t)get16(at + 2);
	address->qp = get32(at + 4) & 0xffffff;
	address->psn = get32(at + 8) & 0xffffff;
	at += BTH_BYTES;
	address->qkey = get32(at);
	address->source_qp = get32(at + 4) & 0xffffff;
	memcpy(mad, at + DETH_BYTES, MAD_BYTES);
	return true;
}

/* An ERF record of type InfiniBand: time in units of 2^-32 s, least significant byte first;
 * type; flags; length of the record; packets lost before it; length of the frame. */
void frame_erf_header(uint8_t header[ERF_HEADER], size_t length, int64_t seconds,
		      uint32_t nanoseconds)
{
	uint64_t time = (uint64_t)seconds << 32 | ((uint64_t)nanoseconds << 32) / 1000000000;

	for (int i = 0; i < 8; i++)
		header[i] = (uint8_t)(time >> 8 * i);
	header[8] = ERF_INFINIBAND;
	header[9] = ERF_VARYING_LENGTH;
	put16(header + 10, (unsigned int)(ERF_HEADER + length));
	put16(header + 12, 0);
	put16(header + 14, (unsigned int)length);
}

/* --- RMPP ----------------------------------------------------------------------- */

/* The offset of a message's data; in a class without RMPP, after the shortest headers. */
static size_t data_offset(const uint8_t *message)
{
	uint8_t class = message[1];

	return class_has_rmpp(class) ? class_data_offset(class) : RMPP_HEADER;
}

unsigned int frame_segments(const uint8_t *message, size_t length)
{
	size_t offset, room;

	if (length <= MAD_BYTES)
		return 1;
	offset = data_offset(message);
	room = MAD_BYTES - offset;
	return (unsigned int)((length - offset + room - 1) / room);
}

/* Whether the kernel does RMPP for a message from a program: it checks only the active flag,
 * and writes the type. A program that does RMPP itself writes complete segments. */
static bool is_completed_by_kernel(const uint8_t *mad)
{
	return class_has_rmpp(mad[1]) && mad[RMPP_FLAGS] & RMPP_ACTIVE &&
	       mad[RMPP_TYPE] <= RMPP_DATA && get32(mad + RMPP_SEGMENT) <= 1 &&
	       (mad[RMPP_FLAGS] & (RMPP_FIRST | RMPP_LAST)) != RMPP_FIRST;
}

void frame_segment(uint8_t mad[MAD_BYTES], const uint8_t *message, size_t length,
		   unsigned int number, bool sent)
{
	unsigned int count = frame_segments(message, length);
	size_t offset = length <= MAD_BYTES ? 0 : data_offset(message);
	size_t room = MAD_BYTES - offset;
	size_t start = offset + (number - 1) * room;
	size_t bytes = length - start < room ? length - start : room;
	size_t pad = offset + count * room - length;
	uint8_t flags = RMPP_ACTIVE;
	size_t payload = 0;

	memcpy(mad, message, offset);
	memcpy(mad + offset, message + start, bytes);
	memset(mad + offset + bytes, 0, room - bytes);
	if (count == 1 && !(sent && is_completed_by_kernel(mad)))
		return;
	if (number == 1) {
		flags |= RMPP_FIRST;
		payload = (size_t)count * (MAD_BYTES - RMPP_HEADER) - pad;
	}
	if (number == count) {
		flags |= RMPP_LAST;
		payload = MAD_BYTES - RMPP_HEADER - pad;
	}
	mad[RMPP_VERSION] = 1;
	mad[RMPP_TYPE] = RMPP_DATA;
	mad[RMPP_FLAGS] = (uint8_t)((mad[RMPP_FLAGS] & 0xf8) | flags);
	mad[RMPP_STATUS] = 0;
	put32(mad + RMPP_SEGMENT, number);
	put32(mad + RMPP_PAYLOAD, (uint32_t)payload);
}
