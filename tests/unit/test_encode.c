/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Headers, packets, transaction IDs, addresses. The vectors have the bytes of the usual cases.
 */

#include "kept_log.h"
#include "test.h"

#include <infiniband/mad_fields.h>
#include <infiniband/umad.h>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static uint8_t umad[sizeof(struct ib_user_mad) + IB_MAD_SIZE];

TEST(a_directed_route_needs_a_path_of_up_to_63_hops)
{
	static const int bad[] = {-1, 64, INT32_MAX, INT32_MIN};
	ib_rpc_t rpc = {.mgtclass = IB_SMI_DIRECT_CLASS, .trid = 1};
	uint8_t mad[IB_MAD_SIZE] = {0};
	ib_portid_t to = {0};

	keep_log(0);
	assert_fails_null(mad_encode(mad, &rpc, NULL, NULL), EINVAL);
	assert_non_null(strstr(kept.text, "a MAD with a directed route needs a path"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		to.drpath.cnt = bad[i];
		assert_fails_null(mad_encode(mad, &rpc, &to.drpath, NULL), EINVAL);
		assert_non_null(strstr(kept.text, "a directed route cannot have "));
		assert_int_equal(mad_build_pkt(umad, &rpc, &to, NULL, NULL), -1);
	}
	end_log();
	to.drpath.cnt = 63;
	assert_ptr_equal(mad_encode(mad, &rpc, &to.drpath, NULL), mad + IB_MAD_SIZE);
	assert_int_equal(mad[7], 63);
}

TEST(a_status_has_the_direction_of_a_directed_route)
{
	ib_rpc_t rpc = {.mgtclass = IB_SMI_DIRECT_CLASS, .trid = 1, .rstatus = 0x8102};
	ib_dr_path_t path = {.cnt = 2, .p = {0, 3, 4}, .drslid = 0x1234, .drdlid = 0x5678};
	uint8_t mad[IB_MAD_SIZE] = {[6] = 5 /* of an earlier packet */};

	rpc.method = IB_MAD_METHOD_GET;
	assert_non_null(mad_encode(mad, &rpc, &path, NULL));
	assert_memory_equal(mad + 4, "\1\2\0\2", 4);
	assert_memory_equal(mad + 32, "\x12\x34\x56\x78\0", 5);
	assert_memory_equal(mad + 128, path.p, sizeof(path.p));
	memset(mad, 0, sizeof(mad));
	rpc.method = IB_MAD_METHOD_GET_RESPONSE;
	rpc.rstatus = 0x0102;
	assert_non_null(mad_encode(mad, &rpc, &path, NULL));
	assert_memory_equal(mad + 4, "\x81\2\3\2", 4);
	assert_memory_equal(mad + 192, path.p, sizeof(path.p));
}

TEST(a_directed_route_may_begin_at_a_lid)
{
	static const int rows[][3] = {
		{-1, 9, 0xffff}, {0, 9, 0xffff}, {1, 9, 1}, {1, 0xffff, 0xffff}};
	ib_rpc_t rpc = {.mgtclass = IB_SMI_DIRECT_CLASS, .trid = 1};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		ib_portid_t to = {.lid = rows[i][0],
				  .drpath = {.drslid = (uint16_t)rows[i][1]}};

		assert_int_equal(mad_build_pkt(umad, &rpc, &to, NULL, NULL), IB_MAD_SIZE);
		assert_int_equal(be16toh(umad_get_mad_addr(umad)->lid), rows[i][2]);
	}
}

