/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The calls of mad_sa.h against whatever SA the fabric has. Prints a line for each, and says
 * WRONG where the SA or the library does something else than the specification says.
 *
 *   sa calls LID [opensm]     groups, services, paths to the port with that LID; what opensm is
 *                             known to do otherwise than the specification is not WRONG
 *   sa storm COUNT LID        so many requests for a path at once: "COUNT right, ..."
 *   sa follow SECONDS         a request every 50 ms, until an SA responds from another LID
 *
 * Exits with 1 if something is WRONG.
 */

#include <infiniband/mad_errors.h>
#include <infiniband/mad_fields.h>
#include <infiniband/mad_sa.h>

#include <err.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct ibmad_port *port;
static ibmad_gid_t own;
static int wrong;
static bool is_opensm;

static void tell(bool right, const char *what, int error, unsigned status, size_t records)
{
	printf("%-5s %-44s %-24s status %03x  %zu\n", right ? "ok" : "WRONG", what,
	       error ? strerror(-error) : "success", status, records);
	wrong |= !right;
}

/* Sends a request. The response replaces size bytes of record, which may be NULL. */
static int request(const struct mad_sa_query *query, void *record, size_t size,
		   unsigned *status)
{
	struct mad_sa_table *table;
	int error = mad_sa_request(port, query, &table);

	*status = error ? mad_last_failure()->status : 0;
	if (!error && record)
		memcpy(record, mad_sa_table_record(table, 0), size);
	mad_sa_table_free(table);
	return error;
}

/* The number of records in a table; 99: none comes. */
static size_t count_of(const struct mad_sa_query *query)
{
	struct mad_sa_table *table;
	size_t count;

	if (mad_sa_request(port, query, &table))
		return 99;
	count = table->count;
	mad_sa_table_free(table);
	return count;
}

/* --- groups --------------------------------------------------------------------- */

static void show(const struct umad_sa_mcmember_record *member)
{
	uint8_t sl;

	umad_sa_mcm_get_sl_flow_hop(member->sl_flow_hop, &sl, NULL, NULL);
	printf("      MLID 0x%04x, Q_Key 0x%08x, MTU %u, %g Gb/s, SL %u, P_Key 0x%04x, "
	       "JoinState %u\n",
	       be16toh(member->mlid), be32toh(member->qkey), mad_link_mtu(member->mtu & 0x3f),
	       mad_sa_rate_gbps(member->rate), sl, be16toh(member->pkey),
	       member->scope_state & 0xf);
}

static size_t members(const ibmad_gid_t mgid)
{
	struct umad_sa_mcmember_record group = {.qkey = 0};
	struct mad_sa_query query = {.method = 0};

	memcpy(group.mgid, mgid, sizeof(group.mgid));
	mad_sa_member_query(&query, IB_MAD_METHOD_GET_TABLE, &group, 0);
	return count_of(&query);
}

#define FULL      UMAD_SA_MCM_JOIN_STATE_FULL_MEMBER
#define SEND_ONLY UMAD_SA_MCM_JOIN_STATE_SEND_ONLY_NON_MEMBER

/* Joins a group or leaves it. */
static int change(int method, uint64_t mask, struct umad_sa_mcmember_record *member,
		  unsigned join_state, unsigned *status)
{
	struct mad_sa_query query = {.component_mask = mask};

	mad_sa_member_query(&query, method, member, join_state);
	return request(&query, member, sizeof(*member), status);
}

static const ibmad_gid_t broadcast = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0,    0,
				      0,    0,    0,    0,    0xff, 0xff, 0xff, 0xff};

