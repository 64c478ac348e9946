/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Requests to the SA as a program makes them with mad_sa.h and mad_sa_records.h.
 *
 *   sa_requests               prints saquery's arguments for the same requests, a line each
 *   sa_requests N             sends the request of line N (from 1 on), and prints its bytes
 *
 * The transaction ID is left out of the bytes.
 */

#include <infiniband/mad_sa.h>

#include <dlfcn.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* LIDs of fat-tree:4,2 */
#define HOST   8
#define OTHER  13
#define SWITCH 2

#define CLASS_PORT_INFO 1
#define EXACTLY(value)  (UMAD_SA_SELECTOR_EXACTLY << UMAD_SA_SELECTOR_SHIFT | (value))

union record {
	struct mad_sa_path_record path;
	struct mad_sa_node_record node;
	struct mad_sa_port_info_record port_info;
	struct mad_sa_link_record link;
	struct umad_sa_mcmember_record member;
	struct mad_sa_guid_info_record guids;
	struct mad_sa_switch_info_record switch_info;
	struct mad_sa_linear_table_record linear;
	struct mad_sa_multicast_table_record multicast;
	struct mad_sa_pkey_table_record pkeys;
	struct mad_sa_sl_to_vl_record vls;
	struct mad_sa_vl_arbitration_record arbitration;
	struct mad_sa_inform_info_record inform;
	uint8_t bytes[200];
};

#define LIDS MAD_SA_PATH_SLID | MAD_SA_PATH_DLID

