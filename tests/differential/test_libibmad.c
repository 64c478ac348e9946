/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Compares our libibmad with the distribution's, which is loaded by its path: every field and
 * every printer must give the same result for random inputs. TEST_SEED sets the seed,
 * TEST_ROUNDS the number of inputs.
 */

#include <infiniband/mad_fields.h>
#include <infiniband/umad.h>

#include <dlfcn.h>
#include <stddef.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* 0: the number is no field. */
static unsigned field_bits(enum MAD_FIELDS field)
{
	const struct mad_field *info = mad_field_info(field);

	return info ? info->bits : 0;
}

#define SKIPPED 77

static void *theirs;

/* A small random number generator: the same numbers on every machine for the same seed. */
static uint64_t random_state;

static uint64_t random64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void random_bytes(void *bytes, size_t size)
{
	uint8_t *at = bytes;

	while (size--)
		*at++ = (uint8_t)(random64() >> 24);
}

static unsigned long differences;

static void report(const char *what, unsigned number, const char *ours, const char *reference)
{
	if (differences++ < 20)
		printf("%s %u: \"%s\", the reference \"%s\"\n", what, number, ours, reference);
}

/* --- fields --------------------------------------------------------------------- */

/*
 * Fields that the distribution's library may not have, or handles differently from version 64.
 */
static unsigned last_field;

#define THEIRS(name) ((__typeof__(&name))dlsym(theirs, #name))

/* Any number of the enumeration, a field or a marker. */
static enum MAD_FIELDS random_field(void)
{
	return (enum MAD_FIELDS)(random64() % last_field);
}

static void compare_names(void)
{
	for (unsigned id = 0; id < last_field; id++) {
		const char *ours = mad_field_name((enum MAD_FIELDS)id);
		const char *reference = THEIRS(mad_field_name)((enum MAD_FIELDS)id);

		if (!ours || !reference || strcmp(ours, reference))
			report("name", id, ours ? ours : "(null)",
			       reference ? reference : "(null)");
	}
}

static void compare_field(void)
{
	static uint8_t ours[1024], reference[1024];
	enum MAD_FIELDS field = random_field();
	unsigned bits = field_bits(field);
	int base = (int)(random64() % 300);
	char a[32], b[32];

	random_bytes(ours, sizeof(ours));
	memcpy(reference, ours, sizeof(ours));
	if (bits <= 32) {
		uint32_t value = (uint32_t)random64();

		snprintf(a, sizeof(a), "%x", mad_get_field(ours, base, field));
		snprintf(b, sizeof(b), "%x", THEIRS(mad_get_field)(reference, base, field));
		/* the reference accepts no bits above the field's width */
		if (bits < 32)
			value &= (1u << bits) - 1;
		mad_set_field(ours, base, field, value);
		THEIRS(mad_set_field)(reference, base, field, value);
	} else if (bits == 64) {
		uint64_t value = random64();

		snprintf(a, sizeof(a), "%llx",
			 (unsigned long long)mad_get_field64(ours, base, field));
		snprintf(b, sizeof(b), "%llx",
			 (unsigned long long)THEIRS(mad_get_field64)(reference, base, field));
		mad_set_field64(ours, base, field, value);
		THEIRS(mad_set_field64)(reference, base, field, value);
	} else {
		uint8_t value[256], other[256];

		mad_get_array(ours, base, field, value);
		THEIRS(mad_get_array)(reference, base, field, other);
		snprintf(a, sizeof(a), "same");
		snprintf(b, sizeof(b), memcmp(value, other, bits / 8) ? "different" : "same");
		random_bytes(value, sizeof(value));
		mad_set_array(ours, base, field, value);
		THEIRS(mad_set_array)(reference, base, field, value);
	}
	if (!bits) {
		uint64_t value = random64(), other = value;

		mad_get_array(ours, base, field, &value);
		THEIRS(mad_get_array)(reference, base, field, &other);
		if (value != other)
			report("get array", field, "other", "value");
		mad_set_array(ours, base, field, &value);
		THEIRS(mad_set_array)(reference, base, field, &other);
	}
	if (strcmp(a, b))
		report("get", field, a, b);
	if (memcmp(ours, reference, sizeof(ours)))
		report("set", field, "other bytes", "bytes");
}

