/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An independent oracle: the library encodes fields into MADs, the program writes the MADs as a
 * capture of an InfiniBand link, and compares each field with what Wireshark decodes.
 *
 *   oracle write CAPTURE
 *      writes the capture (pcap with InfiniBand packets) for TEST_SEED
 *
 *   oracle fields
 *      prints the names of the fields for tshark, one a line
 *
 *   oracle check TSHARK-OUTPUT
 *      compares the output of tshark, for the same TEST_SEED
 */

#include <infiniband/mad_fields.h>
#include <infiniband/umad.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 50

/* A field with Wireshark's name and ours; a note if Wireshark is known to differ. */
struct pair {
	const char *theirs;
	enum MAD_FIELDS ours;
	const char *note;
};

#define NI(name, field)                                  \
	{                                                \
		"infiniband.nodeinfo." name, field, NULL \
	}
static const struct pair node_info[] = {
	NI("baseversion", IB_NODE_BASE_VERS_F),
	NI("classversion", IB_NODE_CLASS_VERS_F),
	NI("nodetype", IB_NODE_TYPE_F),
	NI("numports", IB_NODE_NPORTS_F),
	NI("systemimageguid", IB_NODE_SYSTEM_GUID_F),
	NI("nodeguid", IB_NODE_GUID_F),
	NI("portguid", IB_NODE_PORT_GUID_F),
	NI("partitioncap", IB_NODE_PARTITION_CAP_F),
	NI("deviceid", IB_NODE_DEVID_F),
	NI("revision", IB_NODE_REVISION_F),
	NI("localportnum", IB_NODE_LOCAL_PORT_F),
	NI("vendorid", IB_NODE_VENDORID_F),
};

#define SI(name, field)                                    \
	{                                                  \
		"infiniband.switchinfo." name, field, NULL \
	}
static const struct pair switch_info[] = {
	SI("linearfdbcap", IB_SW_LINEAR_FDB_CAP_F),
	SI("randomfdbcap", IB_SW_RANDOM_FDB_CAP_F),
	SI("multicastfdbcap", IB_SW_MCAST_FDB_CAP_F),
	SI("linearfdbtop", IB_SW_LINEAR_FDB_TOP_F),
	SI("defaultport", IB_SW_DEF_PORT_F),
	SI("defaultmulticastprimaryport", IB_SW_DEF_MCAST_PRIM_F),
	SI("defaultmulticastnotprimaryport", IB_SW_DEF_MCAST_NOT_PRIM_F),
	SI("lifetimevalue", IB_SW_LIFE_TIME_F),
	SI("portstatechange", IB_SW_STATE_CHANGE_F),
	SI("optimizedsltovlmappingprogramming", IB_SW_OPT_SLTOVL_MAPPING_F),
	SI("lidsperport", IB_SW_LIDS_PER_PORT_F),
	SI("partitionenforcementcap", IB_SW_PARTITION_ENFORCE_CAP_F),
	SI("inboundenforcementcap", IB_SW_PARTITION_ENF_INB_F),
	SI("outboundenforcementcap", IB_SW_PARTITION_ENF_OUTB_F),
	SI("filterrawinboundcap", IB_SW_FILTER_RAW_INB_F),
	SI("filterrawoutboundcap", IB_SW_FILTER_RAW_OUTB_F),
	SI("enhancedportzero", IB_SW_ENHANCED_PORT0_F),
};

#define PI(name, field)                                  \
	{                                                \
		"infiniband.portinfo." name, field, NULL \
	}