static void groups(void)
{
	const uint64_t create = UMAD_SA_MCM_COMP_MASK_QKEY | UMAD_SA_MCM_COMP_MASK_PKEY |
				UMAD_SA_MCM_COMP_MASK_SL | UMAD_SA_MCM_COMP_MASK_FLOW_LABEL |
				UMAD_SA_MCM_COMP_MASK_TCLASS;
	struct umad_sa_mcmember_record member = {0};
	unsigned status;
	int err;

	memcpy(member.mgid, broadcast, 16);
	err = change(IB_MAD_METHOD_SET, 0, &member, FULL, &status);
	tell(!err && be16toh(member.mlid) >= 0xc000 && member.scope_state & 1,
	     "join the broadcast group", err, status, members(broadcast));
	show(&member);
	err = change(IB_MAD_METHOD_DELETE, 0, &member, FULL, &status);
	tell(!err, "leave it", err, status, members(broadcast));
	err = change(IB_MAD_METHOD_DELETE, 0, &member, FULL, &status);
	tell(err == -EIO, "leave it again: refused", err, status, 0);
	member = (struct umad_sa_mcmember_record){.mgid = {0xff, 0x12, 0x12, 0x34, 1, 2, 3}};
	err = change(IB_MAD_METHOD_SET, 0, &member, FULL, &status);
	tell(err == -EIO && status >> 8 == UMAD_SA_STATUS_INSUF_COMPS,
	     "join a group that does not exist: 600", err, status, 0);
	member = (struct umad_sa_mcmember_record){.mgid = {0xff, 0x12, 0x12, 0x34, 1, 2, 3},
						  .qkey = htobe32(0x0b1b),
						  .pkey = htobe16(0xffff)};
	err = change(IB_MAD_METHOD_SET, create, &member, FULL, &status);
	tell(!err && be32toh(member.qkey) == 0x0b1b, "create a group", err, status,
	     members(member.mgid));
	show(&member);
	err = change(IB_MAD_METHOD_SET, 0, &member, SEND_ONLY, &status);
	tell(!err && member.scope_state & 4, "join it send-only", err, status,
	     members(member.mgid));
	show(&member);
	err = change(IB_MAD_METHOD_DELETE, 0, &member, SEND_ONLY, &status);
	tell(!err, "leave it send-only", err, status, members(member.mgid));
	err = change(IB_MAD_METHOD_DELETE, 0, &member, FULL, &status);
	tell(!err && members(member.mgid) == 0, "leave it: it is gone", err, status,
	     members(member.mgid));
}

/* --- services ------------------------------------------------------------------- */

static size_t services(const char *name)
{
	struct mad_sa_service_record service = {.id = 0};
	struct mad_sa_query query = {.method = 0};

	memcpy(service.name, name, strlen(name));
	mad_sa_service_query(&query, IB_MAD_METHOD_GET_TABLE, &service);
	return count_of(&query);
}

static int change_service(int method, struct mad_sa_service_record *service, unsigned *status)
{
	struct mad_sa_query query = {.method = 0};

	mad_sa_service_query(&query, method, service);
	return request(&query, service, sizeof(*service), status);
}

static void check_services(void)
{
	struct mad_sa_service_record service = {
		.id = htobe64(0x1000000000001), .lease = htobe32(60), .name = "check"};
	struct mad_sa_service_record first;
	unsigned status;
	int err;

	service.data8[3] = 7;
	err = change_service(IB_MAD_METHOD_SET, &service, &status);
	tell(!err && service.data8[3] == 7 && services("check") == 1, "register a service", err,
	     status, services("check"));
	first = service;
	service.id = htobe64(0x1000000000002);
	err = change_service(IB_MAD_METHOD_SET, &service, &status);
	tell(!err && services("check") == 2, "register another of the name", err, status,
	     services("check"));
	err = change_service(IB_MAD_METHOD_DELETE, &service, &status);
	tell(!err && services("check") == 1, "delete it", err, status, services("check"));
	err = change_service(IB_MAD_METHOD_DELETE, &first, &status);
	tell(!err && services("check") == 0, "delete the first one", err, status,
	     services("check"));
	service = (struct mad_sa_service_record){.id = htobe64(5), .name = "check"};
	err = change_service(IB_MAD_METHOD_DELETE, &service, &status);
	tell(err == -EIO, "delete by id what is not there", err, status, 0);
}

/* --- paths ------------------------------------------------------------------------ */

static struct mad_sa_path_record known; /* to the given LID */

static void set_dgid(struct mad_sa_path_record *path)
{
	path->dgid[15] ^= 0x77;
}
static void set_sgid(struct mad_sa_path_record *path)
{
	path->sgid[15] ^= 0x77;
}
static void set_dlid(struct mad_sa_path_record *path)
{
	path->dlid = htobe16(0x4000);
}
static void set_slid(struct mad_sa_path_record *path)
{
	path->slid = htobe16(0x4000);
}
static void set_raw(struct mad_sa_path_record *path)
{
	path->flow_hop |= htobe32(1U << 31);
}
static void set_pkey(struct mad_sa_path_record *path)
{
	path->pkey = htobe16(0x9234);
}
static void set_mtu(struct mad_sa_path_record *path)
{
	path->mtu = umad_sa_set_rate_mtu_or_life(UMAD_SA_SELECTOR_GREATER_THAN, 5);
}
static void set_rate(struct mad_sa_path_record *path)
{
	path->rate = umad_sa_set_rate_mtu_or_life(UMAD_SA_SELECTOR_GREATER_THAN, 24);
}
static void set_life(struct mad_sa_path_record *path)
{
	path->pkt_life = umad_sa_set_rate_mtu_or_life(UMAD_SA_SELECTOR_LESS_THAN, 0);
}