/*
 * A number that is not a field is not read, written or printed. The reference follows a null
 * pointer to the printer, or reads 32 or 64 bits.
 */
static void expect_no_field(enum MAD_FIELDS field, uint8_t *image, const uint8_t *before)
{
	uint64_t value = 0x5a5a5a5a5a5a5a5a;
	char text[64];

	mad_decode_field(image, field, &value);
	mad_encode_field(image, field, &value);
	mad_set_field64(image, 0, field, value);
	if (value != 0x5a5a5a5a5a5a5a5a || memcmp(image, before, 1024) ||
	    mad_get_field64(image, 0, field))
		report("no field", field, "a value", "none");
	if (mad_dump_field(field, text, sizeof(text), &value) ||
	    mad_dump_val(field, text, sizeof(text), &value))
		report("no field", field, "a text", "none");
}

static void compare_coding(void)
{
	static uint8_t ours[1024], reference[1024];
	enum MAD_FIELDS field = random_field();
	uint64_t a[64] = {0}, b[64] = {0};

	random_bytes(ours, sizeof(ours));
	memcpy(reference, ours, sizeof(ours));
	if (!field_bits(field)) {
		expect_no_field(field, ours, reference);
		return;
	}
	mad_decode_field(ours, field, a);
	THEIRS(mad_decode_field)(reference, field, b);
	if (memcmp(a, b, sizeof(a)))
		report("decode", field, "other", "value");
	mad_encode_field(ours, field, a);
	THEIRS(mad_encode_field)(reference, field, a);
	if (memcmp(ours, reference, sizeof(ours)))
		report("encode", field, "other bytes", "bytes");
}

/* --- printers ------------------------------------------------------------------- */

static void compare_value_text(void)
{
	enum MAD_FIELDS field = random_field();
	static uint8_t image[1024];
	uint64_t value[64] = {0};
	char a[4096] = "", b[4096] = "";

	random_bytes(image, sizeof(image));
	if (!field_bits(field)) {
		static uint8_t before[1024];

		memcpy(before, image, sizeof(image));
		expect_no_field(field, image, before);
		return;
	}
	if (random64() % 4 == 0)
		memset(image, random64() % 2 ? 0 : 0xff, sizeof(image));
	mad_decode_field(image, field, value);
	mad_dump_field(field, a, sizeof(a), value);
	THEIRS(mad_dump_field)(field, b, sizeof(b), value);
	if (strcmp(a, b))
		report("dump", field, a, b);
}

static char printer_names[] =
	"int uint hex rhex bitfield array string linkwidth linkwidthsup linkwidthen "
	"linkdowndefstate linkspeed linkspeedsup linkspeeden linkspeedext linkspeedextsup "
	"linkspeedexten portstate portstates physportstate portcapmask portcapmask2 mtu "
	"vlcap opervls node_type sltovl vlarbitration nodedesc nodeinfo portinfo "
	"switchinfo perfcounters perfcounters_ext perfcounters_xmt_sl perfcounters_rcv_sl "
	"perfcounters_xmt_disc perfcounters_rcv_err portsamples_control "
	"port_ext_speeds_counters perfcounters_port_op_rcv_counters "
	"perfcounters_port_flow_ctl_counters perfcounters_port_vl_op_packet "
	"perfcounters_port_vl_op_data perfcounters_port_vl_xmit_flow_ctl_update_errors "
	"perfcounters_port_vl_xmit_wait_counters perfcounters_sw_port_vl_congestion "
	"perfcounters_rcv_con_ctrl perfcounters_sl_rcv_fecn perfcounters_sl_rcv_becn "
	"perfcounters_xmit_con_ctrl perfcounters_vl_xmit_time_cong mlnx_ext_port_info "
	"cc_congestioninfo cc_congestionkeyinfo cc_congestionlog cc_congestionlogswitch "
	"cc_congestionlogentryswitch cc_congestionlogca cc_congestionlogentryca "
	"cc_switchcongestionsetting cc_switchportcongestionsettingelement "
	"cc_cacongestionsetting cc_cacongestionentry cc_congestioncontroltable "
	"cc_congestioncontroltableentry cc_timestamp classportinfo portsamples_result "
	"portinfo_ext port_ext_speeds_counters_rsfec_active linkspeedext2 linkspeedextsup2 "
	"linkspeedexten2";