static const struct pair port_info[] = {
	PI("m_key", IB_PORT_MKEY_F),
	PI("guid", IB_PORT_GID_PREFIX_F),
	PI("lid", IB_PORT_LID_F),
	PI("mastersmlid", IB_PORT_SMLID_F),
	PI("capabilitymask", IB_PORT_CAPMASK_F),
	PI("diagcode", IB_PORT_DIAG_F),
	PI("m_keyleaseperiod", IB_PORT_MKEY_LEASE_F),
	PI("localportnum", IB_PORT_LOCAL_PORT_F),
	PI("linkwidthenabled", IB_PORT_LINK_WIDTH_ENABLED_F),
	PI("linkwidthsupported", IB_PORT_LINK_WIDTH_SUPPORTED_F),
	PI("linkwidthactive", IB_PORT_LINK_WIDTH_ACTIVE_F),
	PI("linkspeedsupported", IB_PORT_LINK_SPEED_SUPPORTED_F),
	PI("portstate", IB_PORT_STATE_F),
	PI("portphysicalstate", IB_PORT_PHYS_STATE_F),
	PI("linkdowndefaultstate", IB_PORT_LINK_DOWN_DEF_F),
	PI("m_keyprotectbits", IB_PORT_MKEY_PROT_BITS_F),
	PI("lmc", IB_PORT_LMC_F),
	PI("linkspeedactive", IB_PORT_LINK_SPEED_ACTIVE_F),
	PI("linkspeedenabled", IB_PORT_LINK_SPEED_ENABLED_F),
	PI("neighbormtu", IB_PORT_NEIGHBOR_MTU_F),
	PI("mastersmsl", IB_PORT_SMSL_F),
	PI("vlcap", IB_PORT_VL_CAP_F),
	PI("inittype", IB_PORT_INIT_TYPE_F),
	PI("vlhighlimit", IB_PORT_VL_HIGH_LIMIT_F),
	PI("vlarbitrationhighcap", IB_PORT_VL_ARBITRATION_HIGH_CAP_F),
	PI("vlarbitrationlowcap", IB_PORT_VL_ARBITRATION_LOW_CAP_F),
	PI("inittypereply", IB_PORT_INIT_TYPE_REPLY_F),
	PI("mtucap", IB_PORT_MTU_CAP_F),
	PI("vlstallcount", IB_PORT_VL_STALL_COUNT_F),
	PI("hoqlife", IB_PORT_HOQ_LIFE_F),
	PI("operationalvls", IB_PORT_OPER_VLS_F),
	PI("partitionenforcementinbound", IB_PORT_PART_EN_INB_F),
	PI("partitionenforcementoutbound", IB_PORT_PART_EN_OUTB_F),
	PI("filterrawinbound", IB_PORT_FILTER_RAW_INB_F),
	PI("filterrawoutbound", IB_PORT_FILTER_RAW_OUTB_F),
	PI("m_keyviolations", IB_PORT_MKEY_VIOL_F),
	PI("p_keyviolations", IB_PORT_PKEY_VIOL_F),
	PI("q_keyviolations", IB_PORT_QKEY_VIOL_F),
	PI("guidcap", IB_PORT_GUID_CAP_F),
	PI("clientreregister", IB_PORT_CLIENT_REREG_F),
	PI("subnettimeout", IB_PORT_SUBN_TIMEOUT_F),
	PI("resptimevalue", IB_PORT_RESP_TIME_VAL_F),
	PI("localphyerrors", IB_PORT_LOCAL_PHYS_ERR_F),
	PI("overrunerrors", IB_PORT_OVERRUN_ERR_F),
	PI("maxcredithint", IB_PORT_MAX_CREDIT_HINT_F),
	PI("linkroundtriplatency", IB_PORT_LINK_ROUND_TRIP_F),
};

#define PC(name, field)                                      \
	{                                                    \
		"infiniband.portcounters." name, field, NULL \
	}
