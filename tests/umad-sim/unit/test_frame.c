/* SPDX-License-Identifier: BSD-2-Clause */

/* Frames: headers, CRCs, segments. */
#include "frame.h"
#include "test.h"

#include <string.h>

#include "rmpp.h"

/* A packet of a reliable connection with its CRCs: LRH, BTH, RETH, 14 bytes and 2 bytes of
 * padding. zlib's crc32() of the masked bytes has the same value as the invariant CRC. */
static const uint8_t known_packet[] = {
	0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2, 0x0a, 0x20, 0x24, 0x87,
	0x00, 0x87, 0xb1, 0xb3, 0x00, 0x0d, 0xec, 0x2a, 0x01, 0x71, 0x0a, 0x1c,
	0x01, 0x5d, 0x40, 0x02, 0x38, 0xf2, 0x7a, 0x05, 0x00, 0x00, 0x00, 0x0e,
	0xbb, 0x88, 0x4d, 0x85, 0xfd, 0x5c, 0xfb, 0xa4, 0x72, 0x8b, 0xc0, 0x69,
	0x0e, 0xd4, 0x00, 0x00, 0x96, 0x25, 0xb7, 0x5a, 0x45, 0xfa,
};
#define KNOWN_LENGTH (sizeof(known_packet) - 6)

TEST(crcs_of_a_known_packet)
{
	uint8_t frame[sizeof(known_packet)] = {0};

	memcpy(frame, known_packet, KNOWN_LENGTH);
	assert_int_equal(frame_put_crcs(frame, KNOWN_LENGTH), sizeof(known_packet));
	assert_memory_equal(frame, known_packet, sizeof(known_packet));
}