static const struct {
	const char *saquery;
	unsigned attribute;
	uint64_t mask;
	union record record;
} requests[] = {
	{"CPI", CLASS_PORT_INFO, 0, {.bytes = {0}}},
	{"NR", IB_SA_ATTR_NODERECORD, 0, {.bytes = {0}}},
	{"--smkey 5 NR", IB_SA_ATTR_NODERECORD, 0, {.bytes = {0}}},
	{"NR 8", IB_SA_ATTR_NODERECORD, MAD_SA_NODE_LID, {.bytes = {0, HOST}}},
	{"PIR", IB_SA_ATTR_PORTINFORECORD, 0, {.bytes = {0}}},
	{"PIR 8/1",
	 IB_SA_ATTR_PORTINFORECORD,
	 MAD_SA_PORT_INFO_LID | MAD_SA_PORT_INFO_PORT,
	 {.bytes = {0, HOST, 1}}},
	{"PIR 8/1/2",
	 IB_SA_ATTR_PORTINFORECORD,
	 MAD_SA_PORT_INFO_LID | MAD_SA_PORT_INFO_PORT | MAD_SA_PORT_INFO_OPTIONS,
	 {.bytes = {0, HOST, 1, 2}}},
	{"SMIR", IB_SA_ATTR_SMINFORECORD, 0, {.bytes = {0}}},
	{"SMIR 8", IB_SA_ATTR_SMINFORECORD, MAD_SA_SM_INFO_LID, {.bytes = {0, HOST}}},
	{"LR", IB_SA_ATTR_LINKRECORD, 0, {.bytes = {0}}},
	{"LR 2/1 8/1",
	 IB_SA_ATTR_LINKRECORD,
	 MAD_SA_LINK_FROM_LID | MAD_SA_LINK_FROM_PORT | MAD_SA_LINK_TO_LID |
		 MAD_SA_LINK_TO_PORT,
	 {.bytes = {0, SWITCH, 1, 1, 0, HOST}}},
	{"SR", IB_SA_ATTR_SERVICERECORD, 0, {.bytes = {0}}},
	{"IIR", IB_SA_ATTR_INFORMINFORECORD, 0, {.bytes = {0}}},
	{"IIR fe80::2:c903:10:1",
	 IB_SA_ATTR_INFORMINFORECORD,
	 MAD_SA_INFORM_RECORD_SUBSCRIBER_GID,
	 {.inform = {.subscriber_gid = {0xfe, 0x80, [9] = 2, 0xc9, 3, 0, 0x10, 0, 1}}}},
	{"SWIR", IB_SA_ATTR_SWITCHINFORECORD, 0, {.bytes = {0}}},
	{"SWIR 2", IB_SA_ATTR_SWITCHINFORECORD, MAD_SA_SWITCH_INFO_LID, {.bytes = {0, SWITCH}}},
	{"LFTR 2/0",
	 IB_SA_ATTR_LFTRECORD,
	 MAD_SA_LINEAR_TABLE_LID | MAD_SA_LINEAR_TABLE_BLOCK,
	 {.bytes = {0, SWITCH, 0, 0}}},
	{"MFTR 2/1/3",
	 IB_SA_ATTR_MFTRECORD,
	 MAD_SA_MULTICAST_TABLE_LID | MAD_SA_MULTICAST_TABLE_POSITION |
		 MAD_SA_MULTICAST_TABLE_BLOCK,
	 {.bytes = {0, SWITCH, 0x10, 3}}},
	{"GIR 8/0",
	 IB_SA_ATTR_GUIDINFORECORD,
	 MAD_SA_GUID_INFO_LID | MAD_SA_GUID_INFO_BLOCK,
	 {.bytes = {0, HOST}}},
	{"PKTR 8/1/2",
	 IB_SA_ATTR_PKEYTABLERECORD,
	 MAD_SA_PKEY_TABLE_LID | MAD_SA_PKEY_TABLE_PORT | MAD_SA_PKEY_TABLE_BLOCK,
	 {.bytes = {0, HOST, 0, 2, 1}}},
	{"SL2VL 2/1/2",
	 IB_SA_ATTR_SL2VLTABLERECORD,
	 MAD_SA_SL_TO_VL_LID | MAD_SA_SL_TO_VL_INPUT_PORT | MAD_SA_SL_TO_VL_OUTPUT_PORT,
	 {.bytes = {0, SWITCH, 1, 2}}},
	{"VLAR 2/1/3",
	 IB_SA_ATTR_VLARBTABLERECORD,
	 MAD_SA_VL_ARBITRATION_LID | MAD_SA_VL_ARBITRATION_OUTPUT_PORT |
		 MAD_SA_VL_ARBITRATION_BLOCK,
	 {.bytes = {0, SWITCH, 1, 3}}},
	{"MCMR", IB_SA_ATTR_MCRECORD, 0, {.bytes = {0}}},
	{"MCMR --mgid ff12:401b:ffff::ffff:ffff",
	 IB_SA_ATTR_MCRECORD,
	 UMAD_SA_MCM_COMP_MASK_MGID,
	 {.member = {.mgid = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [12] = 255, 255, 255, 255}}}},
	{"MCMR --mlid 0xc000 --pkey 0xffff --qkey 0x0b1b",
	 IB_SA_ATTR_MCRECORD,
	 UMAD_SA_MCM_COMP_MASK_MLID | UMAD_SA_MCM_COMP_MASK_PKEY | UMAD_SA_MCM_COMP_MASK_QKEY,
	 {.bytes = {[34] = 0x0b, 0x1b, 0xc0, 0, 0, 0, 0xff, 0xff}}},
	{"MCMR --gid fe80::2:c903:10:1",
	 IB_SA_ATTR_MCRECORD,
	 UMAD_SA_MCM_COMP_MASK_PORT_GID,
	 {.member = {.portgid = {0xfe, 0x80, [9] = 2, 0xc9, 3, 0, 0x10, 0, 1}}}},
	{"MCMR --sl 3 --tclass 9 --flow_label 0x45 --hop_limit 6",
	 IB_SA_ATTR_MCRECORD,
	 UMAD_SA_MCM_COMP_MASK_SL | UMAD_SA_MCM_COMP_MASK_TCLASS |
		 UMAD_SA_MCM_COMP_MASK_FLOW_LABEL | UMAD_SA_MCM_COMP_MASK_HOP_LIMIT,
	 {.bytes = {[39] = 9, [44] = 0x30, 0, 0x45, 6}}},
	/* saquery sets the lowest bit of the byte with ProxyJoin, which is the topmost */
	{"MCMR --scope 2 --join_state 1 --proxy_join 1",
	 IB_SA_ATTR_MCRECORD,
	 UMAD_SA_MCM_COMP_MASK_SCOPE | UMAD_SA_MCM_COMP_MASK_JOIN_STATE |
		 UMAD_SA_MCM_COMP_MASK_PROXY_JOIN,
	 {.member = {.scope_state = 0x21, .proxy_join = 1}}},
	{"MCMR --mtu 132 --rate 131 --pkt_lifetime 146",
	 IB_SA_ATTR_MCRECORD,
	 UMAD_SA_MCM_COMP_MASK_MTU | UMAD_SA_MCM_COMP_MASK_MTU_SEL |
		 UMAD_SA_MCM_COMP_MASK_RATE | UMAD_SA_MCM_COMP_MASK_RATE_SEL |
		 UMAD_SA_MCM_COMP_MASK_LIFE_TIME | UMAD_SA_MCM_COMP_MASK_LIFE_TIME_SEL,
	 {.member = {.mtu = EXACTLY(4), .rate = EXACTLY(3), .pkt_life = EXACTLY(18)}}},
	{"PR --slid 8 --dlid 13",
	 IB_SA_ATTR_PATHRECORD,
	 LIDS,
	 {.bytes = {[40] = 0, OTHER, 0, HOST}}},
	{"PR --sgid fe80::2:c903:10:1 --dgid fe80::2:c903:10:11",
	 IB_SA_ATTR_PATHRECORD,
	 MAD_SA_PATH_SGID | MAD_SA_PATH_DGID,
	 {.path = {.dgid = {0xfe, 0x80, [9] = 2, 0xc9, 3, 0, 0x10, 0, 0x11},
		   .sgid = {0xfe, 0x80, [9] = 2, 0xc9, 3, 0, 0x10, 0, 1}}}},
	{"PR --slid 8 --dlid 13 --reversible 1 --numb_path 3",
	 IB_SA_ATTR_PATHRECORD,
	 LIDS | MAD_SA_PATH_REVERSIBLE | MAD_SA_PATH_NUMB_PATH,
	 {.bytes = {[40] = 0, OTHER, 0, HOST, [49] = 0x83}}},
	{"PR --slid 8 --dlid 13 --pkey 0xffff --sl 5 --qos_class 7",
	 IB_SA_ATTR_PATHRECORD,
	 LIDS | MAD_SA_PATH_PKEY | MAD_SA_PATH_SL | MAD_SA_PATH_QOS_CLASS,
	 {.bytes = {[40] = 0, OTHER, 0, HOST, [50] = 0xff, 0xff, 0, 0x75}}},
	{"PR --slid 8 --dlid 13 --mtu 132 --rate 131 --pkt_lifetime 146",
	 IB_SA_ATTR_PATHRECORD,
	 LIDS | MAD_SA_PATH_MTU | MAD_SA_PATH_MTU_SELECTOR | MAD_SA_PATH_RATE |
		 MAD_SA_PATH_RATE_SELECTOR | MAD_SA_PATH_LIFE | MAD_SA_PATH_LIFE_SELECTOR,
	 {.bytes = {[40] = 0, OTHER, 0, HOST, [54] = EXACTLY(4), EXACTLY(3), EXACTLY(18)}}},
	/* saquery sends only the lower 8 bits of a flow label */
	{"PR --slid 8 --dlid 13 --tclass 9 --flow_label 0x45 --hop_limit 6",
	 IB_SA_ATTR_PATHRECORD,
	 LIDS | MAD_SA_PATH_TCLASS | MAD_SA_PATH_FLOW_LABEL | MAD_SA_PATH_HOP_LIMIT,
	 {.bytes = {[40] = 0, OTHER, 0, HOST, 0, 0, 0x45, 6, 9}}},
	{"PR --slid 8 --dlid 13 --service_id 0x0102030405060708",
	 IB_SA_ATTR_PATHRECORD,
	 LIDS | MAD_SA_PATH_SERVICE_ID,
	 {.bytes = {1, 2, 3, 4, 5, 6, 7, 8, [40] = 0, OTHER, 0, HOST}}},
};

