/* SPDX-License-Identifier: BSD-2-Clause */

/* The output of umad-capture: addresses in frames, filters, lines of text. */
#include "capture_fixture.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "filter.h"
#include "slowest.h"

static int set_time_zone(void)
{
	setenv("TZ", "UTC", 1);
	tzset();
	return 0;
}

GROUP(set_time_zone, NULL);

/* --- addresses ------------------------------------------------------------------ */

TEST(a_sent_gmp_goes_from_the_own_lid)
{
	struct made_packet packet = make_packet(true, CLASS_SA, METHOD_GET, 0x11);
	struct ib_user_mad umad = record_umad(&packet.record);
	struct frame_address address;

	umad.addr.qkey = htobe32(0x80010000);
	umad.addr.sl = 3;
	umad.addr.path_bits = 2;
	packet.record.lmc = 2;
	packet.record.pkey = 0x7fff;
	set_umad(&packet, &umad);
	address = packet_address(&packet.record);
	assert_int_equal(address.slid, OWN_LID | 2);
	assert_int_equal(address.dlid, OTHER_LID);
	assert_int_equal(address.source_qp, 1);
	assert_int_equal(address.qp, 1);
	assert_int_equal(address.qkey, 0x80010000);
	assert_int_equal(address.sl, 3);
	assert_int_equal(address.vl, 0);
	assert_int_equal(address.pkey, 0x7fff);
	assert_false(address.grh);
}

TEST(a_received_gmp_comes_from_the_other_side)
{
	struct made_packet packet = make_packet(false, CLASS_SA, METHOD_GET, 0x11);
	struct ib_user_mad umad = record_umad(&packet.record);
	struct frame_address address;

	umad.addr.qpn = htobe32(0x1234);
	umad.addr.grh_present = 1;
	umad.addr.gid[0] = 0xaa;
	packet.record.gid[0] = 0xbb;
	umad.addr.hop_limit = 9;
	umad.addr.flow_label = htobe32(0x12345);
	set_umad(&packet, &umad);
	address = packet_address(&packet.record);
	assert_int_equal(address.slid, OTHER_LID);
	assert_int_equal(address.dlid, OWN_LID);
	assert_int_equal(address.source_qp, 0x1234);
	assert_int_equal(address.qp, 1);
	assert_int_equal(address.qkey, 0x80010000);
	assert_true(address.grh);
	assert_int_equal(address.sgid[0], 0xaa);
	assert_int_equal(address.dgid[0], 0xbb);
	assert_int_equal(address.hop_limit, 9);
	assert_int_equal(address.flow_label, 0x12345);
	packet.record.sent = true;
	address = packet_address(&packet.record);
	assert_int_equal(address.sgid[0], 0xbb);
	assert_int_equal(address.dgid[0], 0xaa);
}

TEST(smps_have_qp0_and_lane_15)
{
	struct made_packet packet = make_packet(false, CLASS_SMP, METHOD_GET, 0x11);
	struct frame_address address = packet_address(&packet.record);

	assert_int_equal(address.vl, 15);
	assert_int_equal(address.qp, 0);
	assert_int_equal(address.source_qp, 0);
	assert_int_equal(address.qkey, 0);
}

TEST(a_directed_route_has_permissive_lids)
{
	struct made_packet packet = make_packet(true, CLASS_DIRECTED_SMP, METHOD_GET, 0x11);
	struct frame_address address;

	put16(packet.mad + 32, 0xffff);
	put16(packet.mad + 34, 0xffff);
	address = packet_address(&packet.record);
	assert_int_equal(address.slid, 0xffff);
	assert_int_equal(address.dlid, 0xffff);
	/* a directed route that begins at a LID */
	put16(packet.mad + 32, OWN_LID);
	address = packet_address(&packet.record);
	assert_int_equal(address.slid, OWN_LID);
	assert_int_equal(address.dlid, OTHER_LID);
}

/* --- filters -------------------------------------------------------------------- */