static const struct pair port_counters[] = {
	PC("portselect", IB_PC_PORT_SELECT_F),
	PC("counterselect", IB_PC_COUNTER_SELECT_F),
	PC("symbolerrorcounter", IB_PC_ERR_SYM_F),
	PC("linkerrorrecoverycounter", IB_PC_LINK_RECOVERS_F),
	PC("linkdownedcounter", IB_PC_LINK_DOWNED_F),
	PC("portrcverrors", IB_PC_ERR_RCV_F),
	PC("portrcvremotephysicalerrors", IB_PC_ERR_PHYSRCV_F),
	PC("portrcvswitchrelayerrors", IB_PC_ERR_SWITCH_REL_F),
	PC("portxmitdiscards", IB_PC_XMT_DISCARDS_F),
	PC("portxmitconstrainterrors", IB_PC_ERR_XMTCONSTR_F),
	PC("portrcvconstrainterrors", IB_PC_ERR_RCVCONSTR_F),
	PC("locallinkintegrityerrors", IB_PC_ERR_LOCALINTEG_F),
	PC("excessivebufferoverrunerrors", IB_PC_ERR_EXCESS_OVR_F),
	PC("vl15dropped", IB_PC_VL15_DROPPED_F),
	PC("portxmitdata", IB_PC_XMT_BYTES_F),
	PC("portrcvdata", IB_PC_RCV_BYTES_F),
	PC("portxmitpkts", IB_PC_XMT_PKTS_F),
	PC("portrcvpkts", IB_PC_RCV_PKTS_F),
};

#define PCE(name, field)                                         \
	{                                                        \
		"infiniband.portcounters_ext." name, field, NULL \
	}
static const struct pair port_counters_extended[] = {
	PCE("portselect", IB_PC_EXT_PORT_SELECT_F),
	PCE("counterselect", IB_PC_EXT_COUNTER_SELECT_F),
	PCE("portxmitdata", IB_PC_EXT_XMT_BYTES_F),
	PCE("portrcvdata", IB_PC_EXT_RCV_BYTES_F),
	PCE("portxmitpkts", IB_PC_EXT_XMT_PKTS_F),
	PCE("portrcvpkts", IB_PC_EXT_RCV_PKTS_F),
	PCE("portunicastxmitpkts", IB_PC_EXT_XMT_UPKTS_F),
	PCE("portunicastrcvpkts", IB_PC_EXT_RCV_UPKTS_F),
	PCE("portmulticastxmitpkts", IB_PC_EXT_XMT_MPKTS_F),
	PCE("portmulticastrcvpkts", IB_PC_EXT_RCV_MPKTS_F),
};

#define PR(name, field)                                    \
	{                                                  \
		"infiniband.pathrecord." name, field, NULL \
	}
static const struct pair path_record[] = {
	PR("dgid", IB_SA_PR_DGID_F),      PR("sgid", IB_SA_PR_SGID_F),
	PR("dlid", IB_SA_PR_DLID_F),      PR("slid", IB_SA_PR_SLID_F),
	PR("numbpath", IB_SA_PR_NPATH_F), PR("sl", IB_SA_PR_SL_F),
};

#define MC(name, field)                                        \
	{                                                      \
		"infiniband.mcmemberrecord." name, field, NULL \
	}
static const struct pair mcmember_record[] = {
	MC("mgid", IB_SA_MCM_MGID_F),
	MC("portgid", IB_SA_MCM_PORTGID_F),
	MC("q_key", IB_SA_MCM_QKEY_F),
	MC("mlid", IB_SA_MCM_MLID_F),
	MC("mtu", IB_SA_MCM_MTU_F),
	MC("tclass", IB_SA_MCM_TCLASS_F),
	MC("p_key", IB_SA_MCM_PKEY_F),
	MC("rate", IB_SA_MCM_RATE_F),
	MC("sl", IB_SA_MCM_SL_F),
	MC("flowlabel", IB_SA_MCM_FLOW_LABEL_F),
	MC("joinstate", IB_SA_MCM_JOIN_STATE_F),
	MC("proxyjoin", IB_SA_MCM_PROXY_JOIN_F),
};

/* Every MAD has these headers; they have the values of the MAD, not random ones. */
#define MAD(name, field)                            \
	{                                           \
		"infiniband.mad." name, field, NULL \
	}
static const struct pair mad_header[] = {
	MAD("baseversion", IB_MAD_BASEVER_F),       MAD("mgmtclass", IB_MAD_MGMTCLASS_F),
	MAD("classversion", IB_MAD_CLASSVER_F),     MAD("status", IB_MAD_STATUS_F),
	MAD("transactionid", IB_MAD_TRID_F),        MAD("attributeid", IB_MAD_ATTRID_F),
	MAD("attributemodifier", IB_MAD_ATTRMOD_F),
};