/* The components of a path, each with a value that no path has. NULL: the requester chooses
 * the component, so any value is right. */
static const struct {
	const char *name;
	uint64_t mask;
	void (*spoil)(struct mad_sa_path_record *path);
} components[] = {
	{"ServiceID", MAD_SA_PATH_SERVICE_ID, NULL},
	{"DGID", MAD_SA_PATH_DGID, set_dgid},
	{"SGID", MAD_SA_PATH_SGID, set_sgid},
	{"DLID", MAD_SA_PATH_DLID, set_dlid},
	{"SLID", MAD_SA_PATH_SLID, set_slid},
	{"RawTraffic", MAD_SA_PATH_RAW_TRAFFIC, set_raw},
	{"FlowLabel", MAD_SA_PATH_FLOW_LABEL, NULL},
	{"HopLimit", MAD_SA_PATH_HOP_LIMIT, NULL},
	{"TClass", MAD_SA_PATH_TCLASS, NULL},
	{"Reversible", MAD_SA_PATH_REVERSIBLE, NULL},
	{"NumbPath", MAD_SA_PATH_NUMB_PATH, NULL},
	{"P_Key", MAD_SA_PATH_PKEY, set_pkey},
	{"QoSClass", MAD_SA_PATH_QOS_CLASS, NULL},
	{"SL", MAD_SA_PATH_SL, NULL},
	{"MTU", MAD_SA_PATH_MTU_SELECTOR | MAD_SA_PATH_MTU, set_mtu},
	{"Rate", MAD_SA_PATH_RATE_SELECTOR | MAD_SA_PATH_RATE, set_rate},
	{"PacketLifeTime", MAD_SA_PATH_LIFE_SELECTOR | MAD_SA_PATH_LIFE, set_life},
	{"Preference", MAD_SA_PATH_PREFERENCE, NULL},
};

static int ask_path(const struct mad_sa_path_record *path, uint64_t mask, unsigned *status,
		    size_t *count)
{
	struct mad_sa_query query = {.attribute = IB_SA_ATTR_PATHRECORD,
				     .component_mask = mask,
				     .record = path,
				     .record_size = sizeof(*path)};
	struct mad_sa_table *table;
	int err = mad_sa_request(port, &query, &table);

	*status = err ? mad_last_failure()->status : 0;
	*count = table ? table->count : 0;
	if (*count)
		memcpy(&known, mad_sa_table_record(table, 0), sizeof(known));
	mad_sa_table_free(table);
	return err;
}

static void paths(unsigned lid)
{
	struct mad_sa_path_record path = {.dlid = htobe16((uint16_t)lid)}, full;
	uint64_t ends = MAD_SA_PATH_SGID | MAD_SA_PATH_DGID, all = 0;
	unsigned status;
	char name[64];
	size_t count;
	int err;

	memcpy(path.sgid, own, 16);
	err = ask_path(&path, MAD_SA_PATH_SGID | MAD_SA_PATH_DLID, &status, &count);
	tell(!err && count == 1 && be16toh(known.dlid) == lid, "the path to a LID", err, status,
	     count);
	printf("      MTU %u, %g Gb/s, %g us, SL %u, P_Key 0x%04x\n",
	       mad_link_mtu(known.mtu & 0x3f), mad_sa_rate_gbps(known.rate),
	       mad_sa_lifetime_us(known.pkt_life), be16toh(known.qos_sl) & 0xf,
	       be16toh(known.pkey));
	full = known;
	full.reversible_num |= 1; /* NumbPath */
	for (size_t i = 0; i < COUNT(components); i++) {
		all |= components[i].mask;
		path = full;
		err = ask_path(&path, ends | components[i].mask, &status, &count);
		snprintf(name, sizeof(name), "path by %s", components[i].name);
		tell(!err && count == 1, name, err, status, count);
		if (!components[i].spoil)
			continue;
		components[i].spoil(&path);
		err = ask_path(&path, ends | components[i].mask, &status, &count);
		snprintf(name, sizeof(name), "none by another %s", components[i].name);
		/* opensm ignores RawTraffic */
		tell((count == 0 && (!err || err == -EIO)) ||
			     (is_opensm && components[i].spoil == set_raw),
		     name, err, status, count);
	}
	path = full;
	err = ask_path(&path, all, &status, &count);
	tell(!err && count == 1 && be16toh(known.dlid) == lid, "path by all components", err,
	     status, count);
	known = full;
}

#define HOSTS 8