static bool matches_after(const char *text, const struct made_packet *packet,
			  int64_t round_trip)
{
	struct filter_error error;
	struct filter *filter = filter_read(text, &error);
	bool matched;

	if (!filter)
		fail_msg("\"%s\" at %zu: %s", text, error.at, error.text);
	matched = filter_match(filter, &packet->record, round_trip);
	filter_free(filter);
	return matched;
}

static bool matches(const char *text, const struct made_packet *packet)
{
	return matches_after(text, packet, -1);
}

TEST(words_match_the_kind_of_a_packet)
{
	struct made_packet request = make_packet(true, CLASS_SMP, METHOD_GET, 0x11);
	struct made_packet response = make_packet(false, CLASS_SA, METHOD_GET | 0x80, 0x35);
	struct made_packet given_back = make_packet(false, CLASS_SMP, METHOD_GET, 0x11);
	struct ib_user_mad umad = record_umad(&response.record);

	assert_true(matches("sent", &request) && !matches("sent", &response));
	assert_true(matches("received", &response) && !matches("received", &request));
	assert_true(matches("request", &request) && !matches("request", &response));
	assert_true(matches("response", &response) && !matches("response", &request));
	assert_true(matches("smp", &request) && !matches("smp", &response));
	assert_true(matches("gmp", &response) && !matches("gmp", &request));
	assert_false(matches("directed", &request));
	request.mad[1] = CLASS_DIRECTED_SMP;
	assert_true(matches("directed", &request) && matches("smp", &request));
	assert_false(matches("error", &response) || matches("rmpp", &response) ||
		     matches("grh", &response));
	put16(response.mad + 4, 0x0300);
	response.mad[26] = 1;
	umad.addr.grh_present = 1;
	set_umad(&response, &umad);
	assert_true(matches("error", &response) && matches("rmpp", &response) &&
		    matches("grh", &response));
	assert_false(matches("timeout", &response));
	umad = record_umad(&given_back.record);
	umad.status = ETIMEDOUT;
	set_umad(&given_back, &umad);
	assert_true(matches("timeout", &given_back) && matches("error", &given_back));
}

/* In the response of a directed route, the status has the direction bit. */
TEST(the_direction_is_no_error)
{
	struct made_packet packet =
		make_packet(false, CLASS_DIRECTED_SMP, METHOD_GET | 0x80, 0x11);

	put16(packet.mad + 4, 0x8000);
	assert_false(matches("error", &packet));
	assert_true(matches("status 0", &packet));
	put16(packet.mad + 4, 0x801c);
	assert_true(matches("error", &packet));
	assert_true(matches("status = 0x1c", &packet));
}

TEST(fields_are_compared)
{
	struct made_packet packet = make_packet(true, CLASS_SMP, METHOD_GET, 0x15);

	put32(packet.mad + 20, 7);
	put64(packet.mad + 8, 0x123456789abcULL);
	assert_true(matches("class 1", &packet) && matches("class=0x01", &packet));
	assert_true(matches("class == Subn", &packet) && matches("class subn", &packet));
	assert_true(matches("class != SubnAdm", &packet) && !matches("class != Subn", &packet));
	assert_true(matches("attribute PortInfo", &packet));
	assert_true(matches("attribute 21", &packet) &&
		    !matches("attribute NodeInfo", &packet));
	assert_true(matches("method Get", &packet) && !matches("method Set", &packet));
	assert_true(matches("modifier > 6", &packet) && !matches("modifier > 7", &packet));
	assert_true(matches("modifier >= 7", &packet) && matches("modifier<=7", &packet));
	assert_true(matches("modifier<8", &packet) && !matches("modifier != 7", &packet));
	assert_true(matches("tid 0x123456789abc", &packet));
	assert_true(matches("lid 0x25", &packet) && matches("length 256", &packet));
	assert_true(matches("process 7", &packet));
}