#define FOUR_BITS \
	"Wireshark takes 4 bits for each; IBA 13.6.2.1: 5 of RRespTime, 3 of RMPPFlags"
#define RMPP(name, field)                            \
	{                                            \
		"infiniband.rmpp." name, field, NULL \
	}
static const struct pair rmpp_header[] = {
	RMPP("rmppversion", IB_SA_RMPP_VERS_F),
	RMPP("rmpptype", IB_SA_RMPP_TYPE_F),
	{"infiniband.rmpp.rresptime", IB_SA_RMPP_RESP_F, FOUR_BITS},
	{"infiniband.rmpp.rmppflags", IB_SA_RMPP_FLAGS_F, FOUR_BITS},
	RMPP("rmppstatus", IB_SA_RMPP_STATUS_F),
	RMPP("segmentnumber", IB_SA_RMPP_SEGNUM_F),
	RMPP("payloadlength", IB_SA_RMPP_LEN_F),
};

#define PAIRS(array) array, sizeof(array) / sizeof(*(array))

/* An attribute, in a MAD of its class. */
static const struct attribute {
	const char *name;
	const struct pair *pairs;
	size_t count;
	int mgmt_class;
	unsigned attribute;
	int offset;
} attributes[] = {
	{"NodeInfo", PAIRS(node_info), IB_SMI_CLASS, IB_ATTR_NODE_INFO, IB_SMP_DATA_OFFS},
	{"SwitchInfo", PAIRS(switch_info), IB_SMI_CLASS, IB_ATTR_SWITCH_INFO, IB_SMP_DATA_OFFS},
	{"PortInfo", PAIRS(port_info), IB_SMI_CLASS, IB_ATTR_PORT_INFO, IB_SMP_DATA_OFFS},
	{"PortCounters", PAIRS(port_counters), IB_PERFORMANCE_CLASS, IB_GSI_PORT_COUNTERS,
	 IB_PC_DATA_OFFS},
	{"PortCountersExtended", PAIRS(port_counters_extended), IB_PERFORMANCE_CLASS,
	 IB_GSI_PORT_COUNTERS_EXT, IB_PC_DATA_OFFS},
	{"PathRecord", PAIRS(path_record), IB_SA_CLASS, IB_SA_ATTR_PATHRECORD, IB_SA_DATA_OFFS},
	{"MCMemberRecord", PAIRS(mcmember_record), IB_SA_CLASS, IB_SA_ATTR_MCRECORD,
	 IB_SA_DATA_OFFS},
};
#define ATTRIBUTES (sizeof(attributes) / sizeof(*attributes))

static const struct {
	const char *name;
	const struct pair *pairs;
	size_t count;
	int only_class; /* 0: any */
} headers[] = {
	{"MAD header", PAIRS(mad_header), 0},
	{"RMPP header", PAIRS(rmpp_header), IB_SA_CLASS},
};
#define HEADERS (sizeof(headers) / sizeof(*headers))

/* --- MADs ----------------------------------------------------------------------- */

static uint64_t random_state;

static uint64_t random64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/*
 * A MAD with an attribute of random fields; the same MAD for the same position in the sequence.
 */
static void make_mad(const struct attribute *attribute, uint8_t mad[IB_MAD_SIZE])
{
	ib_rpc_t rpc = {.mgtclass = attribute->mgmt_class,
			.method = IB_MAD_METHOD_GET_RESPONSE,
			.attr = {attribute->attribute, (unsigned)random64()},
			.trid = random64() | 1};
	ib_rmpp_hdr_t rmpp = {.type = IB_RMPP_TYPE_DATA,
			      .flags = 7,
			      .status = 0,
			      .d1.segnum = 1,
			      .d2.len = 20 + 200};
	uint8_t umad[sizeof(struct ib_user_mad) + IB_MAD_SIZE] = {0};
	ib_portid_t to = {.lid = 1};
	size_t i;

	mad_build_pkt(umad, &rpc, &to, attribute->mgmt_class == IB_SA_CLASS ? &rmpp : NULL,
		      NULL);
	memcpy(mad, umad_get_mad(umad), IB_MAD_SIZE);
	for (i = 0; i < attribute->count; i++) {
		enum MAD_FIELDS field = attribute->pairs[i].ours;
		uint64_t value[2] = {random64(), random64()};

		if (mad_field_info(field)->bits <= 64)
			mad_set_field64(mad, attribute->offset, field, value[0]);
		else
			mad_set_array(mad, attribute->offset, field, value);
	}
}

