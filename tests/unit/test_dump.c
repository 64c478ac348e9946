/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Every printer with every size of buffer. The buffer ends at a page end: a write of one byte
 * too many crashes. The vectors have the texts; here the texts are whole, truncated, or empty.
 */

#include "captured_output.h"
#include "fields/text.h"
#include "test.h"

#include <infiniband/mad_fields.h>
#include <infiniband/umad_ext.h>

#include <sys/mman.h>
#include <unistd.h>

/* 0: the number is no field. */
static unsigned field_bits(enum MAD_FIELDS field)
{
	const struct mad_field *info = mad_field_info(field);

	return info ? info->bits : 0;
}

#define BUFSZ_MAX 600

#define PRINTER(name)                  \
	{                              \
#name, mad_dump_##name \
	}

static const struct {
	const char *name;
	ib_mad_dump_fn *print;
} printers[] = {
	PRINTER(int),
	PRINTER(uint),
	PRINTER(hex),
	PRINTER(rhex),
	PRINTER(bitfield),
	PRINTER(array),
	PRINTER(string),
	PRINTER(linkwidth),
	PRINTER(linkwidthsup),
	PRINTER(linkwidthen),
	PRINTER(linkdowndefstate),
	PRINTER(linkspeed),
	PRINTER(linkspeedsup),
	PRINTER(linkspeeden),
	PRINTER(linkspeedext),
	PRINTER(linkspeedextsup),
	PRINTER(linkspeedexten),
	PRINTER(linkspeedext2),
	PRINTER(linkspeedextsup2),
	PRINTER(linkspeedexten2),
	PRINTER(portstate),
	PRINTER(portstates),
	PRINTER(physportstate),
	PRINTER(portcapmask),
	PRINTER(portcapmask2),
	PRINTER(mtu),
	PRINTER(vlcap),
	PRINTER(opervls),
	PRINTER(node_type),
	PRINTER(sltovl),
	PRINTER(vlarbitration),
	PRINTER(nodedesc),
	PRINTER(nodeinfo),
	PRINTER(portinfo),
	PRINTER(switchinfo),
	PRINTER(perfcounters),
	PRINTER(perfcounters_ext),
	PRINTER(perfcounters_xmt_sl),
	PRINTER(perfcounters_rcv_sl),
	PRINTER(perfcounters_xmt_disc),
	PRINTER(perfcounters_rcv_err),
	PRINTER(portsamples_control),
	PRINTER(portsamples_result),
	PRINTER(port_ext_speeds_counters),
	PRINTER(port_ext_speeds_counters_rsfec_active),
	PRINTER(perfcounters_port_op_rcv_counters),
	PRINTER(perfcounters_port_flow_ctl_counters),
	PRINTER(perfcounters_port_vl_op_packet),
	PRINTER(perfcounters_port_vl_op_data),
	PRINTER(perfcounters_port_vl_xmit_flow_ctl_update_errors),
	PRINTER(perfcounters_port_vl_xmit_wait_counters),
	PRINTER(perfcounters_sw_port_vl_congestion),
	PRINTER(perfcounters_rcv_con_ctrl),
	PRINTER(perfcounters_sl_rcv_fecn),
	PRINTER(perfcounters_sl_rcv_becn),
	PRINTER(perfcounters_xmit_con_ctrl),
	PRINTER(perfcounters_vl_xmit_time_cong),
	PRINTER(mlnx_ext_port_info),
	PRINTER(portinfo_ext),
	PRINTER(cc_congestioninfo),
	PRINTER(cc_congestionkeyinfo),
	PRINTER(cc_congestionlog),
	PRINTER(cc_congestionlogswitch),
	PRINTER(cc_congestionlogentryswitch),
	PRINTER(cc_congestionlogca),
	PRINTER(cc_congestionlogentryca),
	PRINTER(cc_switchcongestionsetting),
	PRINTER(cc_switchportcongestionsettingelement),
	PRINTER(cc_cacongestionsetting),
	PRINTER(cc_cacongestionentry),
	PRINTER(cc_congestioncontroltable),
	PRINTER(cc_congestioncontroltableentry),
	PRINTER(cc_timestamp),
	PRINTER(classportinfo),
};

/* The end of a page; the next page is not mapped. */
static char *page_end;

static int map_page(void)
{
	long page = sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED || mprotect(pages + page, (size_t)page, PROT_NONE))
		return -1;
	page_end = pages + page;
	return 0;
}