/* mad_dump_NAME() has the name. */
static const char *random_printer(void)
{
	static const char *printers[100];
	static size_t count;

	if (!count)
		for (char *name = strtok(printer_names, " "); name; name = strtok(NULL, " "))
			printers[count++] = name;
	return printers[random64() % count];
}

/* A printer, and the number of bytes of its value; 0: any number. */
static int value_size(const char *name)
{
	if (!strcmp(name, "array") || !strcmp(name, "string"))
		return 1 + (int)(random64() % 60);
	if (!strcmp(name, "nodedesc") || !strcmp(name, "vlarbitration"))
		return 64;
	return 1 + (int)(random64() % 8);
}

static void compare_printer(void)
{
	const char *printer = random_printer();
	ib_mad_dump_fn *ours, *reference;
	char name[80], a[8192] = "", b[8192] = "";
	uint64_t value[128];
	int size;

	snprintf(name, sizeof(name), "mad_dump_%s", printer);
	ours = (ib_mad_dump_fn *)dlsym(RTLD_DEFAULT, name);
	reference = (ib_mad_dump_fn *)dlsym(theirs, name);
	if (!reference)
		return; /* an older distribution's library */
	random_bytes(value, sizeof(value));
	if (random64() % 4 == 0)
		value[0] = random64() % 64;
	/* a NUL in the middle of the bytes, and at the end */
	if (random64() % 2)
		((uint8_t *)value)[random64() % 64] = 0;
	size = value_size(printer);
	ours(a, sizeof(a), value, size);
	reference(b, sizeof(b), value, size);
	if (strcmp(a, b))
		report(name, (unsigned)size, a, b);
}

/* --- headers and addresses ------------------------------------------------------ */

static void compare_packet(void)
{
	static const int classes[] = {0x01, 0x81, 0x03, 0x04, 0x05, 0x06,
				      0x09, 0x0f, 0x21, 0x30, 0x32, 0x4f};
	uint8_t ours[320] = {0}, reference[320] = {0}, data[64];
	ib_rmpp_hdr_t rmpp = {.type = (int)(random64() % 5), .flags = (int)(random64() % 8)};
	ib_rpc_cc_t rpc = {0};
	ib_portid_t to = {0};
	int with_rmpp = random64() % 2, a, b;

	random_bytes(data, sizeof(data));
	rpc.mgtclass = classes[random64() % (sizeof(classes) / sizeof(*classes))];
	rpc.method = (int)(random64() % 256);
	rpc.attr.id = (unsigned)random64() & 0xffff;
	rpc.attr.mod = (unsigned)random64();
	rpc.rstatus = (unsigned)random64() & 0x7fff;
	rpc.dataoffs = 64;
	rpc.datasz = (int)(random64() % 65);
	rpc.trid = random64() | 1;
	rpc.mask = random64();
	rpc.oui = (unsigned)random64() & 0xffffff;
	/* the reference has the SM_Key at another offset, and may not have the CC_Key */
	if (rpc.mgtclass != 0x03)
		rpc.mkey = random64();
	to.lid = (int)(random64() % 0xc000);
	to.drpath.cnt = (int)(random64() % 64);
	random_bytes(to.drpath.p, sizeof(to.drpath.p));
	to.drpath.drslid = random64() % 2 ? (uint16_t)random64() : 0;
	to.drpath.drdlid = random64() % 2 ? (uint16_t)random64() : 0;
	to.grh_present = random64() % 2;
	random_bytes(to.gid, sizeof(to.gid));
	/* SMPs go to QP0: the reference uses the caller's QP */
	to.qp = rpc.mgtclass & 0x7e ? (uint32_t)(random64() & 0xffffff) : 0;
	to.qkey = (uint32_t)random64();
	to.sl = random64() % 16;
	rmpp.status = (int)(random64() % 256);
	rmpp.d1.u = (uint32_t)random64();
	rmpp.d2.u = (uint32_t)random64();

	a = mad_build_pkt(ours, (ib_rpc_t *)&rpc, &to, with_rmpp ? &rmpp : NULL, data);
	b = THEIRS(mad_build_pkt)(reference, (ib_rpc_t *)&rpc, &to, with_rmpp ? &rmpp : NULL,
				  data);
	/* the reference does not initialise the GID index */
	reference[offsetof(struct ib_user_mad, addr.gid_index)] = 0;
	if (a != b || memcmp(ours, reference, sizeof(ours)))
		report("packet of class", (unsigned)rpc.mgtclass, "other bytes", "bytes");
}