/* --- the capture ---------------------------------------------------------------- */

static void put16(FILE *file, unsigned value)
{
	fputc((int)(value >> 8 & 0xff), file);
	fputc((int)(value & 0xff), file);
}

static void put32(FILE *file, uint32_t value)
{
	put16(file, value >> 16);
	put16(file, value & 0xffff);
}

/*
 * Local route, base transport, datagram headers; then the MAD and the CRCs, which are not
 * checked.
 */
#define PACKET_SIZE (8 + 12 + 8 + IB_MAD_SIZE + 4 + 2)

static void write_packet(FILE *file, const uint8_t *mad, uint32_t qp)
{
	put16(file, 0x0002); /* virtual lane 0; a base transport header follows */
	put16(file, 1);
	put16(file, (PACKET_SIZE - 2) / 4);
	put16(file, 2);
	put16(file, 0x6400); /* unreliable datagram, send only */
	put16(file, 0xffff);
	put32(file, qp);
	put32(file, 0);
	put32(file, qp ? 0x80010000 : 0);
	put32(file, qp);
	fwrite(mad, 1, IB_MAD_SIZE, file);
	put32(file, 0);
	put16(file, 0);
}

/*
 * LINKTYPE_USER0: Wireshark 4.0 does not read LINKTYPE_INFINIBAND (247), but has a setting for
 * the type of USER0.
 */
#define LINKTYPE 147

static int write_capture(const char *path)
{
	FILE *file = fopen(path, "wb");
	uint8_t mad[IB_MAD_SIZE];
	uint32_t number = 0;
	size_t i, round;

	if (!file) {
		perror(path);
		return 1;
	}
	put32(file, 0xa1b2c3d4);
	put16(file, 2);
	put16(file, 4);
	put32(file, 0);
	put32(file, 0);
	put32(file, 65535);
	put32(file, LINKTYPE);
	for (i = 0; i < ATTRIBUTES; i++) {
		for (round = 0; round < ROUNDS; round++) {
			make_mad(&attributes[i], mad);
			put32(file, number++);
			put32(file, 0);
			put32(file, PACKET_SIZE);
			put32(file, PACKET_SIZE);
			write_packet(file, mad, attributes[i].mgmt_class != IB_SMI_CLASS);
		}
	}
	return fclose(file) != 0;
}

/* --- the comparison ------------------------------------------------------------- */

/* The columns of tshark's output: first the headers' fields, then the attributes'. */
static int print_fields(void)
{
	size_t i, j;

	for (i = 0; i < HEADERS; i++)
		for (j = 0; j < headers[i].count; j++)
			puts(headers[i].pairs[j].theirs);
	for (i = 0; i < ATTRIBUTES; i++)
		for (j = 0; j < attributes[i].count; j++)
			puts(attributes[i].pairs[j].theirs);
	return 0;
}

/* Whether tshark printed the value that the field has in the MAD. */
static int agrees(const char *text, const uint8_t *mad, int offset, enum MAD_FIELDS field)
{
	uint8_t image[IB_MAD_SIZE], address[16], ours[16];
	char digits[64] = "";
	uint64_t theirs;

	memcpy(image, mad, sizeof(image));
	if (mad_field_info(field)->bits == 128) {
		mad_get_array(image, offset, field, ours);
		return inet_pton(AF_INET6, text, address) == 1 && !memcmp(address, ours, 16);
	}
	if (strchr(text, ':')) {
		/* an address in groups of hexadecimal digits */
		for (; *text; text++)
			if (*text != ':')
				strncat(digits, text, 1);
		theirs = strtoull(digits, NULL, 16);
	} else if (!strcmp(text, "True") || !strcmp(text, "False")) {
		theirs = text[0] == 'T';
	} else {
		theirs = strtoull(text, NULL, 0);
	}
	return *text != '\0' || digits[0] ? theirs == mad_get_field64(image, offset, field) : 0;
}