TEST(data_beyond_the_mad_is_refused)
{
	static const struct {
		int offset, size;
	} bad[] = {{64, 193},
		   {256, 1},
		   {257, 0},
		   {-1, 4},
		   {64, -1},
		   {0, 257},
		   {INT32_MAX, 64},
		   {64, INT32_MAX},
		   {INT32_MIN, 64},
		   {64, INT32_MIN},
		   {INT32_MAX, INT32_MAX}},
	  good[] = {{0, 256}, {64, 192}, {64, 0}, {256, 0}, {255, 1}};
	ib_rpc_t rpc = {.mgtclass = IB_PERFORMANCE_CLASS, .trid = 1};
	uint8_t data[IB_MAD_SIZE] = {0};
	ib_portid_t to = {.lid = 1};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		rpc.dataoffs = bad[i].offset;
		rpc.datasz = bad[i].size;
		assert_fails_minus_1(mad_build_pkt(umad, &rpc, &to, NULL, data), EINVAL);
		/* without data the offset is not checked */
		assert_int_equal(mad_build_pkt(umad, &rpc, &to, NULL, NULL), 256);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		rpc.dataoffs = good[i].offset;
		rpc.datasz = good[i].size;
		assert_int_equal(mad_build_pkt(umad, &rpc, &to, NULL, data), 256);
	}
	assert_int_equal(mad_build_pkt(NULL, &rpc, &to, NULL, data), -1);
	assert_int_equal(mad_build_pkt(umad, NULL, &to, NULL, data), -1);
	assert_int_equal(mad_build_pkt(umad, &rpc, NULL, NULL, data), -1);
}

/* The byte before the OUI is the caller's. */
TEST(an_oui_has_three_bytes_and_a_transaction_id_is_drawn_and_told)
{
	ib_rpc_t rpc = {.mgtclass = 0x30, .oui = 0xff123456};
	uint8_t mad[IB_MAD_SIZE] = {[36] = 0xa5};

	assert_non_null(mad_encode(mad, &rpc, NULL, NULL));
	assert_memory_equal(mad + 36, "\xa5\x12\x34\x56", 4);
	assert_true(rpc.trid != 0);
	assert_true(mad_get_field64(mad, 0, IB_MAD_TRID_F) == rpc.trid);
}

/* IDs that four threads generate at once. */
#define DRAWN 20000
static uint64_t drawn[4][DRAWN];

static void *draw(void *ids)
{
	for (int i = 0; i < DRAWN; i++)
		((uint64_t *)ids)[i] = mad_trid();
	return NULL;
}

static int compare_ids(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

TEST(no_two_threads_draw_the_same_id)
{
	pthread_t threads[4];
	uint64_t *ids = drawn[0];

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, draw, drawn[i]), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	qsort(ids, 4 * DRAWN, sizeof(*ids), compare_ids);
	assert_true(ids[0] > 0);
	assert_true(ids[4 * DRAWN - 1] <= UINT32_MAX);
	for (int i = 1; i < 4 * DRAWN; i++)
		assert_true(ids[i - 1] < ids[i]);
}

TEST(a_child_does_not_go_on_where_its_parent_does)
{
	uint64_t before = mad_trid(), childs = 0;
	int ends[2];
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		childs = mad_trid();
		_exit(write(ends[1], &childs, sizeof(childs)) != sizeof(childs));
	}
	assert_int_equal(read(ends[0], &childs, sizeof(childs)), sizeof(childs));
	waitpid(child, NULL, 0);
	close(ends[0]);
	close(ends[1]);
	/* one of 2^32 first IDs: an equal one is improbable */
	assert_true(childs != mad_trid());
	assert_true(childs != before + 1);
}

TEST(what_is_no_route_leaves_it_empty)
{
	char bad[] = "|x|0,1x|0,,1|0, ,1| |0 1|-1|0,256|0,300|0x1|\n|0;1|,|, |0,1,\n|0,1 5|"
		     "0,1 x|+1|0,1,,|0,-1|0, 1,,|99999999999999999999",
	     *rest = bad, *route, text[400] = "0";
	ib_dr_path_t path;

	while ((route = strsep(&rest, "|"))) {
		memset(&path, 0x55, sizeof(path));
		assert_fails_minus_1(str2drpath(&path, route, 0, 0), EINVAL);
		assert_int_equal(path.cnt, 0);
		assert_int_equal(path.p[0], 0);
	}
	assert_int_equal(str2drpath(&path, NULL, 0, 0), -1);
	for (size_t i = 1; i <= 63; i++)
		strcat(text, ",7");
	assert_int_equal(str2drpath(&path, text, 0, 0), 63);
	strcat(text, ",7");
	assert_int_equal(str2drpath(&path, text, 0, 0), -1);
	assert_int_equal(path.cnt, 0);
}