/* Replaces libibumad's function, for libibmad, too. */
__attribute__((visibility("default"))) int umad_send(int portid, int agentid, void *umad,
						     int length, int timeout_ms, int retries)
{
	__typeof__(&umad_send) next = (__typeof__(&umad_send))dlsym(RTLD_NEXT, "umad_send");
	const uint8_t *mad = umad_get_mad(umad);

	if (mad[1] == IB_SA_CLASS)
		for (int i = 0; i < length; i++)
			printf("%02x%s", i >= 8 && i < 16 ? 0 : mad[i],
			       i % 16 == 15 ? "\n"
			       : i % 2      ? " "
					    : "");
	return next(portid, agentid, umad, length, timeout_ms, retries);
}

int main(int argc, char **argv)
{
	int classes[] = {IB_SMI_DIRECT_CLASS, IB_SA_CLASS};
	struct mad_sa_query query = {0};
	struct ibmad_port *port;
	size_t number = argc > 1 ? (size_t)atoi(argv[1]) : 0;

	if (!number)
		for (size_t i = 0; i < COUNT(requests); i++)
			puts(requests[i].saquery);
	if (!number || number > COUNT(requests))
		return number != 0;
	port = mad_rpc_open_port(NULL, 0, classes, 2);
	if (!port)
		err(1, "mad_rpc_open_port");
	if (!strncmp(requests[number - 1].saquery, "--smkey", 7))
		mad_port_set(port, MAD_PORT_SA_KEY, 5);
	query.attribute = requests[number - 1].attribute;
	query.component_mask = requests[number - 1].mask;
	query.record = &requests[number - 1].record;
	query.record_size = sizeof(requests[number - 1].record);
	/* the SA's response does not matter */
	if (query.attribute == CLASS_PORT_INFO)
		query.method = IB_MAD_METHOD_GET;
	mad_sa_request(port, &query, NULL);
	mad_rpc_close_port(port);
	return 0;
}