struct result {
	unsigned compared, agreed;
	char example[160];
};

static void compare(struct result *result, const char *text, const uint8_t *mad, int offset,
		    enum MAD_FIELDS field)
{
	uint8_t image[IB_MAD_SIZE];

	result->compared++;
	if (agrees(text, mad, offset, field)) {
		result->agreed++;
		return;
	}
	memcpy(image, mad, sizeof(image));
	snprintf(result->example, sizeof(result->example), "0x%" PRIx64 ", Wireshark \"%s\"",
		 mad_get_field64(image, offset, field), text);
}

/* Prints the results of a group of fields. Returns the number of unexplained differences. */
static int print_results(const char *name, const struct pair *pairs, size_t count,
			 const struct result *results)
{
	unsigned compared = 0, agreed = 0;
	int unexplained = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		compared += results[i].compared;
		agreed += results[i].agreed;
	}
	printf("%-22s %3zu fields %6u values %6u agree\n", name, count, compared, agreed);
	for (i = 0; i < count; i++) {
		if (results[i].compared && results[i].agreed == results[i].compared)
			continue;
		printf("    %s: %s\n        %s\n", pairs[i].theirs,
		       results[i].compared ? results[i].example : "not decoded",
		       pairs[i].note ? pairs[i].note : "UNEXPLAINED");
		unexplained += !pairs[i].note;
	}
	return unexplained;
}

#define COLUMNS 256

static int check(const char *path)
{
	static struct result of_headers[HEADERS][64], of_attributes[ATTRIBUTES][64];
	FILE *file = fopen(path, "r");
	char line[65536], *columns[COLUMNS], *rest;
	size_t i, j, k, round, column, first;
	uint8_t mad[IB_MAD_SIZE];
	int unexplained = 0;

	if (!file) {
		perror(path);
		return 1;
	}
	for (i = 0; i < ATTRIBUTES; i++) {
		for (round = 0; round < ROUNDS; round++) {
			make_mad(&attributes[i], mad);
			if (!fgets(line, sizeof(line), file)) {
				printf("tshark printed too few packets\n");
				return 1;
			}
			line[strcspn(line, "\n")] = '\0';
			rest = line;
			for (k = 0; k < COLUMNS; k++)
				columns[k] = rest ? strsep(&rest, "\t") : NULL;
			column = 0;
			for (j = 0; j < HEADERS; j++)
				for (k = 0; k < headers[j].count; k++, column++)
					if (!headers[j].only_class ||
					    headers[j].only_class == attributes[i].mgmt_class)
						compare(&of_headers[j][k], columns[column], mad,
							0, headers[j].pairs[k].ours);
			for (first = column, j = 0; j < i; j++)
				first += attributes[j].count;
			for (k = 0; k < attributes[i].count; k++)
				compare(&of_attributes[i][k], columns[first + k], mad,
					attributes[i].offset, attributes[i].pairs[k].ours);
		}
	}
	fclose(file);
	for (i = 0; i < HEADERS; i++)
		unexplained += print_results(headers[i].name, headers[i].pairs,
					     headers[i].count, of_headers[i]);
	for (i = 0; i < ATTRIBUTES; i++)
		unexplained += print_results(attributes[i].name, attributes[i].pairs,
					     attributes[i].count, of_attributes[i]);
	return unexplained != 0;
}

int main(int argc, char **argv)
{
	const char *seed = getenv("TEST_SEED");

	random_state = seed ? strtoull(seed, NULL, 0) | 1 : 4711;
	if (argc == 3 && !strcmp(argv[1], "write"))
		return write_capture(argv[2]);
	if (argc == 2 && !strcmp(argv[1], "fields"))
		return print_fields();
	if (argc == 3 && !strcmp(argv[1], "check"))
		return check(argv[2]);
	return 2;
}
