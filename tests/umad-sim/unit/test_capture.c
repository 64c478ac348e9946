/* SPDX-License-Identifier: BSD-2-Clause */

/* Captures of the links, read back from the file. */
#include "subnet_fixture.h"
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "capture.h"
#include "frame.h"
#include "pcapng.h"

#define START     UINT64_C(1700000000000000000)
#define PACKETS   64
#define TEXT      200
#define MAD_BEGIN 28 /* in a frame without GRH */

struct seen {
	char interface[TEXT], comment[TEXT];
	uint64_t time, number;
	uint32_t flags;
	uint8_t frame[FRAME_BYTES];
	size_t length;
};

struct reading {
	char interfaces[PACKETS][TEXT];
	struct seen packets[PACKETS];
	unsigned int interface_count, count;
	bool whole; /* the file ends after a block */
};

static char name[] = "/tmp/capture-XXXXXX";

static uint32_t word(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static unsigned int half(const uint8_t *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* Copies an option's text; "" if the block has none. */
static const uint8_t *option(const uint8_t *at, const uint8_t *end, unsigned int code,
			     char text[TEXT])
{
	text[0] = '\0';
	while (at + 4 <= end && half(at)) {
		size_t length = half(at + 2);

		if (half(at) == code) {
			assert_true(length < TEXT);
			memcpy(text, at + 4, length);
			text[length] = '\0';
			return at + 4;
		}
		at += 4 + (length + 3) / 4 * 4;
	}
	return NULL;
}

static void read_packet(struct reading *reading, const uint8_t *block, const uint8_t *end)
{
	struct seen *seen = &reading->packets[reading->count++];
	const uint8_t *options;
	char text[TEXT];

	assert_true(reading->count <= PACKETS);
	assert_true(word(block + 8) < reading->interface_count);
	strcpy(seen->interface, reading->interfaces[word(block + 8)]);
	seen->time = (uint64_t)word(block + 12) << 32 | word(block + 16);
	seen->length = word(block + 20);
	assert_int_equal(word(block + 24), seen->length);
	options = block + 28 + (seen->length + 3) / 4 * 4;
	assert_true(seen->length > ERF_HEADER && seen->length <= ERF_HEADER + FRAME_BYTES);
	seen->length -= ERF_HEADER;
	assert_int_equal(get16(block + 28 + 14), seen->length);
	memcpy(seen->frame, block + 28 + ERF_HEADER, seen->length);
	option(options, end, 1, seen->comment);
	seen->flags = word(option(options, end, 2, text));
	memcpy(&seen->number, option(options, end, 5, text), sizeof(seen->number));
}

static struct reading read_capture(void)
{
	static uint8_t bytes[1 << 16];
	struct reading reading = {0};
	FILE *file = fopen(name, "r");
	size_t length, at = 0;

	assert_non_null(file);
	length = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	while (at + 12 <= length && at + word(bytes + at + 4) <= length) {
		const uint8_t *block = bytes + at;
		const uint8_t *end = block + word(block + 4) - 4;

		assert_int_equal(word(end), word(block + 4));
		if (at == 0)
			assert_int_equal(word(block), 0x0a0d0d0a);
		if (word(block) == 1) {
			assert_int_equal(half(block + 8), LINKTYPE_ERF);
			option(block + 16, end, 2,
			       reading.interfaces[reading.interface_count++]);
		}
		if (word(block) == 6)
			read_packet(&reading, block, end);
		at += word(block + 4);
	}
	reading.whole = at == length;
	return reading;
}

static void capture(struct subnet *subnet, const char *where)
{
	uint32_t port = NONE;
	char why[256];

	if (where)
		assert_int_equal(capture_port(&subnet->fabric, where, &port, why), 0);
	assert_int_equal(capture_to(&subnet->fabric, name, port, START), 0);
}

static bool ask_node(struct subnet *subnet, uint32_t node)
{
	begin(subnet, CLASS_SMP, METHOD_GET, IB_ATTR_NODE_INFO, 0);
	subnet->dlid = lid_of(subnet, node);
	return asked(subnet);
}

/*
 * The places of the packets so far, such as "near/1 alpha/1", with their comments in brackets.
 */
static void assert_seen(const char *expected)
{
	struct reading reading = read_capture();
	char text[2000] = "";

	assert_true(reading.whole);
	for (unsigned int i = 0; i < reading.count; i++) {
		const struct seen *seen = &reading.packets[i];
		size_t used = strlen(text);

		snprintf(text + used, sizeof(text) - used, "%s%s%s%s%s", used ? " " : "",
			 seen->interface, seen->comment[0] ? "[" : "", seen->comment,
			 seen->comment[0] ? "]" : "");
	}
	assert_string_equal(text, expected);
}

/* --- which packets are captured ------------------------------------------------- */

SUBNET_TEST(a_packet_is_captured_once_on_each_link_that_it_crosses)
{
	capture(subnet, NULL);
	assert_true(ask_along(subnet, PATH(1, 4, 1)));
	assert_seen("near/1 far/4 gamma/1 far/1 near/4 alpha/1");
}

SUBNET_TEST(a_packet_that_crosses_no_link_is_not_captured)
{
	capture(subnet, NULL);
	assert_true(ask_node(subnet, ALPHA));
	assert_seen("");
}

SUBNET_TEST(a_lost_packet_is_captured_where_it_left)
{
	static const struct {
		const char *rule, *at;
		unsigned int hops;
		const char *seen;
	} rows[] = {
		{"loss 100% on far/4", NULL, 3, "near/1 near/4[lost at near/4]"},
		{"loss 100% on near/4", "near/4", 3, "near/4[lost at near/4]"},
		{"loss 100% on near/4", "far/4", 3, ""},
		{"silent on near", NULL, 1, "near/1[ignored at near/1]"},
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		rules(subnet, "clear", rows[i].rule);
		capture(subnet, rows[i].at);
		assert_false(ask_along(subnet, (const uint8_t[]){1, 4, 1}, rows[i].hops));
		assert_seen(rows[i].seen);
		capture_free(&subnet->fabric);
	}
}

BARE_TEST(a_packet_that_goes_no_further_is_captured_where_it_was_seen_last)
{
	rule(subnet, "link down on near/4");
	capture(subnet, NULL);
	assert_false(ask_along(subnet, PATH(1, 4, 1)));
	assert_seen("near/1[link down at near/4]");
}

SUBNET_TEST(each_copy_of_a_packet_is_captured)
{
	rule(subnet, "duplicate 100% on near/1");
	capture(subnet, NULL);
	send_note(subnet, lid_of(subnet, GAMMA));
	settle(&subnet->fabric);
	assert_int_equal(read_capture().count, 6);
	assert_string_equal(read_capture().packets[1].comment, "duplicated at alpha/1");
}

SUBNET_TEST(a_capture_at_a_port_has_packets_in_both_directions)
{
	struct reading reading;

	capture(subnet, "near/4");
	assert_true(ask_along(subnet, PATH(1, 4, 1)));
	assert_true(ask_along(subnet, PATH(1)));
	assert_seen("near/4 near/4");
	reading = read_capture();
	assert_int_equal(reading.packets[0].flags, 2); /* outbound */
	assert_int_equal(reading.packets[1].flags, 1);
}

/* --- their data ----------------------------------------------------------------- */

SUBNET_TEST(a_directed_route_has_permissive_lids_and_the_hop_pointer_of_the_link)
{
	static const uint8_t hop_pointers[] = {1, 2, 2, 1};
	struct reading reading;

	capture(subnet, NULL);
	assert_true(ask_along(subnet, PATH(1, 4)));
	reading = read_capture();
	assert_int_equal(reading.count, COUNT_OF(hop_pointers));
	for (unsigned int i = 0; i < reading.count; i++) {
		const uint8_t *frame = reading.packets[i].frame;

		assert_int_equal(get16(frame + 2), PERMISSIVE_LID);
		assert_int_equal(get16(frame + 6), PERMISSIVE_LID);
		assert_int_equal(frame[0] >> 4, 15);
		assert_int_equal(frame[MAD_BEGIN + 6], hop_pointers[i]);
	}
}

SUBNET_TEST(other_packets_have_the_lids_of_their_ends)
{
	struct reading reading;

	capture(subnet, NULL);
	assert_true(ask_node(subnet, GAMMA));
	reading = read_capture();
	for (unsigned int i = 0; i < reading.count; i++) {
		const uint8_t *frame = reading.packets[i].frame;
		bool request = i < reading.count / 2;

		assert_int_equal(get16(frame + 2), lid_of(subnet, request ? GAMMA : ALPHA));
		assert_int_equal(get16(frame + 6), lid_of(subnet, request ? ALPHA : GAMMA));
	}
}

/* The third packet is corrupted at the node far. */
static struct reading capture_corruption(struct subnet *subnet)
{
	struct reading reading;

	capture(subnet, NULL);
	rule(subnet, "corrupt 100% on gamma/1");
	send_note(subnet, lid_of(subnet, GAMMA));
	settle(&subnet->fabric);
	reading = read_capture();
	assert_int_equal(reading.count, 3);
	return reading;
}

SUBNET_TEST(a_corrupted_packet_is_captured_as_it_arrives)
{
	struct reading reading = capture_corruption(subnet);

	assert_memory_equal(reading.packets[0].frame + MAD_BEGIN,
			    reading.packets[1].frame + MAD_BEGIN, MAD_BYTES);
	assert_memory_not_equal(reading.packets[1].frame + MAD_BEGIN,
				reading.packets[2].frame + MAD_BEGIN, MAD_BYTES);
	assert_non_null(strstr(reading.packets[2].comment, "corrupted at far/1"));
}

SUBNET_TEST(names_have_no_control_characters)
{
	struct reading reading;

	subnet->fabric.graph.nodes[FAR].name[0] = '\x1b';
	reading = capture_corruption(subnet);
	assert_ptr_equal(strstr(reading.packets[1].interface, "?ar/"),
			 reading.packets[1].interface);
	assert_non_null(strstr(reading.packets[2].comment, "corrupted at ?ar/1"));
}

SUBNET_TEST(packets_have_the_numbers_of_the_trace)
{
	struct reading reading;

	capture(subnet, NULL);
	start_trace(subnet);
	assert_true(ask_along(subnet, PATH(1)));
	assert_true(ask_along(subnet, PATH(1)));
	reading = read_capture();
	assert_int_equal(reading.count, 4);
	for (unsigned int i = 0; i < reading.count; i++)
		assert_int_equal(reading.packets[i].number, i + 1);
	assert_true(traced(subnet, "4 received at alpha/1"));
}

SUBNET_TEST(packets_have_the_time_at_which_they_are_on_the_link)
{
	struct reading reading;

	rule(subnet, "hop-latency 10us");
	capture(subnet, NULL);
	assert_false(ask_along(subnet, PATH(1, 4)));
	assert_int_equal(read_capture().count, 0);
	pass(&subnet->fabric, 15 * MICROSECOND);
	assert_int_equal(read_capture().count, 1);
	pass(&subnet->fabric, SECOND);
	reading = read_capture();
	assert_int_equal(reading.count, 4);
	for (unsigned int i = 0; i < reading.count; i++)
		assert_int_equal(reading.packets[i].time - START, (i + 1) * 10 * MICROSECOND);
}

SUBNET_TEST(no_packet_is_before_those_in_the_file)
{
	struct reading reading;

	rule(subnet, "hop-latency 10us");
	capture(subnet, NULL);
	assert_false(ask_along(subnet, PATH(1, 4, 1)));
	pass(&subnet->fabric, 5 * MICROSECOND);
	assert_false(ask_along(subnet, PATH(1)));
	subnet->fabric.now += MILLISECOND; /* timers run late */
	settle(&subnet->fabric);
	reading = read_capture();
	assert_int_equal(reading.count, 8);
	for (unsigned int i = 1; i < reading.count; i++)
		assert_true(reading.packets[i - 1].time <= reading.packets[i].time);
}

/* --- the file ------------------------------------------------------------------- */

TEST(packets_in_flight_at_the_end_are_captured)
{
	struct subnet *subnet = new_subnet(false, 7);

	rule(subnet, "hop-latency 10us");
	capture(subnet, NULL);
	ask_along(subnet, PATH(1, 4, 1));
	free_subnet(subnet);
	assert_seen("near/1 far/4 gamma/1");
}

SUBNET_TEST(a_full_disk_ends_the_capture_with_a_whole_packet)
{
	struct rlimit before, limit = {.rlim_cur = 2000, .rlim_max = RLIM_INFINITY};
	unsigned int count;

	capture(subnet, NULL);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit.rlim_max = before.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (int i = 0; i < 10; i++)
		assert_true(ask_along(subnet, PATH(1)));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	count = read_capture().count;
	assert_in_range(count, 1, 5);
	assert_true(read_capture().whole);
	assert_true(ask_along(subnet, PATH(1)));
	assert_int_equal(read_capture().count, count);
}

SUBNET_TEST(a_file_that_cannot_be_written_is_an_error)
{
	assert_int_equal(capture_to(&subnet->fabric, "/nowhere/file", NONE, START), -ENOENT);
	assert_null(subnet->fabric.capture);
	assert_int_equal(capture_to(&subnet->fabric, "/dev/full", NONE, START), -ENOSPC);
	assert_null(subnet->fabric.capture);
	assert_true(ask_along(subnet, PATH(1)));
}

static void assert_no_port(const struct subnet *subnet, const char *text, const char *expected)
{
	uint32_t port;
	char why[256];

	assert_int_equal(capture_port(&subnet->fabric, text, &port, why), -EINVAL);
	assert_string_equal(why, expected);
}

SUBNET_TEST(a_port_is_a_node_and_a_number)
{
	uint32_t port;
	char why[256];

	assert_int_equal(capture_port(&subnet->fabric, "near/4", &port, why), 0);
	assert_int_equal(port, port_of(subnet, NEAR, 4));
	assert_int_equal(capture_port(&subnet->fabric, "0x3000/1", &port, why), 0);
	assert_int_equal(port, port_of(subnet, GAMMA, 1));
	assert_no_port(subnet, "near", "\"near\" is not NODE/PORT");
	assert_no_port(subnet, "near/", "\"near/\" is not NODE/PORT");
	assert_no_port(subnet, "near/4x", "\"near/4x\" is not NODE/PORT");
	assert_no_port(subnet, "near/-1", "\"near/-1\" is not NODE/PORT");
	assert_no_port(subnet, "remote/1", "no node \"remote\"");
	assert_no_port(subnet, "near/0", "near has ports 1 to 6");
	assert_no_port(subnet, "near/7", "near has ports 1 to 6");
	assert_no_port(subnet, "near/4294967297", "near has ports 1 to 6");
}

static int make_file(void)
{
	int file = mkstemp(name);

	return file < 0 ? -1 : close(file);
}

static int remove_file(void)
{
	return unlink(name);
}

GROUP(make_file, remove_file);