/* GIDs of the hosts: their ports have the own port's prefix. */
static unsigned hosts(uint8_t gids[HOSTS][16])
{
	const uint8_t type = 1; /* a CA */
	struct mad_sa_node_record node = {.node_info = {[2] = type}};
	struct mad_sa_query query = {.attribute = IB_SA_ATTR_NODERECORD,
				     .component_mask = MAD_SA_NODE_TYPE,
				     .record = &node,
				     .record_size = offsetof(struct mad_sa_node_record, pad)};
	struct mad_sa_table *table;
	unsigned count;

	if (mad_sa_request(port, &query, &table))
		return 0;
	for (count = 0; count < HOSTS && count < table->count; count++) {
		const struct mad_sa_node_record *found = mad_sa_table_record(table, count);
		uint64_t guid = mad_read_field(found->node_info, 0, IB_NODE_PORT_GUID_F);

		guid = htobe64(guid);
		memcpy(gids[count], own, 8);
		memcpy(gids[count] + 8, &guid, 8);
	}
	mad_sa_table_free(table);
	return count;
}

/* To how many of the GIDs there is a path; other paths are wrong. */
static unsigned reached(const struct mad_sa_table *table, uint8_t gids[][16], unsigned count)
{
	unsigned bits = 0, found = 0;

	for (size_t i = 0; i < table->count; i++) {
		const struct mad_sa_path_record *path = mad_sa_table_record(table, i);
		unsigned to = 0;

		while (to < count && memcmp(path->dgid, gids[to], 16))
			to++;
		if (to == count || memcmp(path->sgid, own, 16))
			return 0;
		found += !(bits >> to & 1);
		bits |= 1U << to;
	}
	return found;
}

/* From the own port to the first so many GIDs. */
static void multi_path_to(const char *what, uint8_t gids[][16], unsigned count)
{
	struct {
		struct mad_sa_multi_path_record head;
		uint8_t gids[1 + HOSTS][16];
	} request = {.head = {.reversible_num = 0x80 | 100,
			      .sgid_count = 1,
			      .dgid_count = (uint8_t)count}};
	struct mad_sa_query query = {
		.method = IB_MAD_METHOD_GETMULTI,
		.attribute = IB_SA_ATTR_MULTIPATH,
		.component_mask = MAD_SA_MULTI_PATH_SGID_COUNT | MAD_SA_MULTI_PATH_DGID_COUNT |
				  MAD_SA_MULTI_PATH_NUMB_PATH | MAD_SA_MULTI_PATH_REVERSIBLE,
		.record = &request,
		.record_size = sizeof(request.head) + 16 * (1 + count)};
	struct mad_sa_table *table;
	int err;

	memcpy(request.gids[0], own, 16);
	memcpy(request.gids[1], gids, 16 * count);
	err = mad_sa_request(port, &query, &table);
	tell(!err && reached(table, gids, count) == count, what, err,
	     err ? mad_last_failure()->status : 0, err ? 0 : table->count);
	mad_sa_table_free(table);
}

static void multi_path(void)
{
	uint8_t gids[HOSTS][16];

	multi_path_to("MultiPath", &known.dgid, 1);
	multi_path_to("MultiPath to all hosts", gids, hosts(gids));
}

static void tables(void)
{
	static const struct {
		const char *name;
		unsigned attribute;
	} attributes[] = {
		{"NodeRecord", IB_SA_ATTR_NODERECORD},
		{"PortInfoRecord", IB_SA_ATTR_PORTINFORECORD},
		{"SLtoVLMappingTableRecord", IB_SA_ATTR_SL2VLTABLERECORD},
		{"SwitchInfoRecord", IB_SA_ATTR_SWITCHINFORECORD},
		{"LinearForwardingTableRecord", IB_SA_ATTR_LFTRECORD},
		{"MulticastForwardingTableRecord", IB_SA_ATTR_MFTRECORD},
		{"SMInfoRecord", IB_SA_ATTR_SMINFORECORD},
		{"LinkRecord", IB_SA_ATTR_LINKRECORD},
		{"GUIDInfoRecord", IB_SA_ATTR_GUIDINFORECORD},
		{"P_KeyTableRecord", IB_SA_ATTR_PKEYTABLERECORD},
		{"VLArbitrationTableRecord", IB_SA_ATTR_VLARBTABLERECORD},
		{"MCMemberRecord", IB_SA_ATTR_MCRECORD},
		{"InformInfoRecord", IB_SA_ATTR_INFORMINFORECORD},
	};

	/* only trusted requesters see P_Keys (IBA 15.4.1.2); 1 is opensm's SM_Key by default */
	mad_port_set(port, MAD_PORT_SA_KEY, 1);
	for (size_t i = 0; i < COUNT(attributes); i++) {
		struct mad_sa_query query = {.attribute = attributes[i].attribute};
		struct mad_sa_table *table;
		int err = mad_sa_request(port, &query, &table);

		tell(!err, attributes[i].name, err, err ? mad_last_failure()->status : 0,
		     err ? 0 : table->count);
		mad_sa_table_free(table);
	}
}