static void compare_address(void)
{
	ib_portid_t portid = {0};
	char a[512], b[512];

	portid.lid = (int)(random64() % 3 ? random64() % 0x10000 : 0);
	portid.grh_present = random64() % 2;
	random_bytes(portid.gid, sizeof(portid.gid));
	if (random64() % 2)
		memset(portid.gid + 2, 0, 8);
	portid.drpath.cnt = (int)(random64() % 64);
	random_bytes(portid.drpath.p, sizeof(portid.drpath.p));
	snprintf(a, sizeof(a), "%s", portid2str(&portid));
	snprintf(b, sizeof(b), "%s", THEIRS(portid2str)(&portid));
	if (strcmp(a, b))
		report("portid2str", 0, a, b);
	if (portid2portnum(&portid) != THEIRS(portid2portnum)(&portid))
		report("portid2portnum", 0, "other", "number");
}

/*
 * Texts made of pieces of routes and of addresses. Ours refuses texts that are none, which the
 * reference reads somehow; whatever ours reads, the reference reads the same way.
 */
static void random_text(char *text, size_t size)
{
	static const char *const pieces[] = {"0", "1", "5",   "17", "255", ",",
					     ",", ",", ",",   " ",  "\t",  "\n",
					     "x", "-", "256", "08", ";",   ""};
	size_t length = 0, count = random64() % 12;

	text[0] = 0;
	while (count--) {
		const char *piece = pieces[random64() % (sizeof(pieces) / sizeof(*pieces))];

		length += (size_t)snprintf(text + length, size - length, "%s", piece);
	}
}

static void compare_texts(void)
{
	ib_dr_path_t ours = {0}, reference = {0};
	ib_portid_t a = {0}, b = {0};
	char text[64], copy[64];
	int count;

	random_text(text, sizeof(text));
	strcpy(copy, text);
	count = str2drpath(&ours, text, 7, 0);
	if (count >= 0 && (THEIRS(str2drpath)(&reference, copy, 7, 0) != count ||
			   memcmp(ours.p, reference.p, (size_t)count + 1)))
		report("route", (unsigned)count, text, "another route");
	random_text(text, sizeof(text));
	strcpy(copy, text);
	if (!ib_resolve_portid_str_via(&a, text, IB_DEST_LID, NULL, NULL) &&
	    (THEIRS(ib_resolve_portid_str_via)(&b, copy, IB_DEST_LID, NULL, NULL) ||
	     a.lid != b.lid))
		report("LID", (unsigned)a.lid, text, "another LID");
}

static void load_theirs(void)
{
	glob_t found;

	if (glob("/usr/lib/*-linux-gnu/libibmad.so.5", 0, NULL, &found) &&
	    glob("/usr/lib64/libibmad.so.5", 0, NULL, &found)) {
		printf("skipped: the distribution's libibmad.so.5 is not installed (Debian: "
		       "libibmad5)\n");
		exit(SKIPPED);
	}
	theirs = dlopen(found.gl_pathv[0], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	if (!theirs) {
		printf("skipped: %s\n", dlerror());
		exit(SKIPPED);
	}
	printf("compared with %s\n", found.gl_pathv[0]);
	globfree(&found);
}

int main(void)
{
	static void (*const comparisons[])(void) = {
		compare_field,  compare_coding,  compare_value_text, compare_printer,
		compare_packet, compare_address, compare_texts};
	const char *seed = getenv("TEST_SEED"), *rounds_text = getenv("TEST_ROUNDS");
	unsigned long i, rounds = rounds_text ? strtoul(rounds_text, NULL, 0) : 1200000;

	load_theirs();
	random_state = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL) << 20 | 1;
	printf("TEST_SEED=%llu\n", (unsigned long long)random_state);
	/* one more than the last number of its table; the reference reads beyond the table */
	last_field = THEIRS(mad_dump_linkspeedext2) ? IB_FIELD_LAST_ : IB_PC_QP1_DROP_F + 1;
	compare_names();
	for (i = 0; i < rounds; i++)
		comparisons[i % (sizeof(comparisons) / sizeof(*comparisons))]();
	printf("%lu inputs, %lu differences\n", rounds, differences);
	return differences != 0;
}