GROUP(map_page, NULL);

static uint64_t image[64];

static void fill_image(uint8_t byte)
{
	memset(image, byte, sizeof(image));
	for (unsigned i = 0; byte == 0x5a && i < sizeof(image); i++)
		((uint8_t *)image)[i] = (uint8_t)(i * 37 + 11);
}

/*
 * A truncated text is the beginning of the whole text; an attribute's last line has its
 * newline.
 */
static int is_cut_from(const char *text, const char *whole, int bufsz)
{
	size_t length = strlen(text);

	if (length >= (size_t)bufsz)
		return 0;
	if (!strncmp(text, whole, length))
		return 1;
	return length && text[length - 1] == '\n' && !strncmp(text, whole, length - 1);
}

TEST(no_printer_leaves_its_buffer)
{
	static const uint8_t fills[] = {0, 0xff, 0x5a};
	static char whole[16384];
	int valsz;
	size_t i, fill;
	char *buf;

	for (i = 0; i < sizeof(printers) / sizeof(*printers); i++) {
		for (fill = 0; fill < sizeof(fills); fill++) {
			fill_image(fills[fill]);
			valsz = strncmp(printers[i].name, "cc_", 3) ? 1 + (int)(i * 7 % 64)
								    : 192;
			printers[i].print(whole, sizeof(whole), image, valsz);
			for (int bufsz = 0; bufsz <= BUFSZ_MAX; bufsz++) {
				buf = page_end - bufsz;
				page_end[-BUFSZ_MAX - 1] = 'u';
				memset(page_end - BUFSZ_MAX, 'x', BUFSZ_MAX);
				printers[i].print(buf, bufsz, image, valsz);
				if (bufsz && !is_cut_from(buf, whole, bufsz))
					fail_msg("mad_dump_%s with %d bytes: \"%s\"",
						 printers[i].name, bufsz, buf);
				/* nor before the buffer */
				if (bufsz < BUFSZ_MAX)
					assert_int_equal(buf[-1], 'x');
			}
		}
	}
}

TEST(a_buffer_without_room_is_left_alone)
{
	for (size_t i = 0; i < sizeof(printers) / sizeof(*printers); i++) {
		printers[i].print(page_end, 0, image, 4);
		printers[i].print(page_end, -1, image, 4);
		printers[i].print(page_end, INT32_MIN, image, 4);
		printers[i].print(NULL, 0, image, 4);
	}
	assert_null(mad_dump_field(IB_PORT_STATE_F, NULL, 100, image));
}

TEST(fields_keep_to_every_size_of_buffer)
{
	enum MAD_FIELDS field;

	fill_image(0x5a);
	for (field = IB_NO_FIELD; field < IB_FIELD_LAST_; field++) {
		for (int bufsz = 0; bufsz <= 120; bufsz++) {
			char *buf = page_end - bufsz;
			char *ret = mad_dump_field(field, buf, bufsz, image);

			if (bufsz <= 32 || !field_bits(field)) {
				assert_null(ret);
			} else {
				assert_ptr_equal(ret, buf);
				assert_true(strlen(buf) < (size_t)bufsz);
				assert_int_equal(strncmp(buf, mad_field_name(field),
							 strlen(mad_field_name(field))),
						 0);
			}
			ret = mad_dump_val(field, buf, bufsz, image);
			if (!field_bits(field))
				assert_null(ret);
			else if (bufsz)
				assert_true(strlen(buf) < (size_t)bufsz);
		}
	}
}

TEST(runs_of_fields_keep_to_every_size_of_buffer)
{
	static const int ends[] = {INT32_MIN, -1, 0, 1, 50, 600, IB_FIELD_LAST_, INT32_MAX};
	int bufsz;

	fill_image(0x5a);
	for (size_t first = 0; first < sizeof(ends) / sizeof(*ends); first++)
		for (size_t last = 0; last < sizeof(ends) / sizeof(*ends); last++)
			for (bufsz = 0; bufsz < BUFSZ_MAX; bufsz += 7) {
				char *buf = page_end - bufsz;

				mad_dump_fields(buf, bufsz, image, sizeof(image), ends[first],
						ends[last]);
				if (bufsz)
					assert_true(strlen(buf) < (size_t)bufsz);
			}
}