TEST(a_time_has_a_unit)
{
	struct made_packet packet = make_packet(false, CLASS_SMP, METHOD_GET | 0x80, 0x15);

	assert_true(matches_after("time > 1ms", &packet, 1000001));
	assert_false(matches_after("time > 1ms", &packet, 1000000));
	assert_true(matches_after("time >= 1ms and time <= 1000us", &packet, 1000000));
	assert_true(matches_after("time 1500ns", &packet, 1500));
	assert_true(matches_after("time<1.5us", &packet, 1499));
	assert_true(matches_after("time != 2s", &packet, 1));
	/* a packet without a request has no time */
	assert_false(matches("time >= 0ns", &packet) || matches("time != 1s", &packet));
	assert_true(matches("not time > 0ns", &packet));
}

TEST(attributes_have_the_names_of_the_specification)
{
	struct made_packet packet = make_packet(true, 0x04, METHOD_GET, 0x1d);

	assert_true(matches("attribute PortCountersExtended", &packet));
	assert_false(matches("attribute PortCounters", &packet));
	packet = make_packet(true, CLASS_DIRECTED_SMP, METHOD_GET, 0xff90);
	assert_true(matches("attribute MlnxExtPortInfo", &packet));
	packet = make_packet(true, 0x21, METHOD_GET, 0x16);
	assert_true(matches("attribute CACongestionSetting", &packet));
	assert_true(matches("attribute != CongestionInfo", &packet));
}

TEST(not_is_before_and_is_before_or)
{
	struct made_packet packet = make_packet(true, CLASS_SMP, METHOD_GET, 0x15);

	assert_true(matches("sent or received and gmp", &packet));
	assert_false(matches("(sent or received) and gmp", &packet));
	assert_true(matches("not received and sent", &packet));
	assert_false(matches("not (received or sent)", &packet));
	assert_true(matches("not not sent", &packet) && matches("!received&&sent", &packet));
	assert_true(matches("gmp||smp", &packet) && matches("NOT gmp AND Sent", &packet));
	assert_true(matches("!(gmp) && ((smp))", &packet));
	assert_true(matches("!gmp && class != 3", &packet));
}

static void refused(const char *text, size_t at)
{
	struct filter_error error = {0};

	assert_null(filter_read(text, &error));
	if (error.at != at)
		fail_msg("\"%s\": at %zu: %s", text, error.at, error.text);
	assert_true(error.text[0]);
}