static uint32_t icrc_at(const uint8_t *at)
{
	return (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

static uint16_t vcrc_at(const uint8_t *at)
{
	return (uint16_t)(at[1] << 8 | at[0]);
}

/* Computed bit by bit, as in the specification: the least significant bit first. */
static uint32_t crc_of_bits(uint32_t crc, uint32_t polynomial, const uint8_t *bytes,
			    size_t count)
{
	for (size_t bit = 0; bit < 8 * count; bit++) {
		uint32_t out = (crc ^ (uint32_t)bytes[bit / 8] >> bit % 8) & 1;

		crc = crc >> 1 ^ (out ? polynomial : 0);
	}
	return ~crc;
}

/* Runs of zeros of any length at any place; byte 4 of the BTH counts as ones. */
TEST(crcs_of_packets_with_zeros)
{
	uint8_t packet[286], masked[280];

	for (unsigned int run = 0; run < 2000; run++) {
		size_t length = 40 + run % 241, start = run * 37 % length;
		size_t zeros = run * 11 % (length - start + 1);

		for (size_t i = 0; i < length; i++)
			packet[i] = (uint8_t)(i * 7 + run);
		memset(packet + start, 0, zeros);
		packet[1] = 2; /* no GRH */
		memcpy(masked, packet, length);
		masked[0] |= 0xf0;
		masked[12] = 0xff;
		assert_int_equal(frame_put_crcs(packet, length), length + 6);
		assert_int_equal(icrc_at(packet + length),
				 crc_of_bits(UINT32_MAX, 0xedb88320, masked, length));
		assert_int_equal(vcrc_at(packet + length + 4),
				 (uint16_t)crc_of_bits(UINT16_MAX, 0xd008, packet, length + 4));
	}
}

/* --- headers -------------------------------------------------------------------- */

static const struct frame_address gmp = {
	.slid = 0x1234,
	.dlid = 0x5678,
	.pkey = 0xffff,
	.sl = 3,
	.source_qp = 0x123456,
	.qp = 1,
	.qkey = 0x80010000,
	.psn = 0x1abcdef,
};

static void fill(uint8_t mad[MAD_BYTES])
{
	for (unsigned int i = 0; i < MAD_BYTES; i++)
		mad[i] = (uint8_t)(i * 7 + 1);
}

TEST(a_frame_has_the_headers_of_its_address_and_its_crcs)
{
	static const uint8_t expected[28] = {
		0x00, 0x32, 0x56, 0x78, 0x00, 72,   0x12, 0x34, /* LRH */
		0x64, 0x00, 0xff, 0xff, 0,    0,    0,    1,
		0,    0xab, 0xcd, 0xef, /* BTH: 24 bits of the sequence number */
		0x80, 0x01, 0x00, 0x00, 0,    0x12, 0x34, 0x56, /* DETH */
	};
	uint8_t mad[MAD_BYTES], frame[FRAME_BYTES], again[FRAME_BYTES];

	fill(mad);
	assert_int_equal(frame_build(frame, &gmp, mad), 290);
	assert_memory_equal(frame, expected, sizeof(expected));
	assert_memory_equal(frame + 28, mad, MAD_BYTES);
	memcpy(again, frame, 284);
	assert_int_equal(frame_put_crcs(again, 284), 290);
	assert_memory_equal(again, frame, 290);
}

static void expect_same(const struct frame_address *a, const struct frame_address *b)
{
	assert_int_equal(a->slid, b->slid);
	assert_int_equal(a->dlid, b->dlid);
	assert_int_equal(a->pkey, b->pkey);
	assert_int_equal(a->sl, b->sl);
	assert_int_equal(a->vl, b->vl);
	assert_int_equal(a->source_qp, b->source_qp);
	assert_int_equal(a->qp, b->qp);
	assert_int_equal(a->qkey, b->qkey);
	assert_int_equal(a->psn, b->psn & 0xffffff);
	assert_int_equal(a->grh, b->grh);
	assert_int_equal(a->traffic_class, b->traffic_class);
	assert_int_equal(a->hop_limit, b->hop_limit);
	assert_int_equal(a->flow_label, b->flow_label);
	assert_memory_equal(a->sgid, b->sgid, 16);
	assert_memory_equal(a->dgid, b->dgid, 16);
}

static struct frame_address with_grh(void)
{
	struct frame_address address = gmp;

	address.grh = true;
	address.traffic_class = 0xa5;
	address.flow_label = 0xfedcb;
	address.hop_limit = 64;
	memset(address.sgid, 0x11, 16);
	memset(address.dgid, 0x22, 16);
	return address;
}

TEST(a_frame_without_crcs_is_read_again)
{
	const struct frame_address addresses[] = {gmp, with_grh()};
	uint8_t mad[MAD_BYTES], frame[FRAME_BYTES], again[MAD_BYTES];
	struct frame_address read;

	fill(mad);
	for (unsigned int i = 0; i < 2; i++) {
		size_t length = frame_put(frame, &addresses[i], mad);

		assert_int_equal(length, i ? 324 : 284);
		assert_true(frame_parse(frame, length, &read, again));
		expect_same(&read, &addresses[i]);
		assert_memory_equal(again, mad, MAD_BYTES);
	}
}

/* Each wrong length, next header and opcode. */
TEST(other_bytes_are_no_frame)
{
	const struct frame_address addresses[] = {gmp, with_grh()};
	uint8_t mad[MAD_BYTES], frame[FRAME_BYTES] = {0};
	struct frame_address read;

	fill(mad);
	for (unsigned int i = 0; i < 2; i++) {
		size_t length = frame_put(frame, &addresses[i], mad);
		uint8_t *opcode = frame + (i ? 48 : 8);

		for (size_t wrong = 0; wrong < FRAME_BYTES; wrong++)
			if (wrong != length)
				assert_false(frame_parse(frame, wrong, &read, mad));
		for (unsigned int next = 0; next < 4; next++) {
			frame[1] = (uint8_t)((frame[1] & 0xfc) | next);
			assert_int_equal(frame_parse(frame, length, &read, mad),
					 next == (i ? 3 : 2));
		}
		frame[1] = (uint8_t)((frame[1] & 0xfc) | (i ? 3 : 2));
		*opcode ^= 1;
		assert_false(frame_parse(frame, length, &read, mad));
	}
}

TEST(a_grh_stands_behind_the_lrh)
{
	static const uint8_t expected[16] = {
		0x00, 0x33, 0x56, 0x78, 0x00, 82, 0x12, 0x34, /* LRH */
		0x6a, 0x5f, 0xed, 0xcb, 0x01, 24, 0x1b, 64,   /* GRH */
	};
	struct frame_address address = with_grh();
	uint8_t mad[MAD_BYTES], frame[FRAME_BYTES];

	fill(mad);
	assert_int_equal(frame_build(frame, &address, mad), 330);
	assert_memory_equal(frame, expected, sizeof(expected));
	assert_memory_equal(frame + 16, address.sgid, 16);
	assert_memory_equal(frame + 32, address.dgid, 16);
	assert_int_equal(frame[48], 0x64);
	assert_memory_equal(frame + 68, mad, MAD_BYTES);
}

/* Routers and switches change these fields: they are in the variant CRC only. */
TEST(the_invariant_crc_ignores_fields_that_switches_change)
{
	static const size_t varying[] = {9, 10, 11, 15, 52};
	struct frame_address address = with_grh();
	uint8_t mad[MAD_BYTES], frame[FRAME_BYTES];
	uint32_t icrc;
	uint16_t vcrc;

	fill(mad);
	frame_build(frame, &address, mad);
	icrc = icrc_at(frame + 324);
	vcrc = vcrc_at(frame + 328);
	for (unsigned int i = 0; i < sizeof(varying) / sizeof(varying[0]); i++) {
		frame[varying[i]] ^= 0xff;
		frame_put_crcs(frame, 324);
		assert_int_equal(icrc_at(frame + 324), icrc);
		assert_int_not_equal(vcrc_at(frame + 328), vcrc);
		frame[varying[i]] ^= 0xff;
	}
	frame[0] ^= 0xf0;
	frame[8] ^= 0x0f;
	frame_put_crcs(frame, 324);
	assert_int_equal(icrc_at(frame + 324), icrc);
	frame[8] ^= 0x10;
	frame_put_crcs(frame, 324);
	assert_int_not_equal(icrc_at(frame + 324), icrc);
}

TEST(a_record_of_erf_has_time_and_lengths)
{
	static const uint8_t expected[ERF_HEADER] = {
		0,  0,    0, 0x80, 0x04, 0x03, 0x02, 0x01, /* half a second after 0x01020304 */
		21, 0x04, 1, 50,   0,    0,    1,    34,
	};
	uint8_t header[ERF_HEADER];

	frame_erf_header(header, 290, 0x01020304, 500000000);
	assert_memory_equal(header, expected, sizeof(expected));
}

/* --- segments ------------------------------------------------------------------- */

TEST(a_single_mad_is_padded_with_zeros)
{
	uint8_t mad[MAD_BYTES], made[MAD_BYTES];

	fill(mad);
	mad[1] = 0x04;
	assert_int_equal(frame_segments(mad, MAD_BYTES), 1);
	frame_segment(made, mad, MAD_BYTES, 1, true);
	assert_memory_equal(made, mad, MAD_BYTES);
	assert_int_equal(frame_segments(mad, 100), 1);
	frame_segment(made, mad, 100, 1, false);
	memset(mad + 100, 0, MAD_BYTES - 100);
	assert_memory_equal(made, mad, MAD_BYTES);
}

static void set_rmpp(uint8_t *mad, uint8_t class, uint8_t type, uint8_t flags)
{
	mad[1] = class;
	mad[RMPP_VERSION] = 1;
	mad[RMPP_TYPE] = type;
	mad[RMPP_FLAGS] = flags;
	mad[RMPP_STATUS] = 0;
	put32(mad + RMPP_SEGMENT, 0);
	put32(mad + RMPP_PAYLOAD, 0);
}

/* Joins segments by their headers, as a receiver does (IBA 13.6.2). */
static size_t join(uint8_t *joined, const uint8_t *message, size_t length, size_t offset)
{
	unsigned int count = frame_segments(message, length);
	size_t at = offset, payload = 0;
	uint8_t mad[MAD_BYTES];

	memcpy(joined, message, offset);
	for (unsigned int number = 1; number <= count; number++) {
		frame_segment(mad, message, length, number, true);
		assert_int_equal(get32(mad + RMPP_SEGMENT), number);
		assert_int_equal(mad[RMPP_TYPE], RMPP_DATA);
		assert_int_equal(mad[RMPP_FLAGS], 0xf8 | RMPP_ACTIVE |
							  (number == 1 ? RMPP_FIRST : 0) |
							  (number == count ? RMPP_LAST : 0));
		assert_memory_equal(mad, message, RMPP_VERSION);
		if (number == 1)
			payload = get32(mad + RMPP_PAYLOAD);
		memcpy(joined + at, mad + offset, MAD_BYTES - offset);
		at += number < count ? MAD_BYTES - offset
				     : get32(mad + RMPP_PAYLOAD) - (offset - RMPP_HEADER);
	}
	/* PayloadLength of the first segment includes the class's header of every segment */
	assert_int_equal(payload, at - offset + count * (offset - RMPP_HEADER));
	return at;
}

TEST(segments_join_to_the_message)
{
	static const struct {
		uint8_t class;
		size_t offset;
	} classes[] = {{0x03, 56}, {0x32, 40}, {0x06, 64}};
	static uint8_t message[4000], joined[5000];

	for (unsigned int i = 0; i < sizeof(message); i++)
		message[i] = (uint8_t)(i * 31 + i / 256);
	for (unsigned int c = 0; c < sizeof(classes) / sizeof(classes[0]); c++) {
		size_t offset = classes[c].offset;

		set_rmpp(message, classes[c].class, RMPP_DATA, 0xf8 | RMPP_ACTIVE);
		for (size_t length = 257; length <= sizeof(message); length++) {
			assert_int_equal(join(joined, message, length, offset), length);
			assert_memory_equal(joined + offset, message + offset, length - offset);
		}
	}
}

TEST(a_sent_message_of_one_segment_needs_the_active_flag_alone)
{
	uint8_t mad[MAD_BYTES] = {0}, made[MAD_BYTES];

	set_rmpp(mad, 0x03, 0, RMPP_ACTIVE);
	mad[RMPP_VERSION] = 0;
	frame_segment(made, mad, 200, 1, true);
	assert_int_equal(made[RMPP_VERSION], 1);
	assert_int_equal(made[RMPP_TYPE], RMPP_DATA);
	assert_int_equal(made[RMPP_FLAGS], RMPP_ACTIVE | RMPP_FIRST | RMPP_LAST);
	assert_int_equal(get32(made + RMPP_SEGMENT), 1);
	assert_int_equal(get32(made + RMPP_PAYLOAD), 200 - RMPP_HEADER);
}

TEST(a_received_message_of_one_segment_is_not_changed)
{
	uint8_t mad[MAD_BYTES] = {0}, made[MAD_BYTES];

	set_rmpp(mad, 0x03, RMPP_DATA, RMPP_ACTIVE);
	frame_segment(made, mad, MAD_BYTES, 1, false);
	assert_memory_equal(made, mad, MAD_BYTES);
}

TEST(a_program_that_does_rmpp_itself_writes_its_own_segments)
{
	uint8_t mad[MAD_BYTES] = {0}, made[MAD_BYTES];

	set_rmpp(mad, 0x03, RMPP_ACK, RMPP_ACTIVE);
	frame_segment(made, mad, MAD_BYTES, 1, true);
	assert_memory_equal(made, mad, MAD_BYTES);
	set_rmpp(mad, 0x03, RMPP_DATA, RMPP_ACTIVE | RMPP_FIRST);
	put32(mad + RMPP_SEGMENT, 1);
	frame_segment(made, mad, MAD_BYTES, 1, true);
	assert_memory_equal(made, mad, MAD_BYTES);
	set_rmpp(mad, 0x03, RMPP_DATA, RMPP_ACTIVE | RMPP_LAST);
	put32(mad + RMPP_SEGMENT, 2);
	frame_segment(made, mad, MAD_BYTES, 1, true);
	assert_memory_equal(made, mad, MAD_BYTES);
}