/* as fgets() reads a route that a person wrote */
TEST(a_route_may_have_blanks_and_a_newline_around_its_numbers)
{
	char routes[] = "0,1,5|0, 1, 5|0,1,5\n| 0,1,5|0 ,1 ,5|0,1,5 |0,\t1,5\n|"
			"\n 0 \r\n, 1\v,\f5 |0,1,5\r\n|0,1 , 5,",
	     *rest = routes, *route;
	ib_dr_path_t path;

	while ((route = strsep(&rest, "|"))) {
		assert_int_equal(str2drpath(&path, route, 0, 0), 2);
		assert_memory_equal(path.p, "\0\1\5", 3);
	}
}

TEST(a_route_prints_into_what_room_there_is)
{
	ib_dr_path_t path = {.cnt = 2, .p = {0, 10, 200}, .drslid = 1, .drdlid = 2};
	static const char whole[] = "slid 1; dlid 2; 0,10,200";
	char text[64];

	for (size_t size = 1; size < sizeof(text); size++) {
		memset(text, 'x', sizeof(text));
		assert_ptr_equal(drpath2str(&path, text, size), text);
		assert_true(strlen(text) < size);
		assert_int_equal(strncmp(text, whole, strlen(text)), 0);
	}
	assert_string_equal(text, whole);
	text[0] = 'x';
	drpath2str(&path, text, 0);
	assert_int_equal(text[0], 'x');
	drpath2str(&path, text, SIZE_MAX);
	assert_string_equal(text, whole);
}

TEST(a_hop_count_out_of_range_reads_nothing_beyond_the_route)
{
	static const int bad[] = {64, 1000, INT32_MAX, -1, INT32_MIN};
	ib_portid_t portid = {0};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		portid.drpath.cnt = bad[i];
		assert_true(strlen(portid2str(&portid)) < 200);
		assert_int_equal(portid2portnum(&portid), -1);
	}
}

static void *print_address(void *arg)
{
	ib_portid_t portid = {.lid = 9};

	(void)arg;
	assert_string_equal(portid2str(&portid), "Lid 9");
	return NULL;
}

TEST(each_thread_has_its_own_text)
{
	ib_portid_t portid = {.lid = 5};
	const char *text = portid2str(&portid);
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, print_address, NULL), 0);
	pthread_join(thread, NULL);
	assert_string_equal(text, "Lid 5");
}

TEST(a_portid_is_set_whole_and_vendor_ranges_have_ends)
{
	ib_portid_t portid, wanted = {.lid = 3, .qp = 1, .qkey = 0x80010000};

	memset(&portid, 0x55, sizeof(portid));
	assert_int_equal(ib_portid_set(&portid, 3, 1, (int)0x80010000), 0);
	assert_memory_equal(&portid, &wanted, sizeof(wanted));
	for (int class = 0; class < 256; class ++) {
		assert_int_equal(mad_is_vendor_range1(class), class >= 0x09 && class <= 0x0f);
		assert_int_equal(mad_is_vendor_range2(class), class >= 0x30 && class <= 0x4f);
	}
}

TEST(bytes_are_dumped_in_pairs)
{
	uint8_t bytes[18];
	char text[128] = "";
	FILE *file = tmpfile();

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 15);
	xdump(file, "bytes: ", bytes, 3);
	xdump(file, NULL, bytes, 16);
	xdump(file, "18\n", bytes, 18);
	xdump(file, "none\n", bytes, -1);
	rewind(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	assert_string_equal(text, "bytes: 000f 1e\n"
				  "000f 1e2d 3c4b 5a69 7887 96a5 b4c3 d2e1\n"
				  "18\n000f 1e2d 3c4b 5a69 7887 96a5 b4c3 d2e1\nf0ff \n"
				  "none\n");
}