/* --- a storm -------------------------------------------------------------------- */

static unsigned right, refused, silent, transmissions, most;

static void path_came(struct mad_async *async, const struct mad_sa_response *response,
		      void *arg)
{
	const struct mad_sa_path_record *path = mad_sa_table_record(response->table, 0);
	unsigned lid = (unsigned)(uintptr_t)arg;

	(void)async;
	transmissions += response->reply->transmissions;
	if (response->reply->transmissions > most)
		most = response->reply->transmissions;
	if (!response->error)
		right += be16toh(path->dlid) == lid;
	else if (response->error == -EIO)
		refused++;
	else
		silent++;
	mad_sa_table_free(response->table);
}

static void storm(unsigned count, unsigned lid)
{
	struct mad_sa_path_record path = {.dlid = htobe16((uint16_t)lid)};
	struct mad_sa_query query = {.method = IB_MAD_METHOD_GET,
				     .attribute = IB_SA_ATTR_PATHRECORD,
				     .component_mask = MAD_SA_PATH_SGID | MAD_SA_PATH_DLID |
						       MAD_SA_PATH_NUMB_PATH,
				     .record = &path,
				     .record_size = sizeof(path)};
	struct mad_async *async = mad_async_create(port);
	struct timespec start, end;
	unsigned i;

	path.reversible_num = 1;
	memcpy(path.sgid, own, 16);
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (i = 0; i < count; i++)
		if (mad_sa_submit(async, &query, path_came, (void *)(uintptr_t)lid, NULL))
			errx(1, "mad_sa_submit");
	mad_async_wait(async, -1);
	clock_gettime(CLOCK_MONOTONIC, &end);
	mad_async_free(async);
	printf("%u right, %u refused, %u silent, %u transmissions, at most %u of one, %ld ms\n",
	       right, refused, silent, transmissions, most,
	       (end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000);
	wrong = right + refused + silent != count;
}

/* --- following the SA ------------------------------------------------------------ */

static void follow(double seconds)
{
	struct timespec start, now;
	int last_error = 1, err;
	unsigned last_lid = 0, lid, first_lid = 0;
	double elapsed = 0;

	mad_rpc_set_timeout(port, 100);
	mad_rpc_set_retries(port, 1);
	clock_gettime(CLOCK_MONOTONIC, &start);
	while (elapsed < seconds) {
		const struct mad_sa_query query = {.method = IB_MAD_METHOD_GET,
						   .attribute = CLASS_PORT_INFO};
		ib_portid_t sm;

		err = mad_sa_request(port, &query, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
		elapsed = (double)(now.tv_sec - start.tv_sec) +
			  (double)(now.tv_nsec - start.tv_nsec) / 1e9;
		lid = ib_resolve_smlid_via(&sm, 0, port) ? 0 : (unsigned)sm.lid;
		if (err != last_error || lid != last_lid) {
			printf("%6.2f s: SM LID %u: %s\n", elapsed, lid,
			       err ? strerror(-err) : "the SA responds");
			fflush(stdout);
		}
		last_error = err;
		last_lid = lid;
		if (!err && !first_lid)
			first_lid = lid;
		else if (!err && lid != first_lid)
			return;
		usleep(50000);
	}
	wrong = 1;
}

int main(int argc, char **argv)
{
	int classes[] = {IB_SMI_DIRECT_CLASS, IB_SA_CLASS};

	port = mad_rpc_open_port(NULL, 0, classes, 2);
	if (!port || argc < 3)
		errx(1, "no port, or no arguments");
	if (ib_resolve_self_via(NULL, NULL, &own, port))
		err(1, "this port");
	is_opensm = argc == 4 && !strcmp(argv[3], "opensm");
	if (!strcmp(argv[1], "calls")) {
		groups();
		check_services();
		paths((unsigned)atoi(argv[2]));
		multi_path();
		tables();
	} else if (!strcmp(argv[1], "storm") && argc == 4) {
		storm((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
	} else if (!strcmp(argv[1], "follow")) {
		follow(atof(argv[2]));
	}
	mad_rpc_close_port(port);
	return wrong;
}