TEST(a_filter_that_makes_no_sense_is_refused_with_the_place)
{
	char deep[400];

	refused("", 0);
	refused("   ", 3);
	refused("nonsense", 0);
	refused("sent and", 8);
	refused("sent received", 5);
	refused("sent and and", 9);
	refused("(sent", 5);
	refused("sent)", 4);
	refused("class", 5);
	refused("class =", 7);
	refused("class = NoSuchClass", 8);
	refused("attribute Nothing", 10);
	refused("class < Subn", 8);
	refused("lid 0x", 4);
	refused("lid 12ab", 4);
	refused("lid abc", 4);
	refused("lid -1", 4);
	refused("lid 99999999999999999999", 4);
	refused("lid 65536", 4);
	refused("class = 0x100", 8);
	refused("modifier >= 0x100000000", 12);
	refused("lid = = 5", 6);
	refused("time", 4);
	refused("time > 5", 7);
	refused("time > 5 ms", 7);
	refused("time > ms", 7);
	refused("time > 1m", 7);
	refused("time > 0x1s", 7);
	refused("time > 99999999999s", 7);
	refused("sent & received", 5);
	refused("\x80", 0);
	refused("%s", 0);
	memset(deep, '(', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	refused(deep, 64);
	memset(deep, 'a', sizeof(deep) - 1);
	refused(deep, 0);
}

/* --- lines ---------------------------------------------------------------------- */

static char line[512];

static const char *line_of(const struct made_packet *packet, int64_t round_trip)
{
	FILE *out = fmemopen(line, sizeof(line), "w");

	assert_non_null(out);
	summary_print(out, &packet->record,
		      &(struct summary_exchange){.round_trip = round_trip});
	fclose(out);
	return line;
}

TEST(a_line_describes_a_packet)
{
	struct made_packet packet = make_packet(true, CLASS_SMP, METHOD_GET, 0x15);

	packet.record.seconds = 3661;
	packet.record.nanoseconds = 42;
	put32(packet.mad + 20, 0x17);
	assert_string_equal(line_of(&packet, -1),
			    "01:01:01.000000042 > lid 37 Subn Get PortInfo mod 0x17\n");
	packet = make_packet(false, CLASS_SMP, METHOD_GET | 0x80, 0x15);
	assert_string_equal(
		line_of(&packet, 12345),
		"00:00:00.000000000 < lid 37 Subn GetResp PortInfo mod 0x0 ok 12.3 us\n");
	put16(packet.mad + 4, 0x000c);
	assert_non_null(strstr(line_of(&packet, -1), " status 0x000c ("));
}

TEST(a_line_has_the_route_and_the_gid)
{
	struct made_packet packet = make_packet(true, CLASS_DIRECTED_SMP, METHOD_GET, 0x11);
	struct ib_user_mad umad;

	put16(packet.mad + 32, 0xffff);
	put16(packet.mad + 34, 0xffff);
	packet.mad[7] = 2;
	packet.mad[129] = 1;
	packet.mad[130] = 12;
	assert_non_null(strstr(line_of(&packet, -1), " > dr 0,1,12 Subn Get NodeInfo "));
	packet.mad[7] = 255; /* an invalid length does not lead outside the MAD */
	line_of(&packet, -1);
	packet = make_packet(true, 0x04, METHOD_GET, 0x12);
	umad = record_umad(&packet.record);
	umad.addr.grh_present = 1;
	umad.addr.gid[0] = 0xfe;
	umad.addr.gid[1] = 0x80;
	umad.addr.gid[15] = 1;
	set_umad(&packet, &umad);
	assert_non_null(strstr(line_of(&packet, -1), " > lid 37 gid fe80::1 Perf Get "));
}

TEST(a_line_has_numbers_for_unknown_names)
{
	struct made_packet packet = make_packet(true, 0x32, 0x7c, 0xfedc);

	put32(packet.mad + 36, 0x001405);
	assert_non_null(strstr(line_of(&packet, -1),
			       " Vendor:0x32 oui 0x001405 0x7c 0xfedc mod 0x0\n"));
}

TEST(a_request_that_comes_back_is_a_timeout)
{
	struct made_packet packet = make_packet(false, CLASS_SMP, METHOD_GET, 0x15);
	struct ib_user_mad umad = record_umad(&packet.record);

	umad.status = ETIMEDOUT;
	set_umad(&packet, &umad);
	assert_non_null(strstr(line_of(&packet, 1000000), " timeout 1.00 ms\n"));
}

TEST(the_round_trip_is_from_the_request_to_its_response)
{
	struct made_packet request = make_packet(true, CLASS_SMP, METHOD_GET, 0x15);
	struct made_packet response = make_packet(false, CLASS_SMP, METHOD_GET | 0x80, 0x15);
	struct summary summary;

	assert_int_equal(summary_init(&summary), 0);
	put64(request.mad + 8, 77);
	put64(response.mad + 8, 0xabcd00000000ULL | 77); /* the kernel changes the upper half */
	request.record.seconds = 4;
	request.record.nanoseconds = 999999999;
	response.record.seconds = 5;
	response.record.nanoseconds = 4;
	assert_int_equal(summary_note(&summary, &request.record).round_trip, -1);
	assert_int_equal(summary_note(&summary, &response.record).round_trip, 5);
	/* only once; not for a different request */
	assert_int_equal(summary_note(&summary, &response.record).round_trip, -1);
	summary_note(&summary, &request.record);
	response.record.process++;
	assert_int_equal(summary_note(&summary, &response.record).round_trip, -1);
	response.record.process--;
	put64(response.mad + 8, 78);
	assert_int_equal(summary_note(&summary, &response.record).round_trip, -1);
	summary_free(&summary);
}

/* The kernel gives back only the header of the request. */
TEST(a_timeout_has_the_route_of_its_request)
{
	struct made_packet request = make_packet(true, CLASS_DIRECTED_SMP, METHOD_GET, 0x11);
	struct made_packet given_back = request;
	struct ib_user_mad umad = record_umad(&request.record);
	struct summary_exchange exchange;
	struct summary summary;
	FILE *out;

	assert_int_equal(summary_init(&summary), 0);
	put16(request.mad + 32, 0xffff);
	put16(request.mad + 34, 0xffff);
	request.mad[7] = given_back.mad[7] = 2;
	request.mad[129] = 3;
	request.mad[130] = 17;
	umad.status = ETIMEDOUT;
	set_umad(&given_back, &umad);
	given_back.record.sent = false;
	given_back.record.seconds = 2;
	summary_note(&summary, &request.record);
	exchange = summary_note(&summary, &given_back.record);
	out = fmemopen(line, sizeof(line), "w");
	summary_print(out, &given_back.record, &exchange);
	fclose(out);
	assert_non_null(strstr(line, "dr 0,3,17 Subn Get NodeInfo mod 0x0 timeout 2.00 s\n"));
	summary_free(&summary);
}

TEST(durations_have_the_unit_that_fits)
{
	static const struct {
		int64_t ns;
		const char *text;
	} rows[] = {{0, "0.0 us"},          {124400, "124.4 us"},   {1000000, "1.00 ms"},
		    {25670000, "25.67 ms"}, {1000000000, "1.00 s"}, {74600000000, "74.60 s"}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		FILE *out = fmemopen(line, sizeof(line), "w");

		summary_print_duration(out, rows[i].ns);
		fclose(out);
		assert_string_equal(line, rows[i].text);
	}
}

/* --- the slowest requests ------------------------------------------------------- */

/* Responses with modifier i that came after times[i]. */
static const char *slowest_of(unsigned wanted, const int64_t *times, unsigned count)
{
	static char lines[4096];
	struct slowest slowest;
	FILE *out = fmemopen(lines, sizeof(lines), "w");

	assert_int_equal(slowest_init(&slowest, wanted), 0);
	for (unsigned i = 0; i < count; i++) {
		struct made_packet packet =
			make_packet(false, CLASS_SMP, METHOD_GET | 0x80, 0x15);
		struct summary_exchange exchange = {.round_trip = times[i]};

		put32(packet.mad + 20, i);
		assert_int_equal(slowest_note(&slowest, &packet.record, &exchange), 0);
	}
	slowest_print(out, &slowest);
	fputc('\0', out);
	fclose(out);
	slowest_free(&slowest);
	return lines;
}

TEST(the_slowest_are_in_the_order_of_their_times)
{
	static const int64_t times[] = {3000, 9000, -1, 5000, 9000, 1000, 7000};
	const char *lines = slowest_of(3, times, 7);
	const char *first = strstr(lines, "mod 0x1 "), *second = strstr(lines, "mod 0x4 ");
	const char *third = strstr(lines, "mod 0x6 ok 7.0 us\n");

	assert_true(first && second && third && first < second && second < third);
	assert_string_equal(third, "mod 0x6 ok 7.0 us\n");
	assert_null(strstr(slowest_of(9, times, 7), "mod 0x2 ")); /* no request is known */
	assert_string_equal(slowest_of(2, times, 0), "");
}

/* A message may be shorter than a MAD's header. */
TEST(a_short_message_is_followed_by_zeros)
{
	static const uint32_t lengths[] = {0, 1, 23, 24, 255};

	for (unsigned int i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct packet_record *record = calloc(1, sizeof(*record) + lengths[i]);

		record->length = lengths[i];
		packet_address(record);
		line[0] = '\0';
		line_of((const struct made_packet *)record, -1);
		assert_true(line[0]);
		free(record);
	}
}