TEST(a_run_of_fields_is_a_line_for_each)
{
	char text[256];

	fill_image(0);
	mad_dump_fields(text, sizeof(text), image, 0, IB_NODE_TYPE_F, IB_NODE_SYSTEM_GUID_F);
	assert_string_equal(text, "NodeType:........................?(0)?\n"
				  "NumPorts:........................0\n");
	/* a number that is no field has no line */
	mad_dump_fields(text, sizeof(text), image, 0, IB_SM_DATA_F, IB_SM_DATA_F + 1);
	assert_string_equal(text, "");
}

TEST(a_node_description_need_not_be_terminated)
{
	char *description = page_end - 64, text[128];

	memset(description, 'n', 64);
	mad_dump_nodedesc(text, sizeof(text), description, 64);
	assert_int_equal(strlen(text), 64);
	mad_dump_string(text, sizeof(text), description, 64);
	assert_int_equal(strlen(text), 63);
	mad_dump_nodedesc(text, sizeof(text), description, 0);
	assert_string_equal(text, "");
	strcpy(text, "x");
	mad_dump_string(text, sizeof(text), description, 0);
	assert_string_equal(text, "");
	strcpy(text, "x");
	mad_dump_string(text, sizeof(text), description, -1);
	assert_string_equal(text, "");
}

static void count_message(enum umad_log_level level, const char *text, void *user)
{
	(void)level;
	*(int *)user += strstr(text, "a number cannot have 9 bytes") != NULL;
}

TEST(a_size_that_no_number_has_is_reported)
{
	char text[64];
	int messages = 0;

	umad_set_log_hook(count_message, &messages);
	mad_dump_uint(text, sizeof(text), image, 9);
	umad_set_log_hook(NULL, NULL);
	assert_int_equal(messages, 1);
}

TEST(what_is_no_number_prints_as_nothing)
{
	static const int sizes[] = {-1, 0, 9, 64};
	char text[64];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		strcpy(text, "x");
		mad_dump_int(text, sizeof(text), image, sizes[i]);
		assert_string_equal(text, "");
		mad_dump_uint(text, sizeof(text), image, sizes[i]);
		assert_string_equal(text, "");
		mad_dump_hex(text, sizeof(text), image, sizes[i]);
		assert_string_equal(text, "");
		mad_dump_rhex(text, sizeof(text), image, sizes[i]);
		assert_string_equal(text, "");
	}
}

/* Bits above the bytes of a value are not printed. */
TEST(a_number_has_as_many_bytes_as_its_size_says)
{
	uint64_t ones = UINT64_MAX;
	int32_t negative = -5;
	char text[64];

	mad_dump_uint(text, sizeof(text), &ones, 1);
	assert_string_equal(text, "255");
	mad_dump_int(text, sizeof(text), &ones, 2);
	assert_string_equal(text, "65535");
	mad_dump_int(text, sizeof(text), &negative, 4);
	assert_string_equal(text, "-5");
	mad_dump_hex(text, sizeof(text), &ones, 1);
	assert_string_equal(text, "0xff");
	mad_dump_rhex(text, sizeof(text), &ones, 7);
	assert_string_equal(text, "ffffffffffffff");
}

TEST(a_size_beyond_the_last_address_ends_there)
{
	char *buf = (char *)(UINTPTR_MAX - 10);
	struct text text = text_begin(buf, 100);

	assert_ptr_equal(text.at, buf);
	assert_int_equal(text_room(&text), 9);
}

/* The output on stdout while a field is printed. */
static const char *printed(enum MAD_FIELDS field, const char *name, void *val, int *ret)
{
	capture_output(stdout);
	*ret = mad_print_field(field, name, val);
	return captured_output();
}

TEST(a_field_prints_a_line_and_tells_its_length)
{
	static const char longer[] = "a_name_that_is_longer_than_any_label";
	uint32_t lid = 7;
	int ret;

	assert_string_equal(printed(IB_PORT_LID_F, NULL, &lid, &ret),
			    "Lid:.............................7\n");
	assert_int_equal(ret, 35);
	assert_string_equal(printed(IB_PORT_LID_F, "Mine", &lid, &ret),
			    "Mine:............................7\n");
	assert_int_equal(ret, 35);
	assert_string_equal(printed(IB_PORT_LID_F, longer, &lid, &ret),
			    "a_name_that_is_longer_than_any_label:7\n");
	assert_int_equal(ret, 39);
	assert_string_equal(printed(IB_NO_FIELD, NULL, &lid, &ret), "");
	assert_int_equal(ret, -1);
}
