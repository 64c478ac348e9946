/* SPDX-License-Identifier: BSD-2-Clause */

/* SMPs, on ports with a QP0: directed routes, LID-routed SMPs, Sets, the M_Key, traps. */
#include "bytes.h"
#include "check.h"
#include "mads.h"

#include <infiniband/umad_ext.h>
#include <string.h>
#include <unistd.h>

#define LID_ROUTED     0x01 /* the two classes */
#define DIRECTED_ROUTE 0x81
#define TRAP           0x05
#define TRAP_REPRESS   0x07
#define GET_RESPONSE   0x81
#define NODE_INFO      0x0011
#define PORT_INFO      0x0015
#define NOTICE         0x0002
#define SWITCH         2
#define DIRECTION      0x8000 /* of the status: the SMP is a response */
#define PERMISSIVE     0xffff
#define MOST_HOPS      63
#define HEADER_ONLY    24 /* bytes of the MAD in a timeout report */
#define PATIENT_MS     10000

/* offsets in an SMP */
#define HOP_POINTER     6
#define HOP_COUNT       7
#define ATTRIBUTE       16
#define MODIFIER        20
#define M_KEY           24
#define SOURCE_LID      32
#define DESTINATION_LID 34
#define SMP_DATA        64
#define INITIAL_PATH    128
#define RETURN_PATH     192
/* in NodeInfo */
#define NODE_TYPE       2
#define PORTS           3
#define PORT_GUID       20
#define LOCAL_PORT      36
/* in PortInfo */
#define LID             16
#define SM_LID          18
#define STATE           32 /* the lower half */
#define PHYSICAL_STATE  33 /* the upper half; the lower one is the default after LinkDown */
#define PROTECTION      34 /* the two upper bits */
#define VIOLATIONS      44
#define LINK_UP         5
/* in a Notice, and in that of trap 144 */
#define TRAP_NUMBER     4
#define ISSUER          6
#define LID_144         12
#define CAPABILITIES    16
#define IS_SM           0x2

struct route {
	int hops;
	uint8_t ports[MOST_HOPS + 2]; /* from 1 on */
};

static int port_fd, agent;
static void *umad;
static struct route to_there, to_switch;
static uint32_t last_tid;

static uint8_t *smp(void)
{
	return umad_get_mad(umad);
}

static uint8_t *data(void)
{
	return smp() + SMP_DATA;
}

static void opened_with(uint8_t mgmt_class)
{
	if (here.ethernet)
		cannot("the ports have no QP0");
	port_fd = open_port(&here);
	agent = umad_register(port_fd, mgmt_class, 1, 0, NULL);
	expect(agent >= 0);
	umad = new_umad(MAD);
}

static void begin_smp(uint8_t mgmt_class, uint8_t method, uint16_t attribute, uint8_t modifier)
{
	memset(smp(), 0, MAD);
	set_mad_of(umad, mgmt_class, method, ++last_tid);
	put16(smp() + ATTRIBUTE, attribute);
	smp()[MODIFIER + 3] = modifier;
}

static void set_directed(const struct route *route, uint8_t method, uint16_t attribute,
			 uint8_t modifier)
{
	begin_smp(DIRECTED_ROUTE, method, attribute, modifier);
	put16(smp() + SOURCE_LID, PERMISSIVE);
	put16(smp() + DESTINATION_LID, PERMISSIVE);
	smp()[HOP_COUNT] = (uint8_t)route->hops;
	memcpy(smp() + INITIAL_PATH, route->ports, (size_t)route->hops + 1);
	umad_set_addr(umad, PERMISSIVE, 0, 0, 0);
}

static void set_routed(uint16_t lid, uint8_t method, uint16_t attribute, uint8_t modifier)
{
	begin_smp(LID_ROUTED, method, attribute, modifier);
	umad_set_addr(umad, lid, 0, 0, 0);
}

static void receive_smp(void)
{
	expect_equal(receive_mad(port_fd, umad, MAD, agent), MAD);
	expect_equal(umad_status(umad), 0);
	expect_equal(tid_of(umad), last_tid);
	expect_equal(method_of(umad), GET_RESPONSE);
}

static void exchange(void)
{
	send_mad(port_fd, agent, umad, MAD, PATIENT_MS, 2);
	receive_smp();
}

static void ask(const struct route *route, uint16_t attribute, uint8_t modifier)
{
	set_directed(route, METHOD_GET, attribute, modifier);
	exchange();
}

static void expect_timeout(int timeout_ms)
{
	send_mad(port_fd, agent, umad, MAD, timeout_ms, 1);
	expect_equal(receive_mad(port_fd, umad, MAD, agent), HEADER_ONLY);
	expect_equal(umad_status(umad), ETIMEDOUT);
	expect_equal(tid_of(umad), last_tid);
}

static bool leads_there(const struct route *route)
{
	ask(route, NODE_INFO, 0);
	return !memcmp(data() + PORT_GUID, there.gid + 8, 8);
}

/* The first switch, and the other port, which is behind this switch. */
static void find_routes(void)
{
	int ports;

	to_switch = (struct route){.hops = 1, .ports = {0, (uint8_t)here.portnum}};
	if (leads_there(&to_switch))
		cannot("there is no switch between the ports");
	expect_equal(data()[NODE_TYPE], SWITCH);
	ports = data()[PORTS];
	to_there = to_switch;
	to_there.hops = 2;
	for (int port = 1; port <= ports; port++) {
		ask(&to_switch, PORT_INFO, (uint8_t)port);
		if (data()[PHYSICAL_STATE] >> 4 != LINK_UP)
			continue;
		to_there.ports[2] = (uint8_t)port;
		if (leads_there(&to_there))
			return;
	}
	cannot("the ports are not on one switch");
}

static void opened(void)
{
	opened_with(DIRECTED_ROUTE);
	find_routes();
}

static void the_own_node_responds_to_a_route_without_hops(void)
{
	const struct route nowhere = {.hops = 0};

	opened_with(DIRECTED_ROUTE);
	ask(&nowhere, NODE_INFO, 0);
	expect_bytes(data() + PORT_GUID, here.gid + 8, 8);
	expect_equal(data()[LOCAL_PORT], here.portnum);
	expect_equal(get16(smp() + 4), DIRECTION);
	expect_equal(smp()[HOP_POINTER],
		     1); /* the SMI increments it, and no response returns */
	expect_equal(smp()[HOP_COUNT], 0);
}

/*
 * A route of any length goes to and fro between two switches. The response has the route, the
 * ports of the way back, and a hop pointer of 0.
 */
static void a_route_has_up_to_63_hops(void)
{
	struct route route, next;
	uint8_t entered[2]; /* the port at which each of two switches is entered */
	int ports;

	opened();
	ask(&to_switch, NODE_INFO, 0);
	ports = data()[PORTS];
	next = to_switch;
	next.hops = 2;
	for (int port = 1;; port++) {
		if (port > ports)
			cannot("the switch has no link to another switch");
		ask(&to_switch, PORT_INFO, (uint8_t)port);
		if (data()[PHYSICAL_STATE] >> 4 != LINK_UP)
			continue;
		next.ports[2] = (uint8_t)port;
		ask(&next, NODE_INFO, 0);
		if (data()[NODE_TYPE] == SWITCH)
			break;
	}
	entered[0] = next.ports[2];
	entered[1] = data()[LOCAL_PORT];
	route = to_switch;
	for (int hops = 2; hops <= MOST_HOPS; hops++) {
		route.hops = hops;
		route.ports[hops] = entered[hops % 2];
		ask(&route, NODE_INFO, 0);
		expect_equal(get16(smp() + 4), DIRECTION);
		expect_equal(smp()[HOP_POINTER], 0);
		expect_equal(smp()[HOP_COUNT], hops);
		expect_bytes(smp() + INITIAL_PATH, route.ports, (size_t)hops + 1);
		expect_equal(data()[LOCAL_PORT], entered[1 - hops % 2]);
		for (int hop = 2; hop <= hops; hop++)
			expect_equal(smp()[RETURN_PATH + hop], entered[1 - hop % 2]);
	}
}

static void expect_refused(void)
{
	expect_equal(umad_send(port_fd, agent, umad, MAD, 100, 0), -EIO);
	expect_equal(errno, EINVAL);
}

/* The kernel compares the route with the port, and the hop pointer with the hop count. */
static void a_wrong_route_is_refused(void)
{
	struct route route;

	opened();
	route = to_switch;
	route.ports[1] = (uint8_t)(here.portnum + 1);
	set_directed(&route, METHOD_GET, NODE_INFO, 0);
	expect_refused();
	set_directed(&to_switch, METHOD_GET, NODE_INFO, 0);
	smp()[HOP_COUNT] = MOST_HOPS + 1;
	expect_refused();
	set_directed(&to_there, METHOD_GET, NODE_INFO, 0);
	smp()[HOP_POINTER] = 1;
	expect_refused();
	set_directed(&to_there, METHOD_GET, NODE_INFO, 0);
	smp()[HOP_POINTER] = (uint8_t)(to_there.hops + 2);
	expect_refused();
}

/* A request by a port that the switch does not have. */
static void set_to_nowhere(void)
{
	struct route route = to_switch;

	route.hops = 2;
	route.ports[2] = 250;
	set_directed(&route, METHOD_GET, NODE_INFO, 0);
}

static void a_route_without_a_link_times_out(void)
{
	opened();
	set_to_nowhere();
	expect_timeout(200);
}

static void lid_routed_smps_reach_any_node(void)
{
	const struct port *ports[] = {&here, &there};

	opened_with(LID_ROUTED);
	for (int i = 0; i < 2; i++) {
		set_routed(ports[i]->lid, METHOD_GET, NODE_INFO, 0);
		exchange();
		expect_bytes(data() + PORT_GUID, ports[i]->gid + 8, 8);
		expect_equal(status_of(umad), 0);
	}
}

static void an_unknown_attribute_has_status_0x000c(void)
{
	opened();
	ask(&to_there, 0x00ff, 0);
	expect_equal(status_of(umad) & ~DIRECTION, 0x000c);
	ask(&to_switch, 0x00ff, 0);
	expect_equal(status_of(umad) & ~DIRECTION, 0x000c);
}

static void each_of_two_programs_gets_its_own_responses(void)
{
	int fds[2], agents[2];

	opened();
	fds[0] = port_fd;
	agents[0] = agent;
	fds[1] = open_port(&here);
	agents[1] = umad_register(fds[1], DIRECTED_ROUTE, 1, 0, NULL);
	expect(agents[1] >= 0);
	last_tid = 100;
	for (int i = 0; i < 2; i++) {
		set_directed(i ? &to_there : &to_switch, METHOD_GET, NODE_INFO, 0);
		last_tid--; /* both have the same */
		send_mad(fds[i], agents[i], umad, MAD, PATIENT_MS, 0);
	}
	last_tid++;
	for (int i = 0; i < 2; i++) {
		port_fd = fds[i];
		agent = agents[i];
		receive_smp();
		expect_equal(smp()[HOP_COUNT], i + 1);
	}
}

static void a_transaction_in_flight_is_not_begun_again(void)
{
	opened();
	set_to_nowhere();
	send_mad(port_fd, agent, umad, MAD, PATIENT_MS, 0);
	expect_equal(umad_send(port_fd, agent, umad, MAD, PATIENT_MS, 0), -EIO);
	expect_equal(errno, EINVAL);
}

/* The content that Get has returned, without a change of states. */
static void put_port_info(const uint8_t content[64])
{
	memcpy(data(), content, 64);
	data()[STATE] &= 0xf0;
	data()[PHYSICAL_STATE] = 0;
}

static void a_set_is_responded(void)
{
	uint8_t content[64];

	opened();
	ask(&to_there, PORT_INFO, (uint8_t)there.portnum);
	memcpy(content, data(), sizeof(content));
	set_directed(&to_there, METHOD_SET, PORT_INFO, (uint8_t)there.portnum);
	put_port_info(content);
	exchange();
	expect_equal(status_of(umad), DIRECTION);
	expect_bytes(data() + LID, content + LID, 2);
}

/* Sets M_Key and protection of the other port; `key` is the present M_Key. */
static void protect(const uint8_t *key, const uint8_t *new_key, uint8_t protection)
{
	uint8_t content[64];

	set_directed(&to_there, METHOD_GET, PORT_INFO, (uint8_t)there.portnum);
	memcpy(smp() + M_KEY, key, 8);
	exchange();
	memcpy(content, data(), sizeof(content));
	set_directed(&to_there, METHOD_SET, PORT_INFO, (uint8_t)there.portnum);
	memcpy(smp() + M_KEY, key, 8);
	put_port_info(content);
	memcpy(data(), new_key, 8);
	data()[PROTECTION] = (uint8_t)((data()[PROTECTION] & 0x3f) | protection << 6);
	exchange();
	expect_equal(status_of(umad), DIRECTION);
}

static void a_wrong_m_key_has_no_response(void)
{
	static const uint8_t none[8], key[8] = {1, 2, 3, 4, 5, 6, 7, 8}, wrong[8] = {9};
	uint16_t violations;

	opened();
	ask(&to_there, PORT_INFO, (uint8_t)there.portnum);
	violations = get16(data() + VIOLATIONS);
	protect(none, key, 2);
	set_directed(&to_there, METHOD_GET, PORT_INFO, (uint8_t)there.portnum);
	memcpy(smp() + M_KEY, wrong, 8);
	expect_timeout(200);
	set_directed(&to_there, METHOD_GET, PORT_INFO, (uint8_t)there.portnum);
	memcpy(smp() + M_KEY, key, 8);
	exchange();
	expect_equal(get16(data() + VIOLATIONS), violations + 2); /* two attempts */
	protect(key, none, 0);
}

/* A trap is for the program that serves the method, as a subnet manager does. */
static void a_trap_reaches_a_program(void)
{
	long traps[16 / sizeof(long)] = {1L << TRAP};
	int from, sender;

	opened_with(LID_ROUTED);
	agent = umad_register(port_fd, LID_ROUTED, 1, 0, traps);
	expect(agent >= 0);
	from = open_port(&there);
	sender = umad_register(from, LID_ROUTED, 1, 0, NULL);
	expect(sender >= 0);
	set_routed(here.lid, TRAP, NOTICE, 0);
	fill(umad, SMP_DATA, SMP_DATA + 64);
	send_mad(from, sender, umad, MAD, 0, 0);
	memset(smp(), 0, MAD);
	expect_equal(receive_mad(port_fd, umad, MAD, agent), MAD);
	expect_equal(umad_status(umad), 0);
	expect_equal(method_of(umad), TRAP);
	expect_equal(tid_of(umad), last_tid);
	expect_filled(umad, SMP_DATA, SMP_DATA + 64);
	expect_equal(be16toh(umad_get_mad_addr(umad)->lid), there.lid);
	expect_equal(be32toh(umad_get_mad_addr(umad)->qpn), 0);
	/* its response is for the management agent of the node */
	smp()[3] = TRAP_REPRESS;
	send_mad(port_fd, agent, umad, MAD, 0, 0);
}

/* The other port sends its traps to that LID. Returns the LID that was set before. */
static uint16_t set_sm_lid(uint16_t lid)
{
	uint8_t content[64];

	ask(&to_there, PORT_INFO, (uint8_t)there.portnum);
	memcpy(content, data(), sizeof(content));
	set_directed(&to_there, METHOD_SET, PORT_INFO, (uint8_t)there.portnum);
	put_port_info(content);
	put16(data() + SM_LID, lid);
	exchange();
	expect_equal(status_of(umad), DIRECTION);
	return get16(content + SM_LID);
}

/* Receives trap 144 of the other port, with this bit IsSM. Returns its transaction ID. */
static uint32_t receive_trap_144(int trap_agent, uint32_t is_sm)
{
	do {
		expect_equal(receive_mad(port_fd, umad, MAD, trap_agent), MAD);
		expect_equal(method_of(umad), TRAP);
		expect_equal(get16(smp() + ATTRIBUTE), NOTICE);
		expect_equal(be16toh(umad_get_mad_addr(umad)->lid), there.lid);
		expect_equal(get16(data() + TRAP_NUMBER), 144);
		expect_equal(get16(data() + ISSUER), there.lid);
		expect_equal(get16(data() + LID_144), there.lid);
	} while ((get32(data() + CAPABILITIES) & IS_SM) != is_sm);
	return tid_of(umad);
}

static void a_node_repeats_its_trap_until_it_is_repressed(void)
{
	enum {
		INTERVALS_MS = 2500
	};
	long traps[16 / sizeof(long)] = {1L << TRAP};
	int issm, trap_agent, length = MAD;
	uint16_t sm_lid;
	uint32_t tid;

	opened();
	trap_agent = umad_register(port_fd, LID_ROUTED, 1, 0, traps);
	expect(trap_agent >= 0);
	sm_lid = set_sm_lid(here.lid);
	issm = umad_open_issm(there.ca_name, there.portnum, 0); /* the device sends the trap */
	expect(issm >= 0);
	tid = receive_trap_144(trap_agent, IS_SM);
	expect_equal(receive_trap_144(trap_agent, IS_SM), tid);
	smp()[3] = TRAP_REPRESS;
	send_mad(port_fd, trap_agent, umad, MAD, 0, 0);
	/* a trap may have been on its way */
	while (umad_recv(port_fd, umad, &length, INTERVALS_MS / 2) == trap_agent)
		;
	expect_equal(umad_recv(port_fd, umad, &length, INTERVALS_MS), -ETIMEDOUT);
	expect_equal(umad_close_issm(issm), 0);
	expect(receive_trap_144(trap_agent, 0) != tid);
	smp()[3] = TRAP_REPRESS;
	send_mad(port_fd, trap_agent, umad, MAD, 0, 0);
	set_sm_lid(sm_lid);
}

/*
 * Whether an SMP is responded while that many others of its agent are in flight; the first one
 * of these times out at that time. If not, the SMP is sent when that one has timed out.
 */
static bool responded_beside(int in_flight, int timeout_ms)
{
	bool responded;

	port_fd = open_port(&here);
	agent = umad_register(port_fd, DIRECTED_ROUTE, 1, 0, NULL);
	expect(agent >= 0);
	for (int i = 0; i < in_flight; i++) {
		set_to_nowhere();
		send_mad(port_fd, agent, umad, MAD, i ? PATIENT_MS : timeout_ms, 0);
	}
	set_directed(&to_switch, METHOD_GET, NODE_INFO, 0);
	send_mad(port_fd, agent, umad, MAD, PATIENT_MS, 0);
	responded = receive_mad(port_fd, umad, MAD, agent) == MAD;
	if (!responded) {
		expect_equal(umad_status(umad), ETIMEDOUT);
		expect_equal(receive_mad(port_fd, umad, MAD, agent), MAD);
	}
	expect_equal(tid_of(umad), last_tid);
	expect_equal(method_of(umad), GET_RESPONSE);
	expect_equal(umad_close_port(port_fd), 0);
	return responded;
}

/* Some kernels have 128 SMPs of an agent in flight, and hold the others back. */
static void requests_in_flight_at_once_are_all_or_128(void)
{
	opened();
	expect_equal(umad_close_port(port_fd), 0);
	expect(responded_beside(127, PATIENT_MS));
	if (responded_beside(128, 1000)) {
		expect(responded_beside(300, PATIENT_MS));
		note("all are in flight");
	} else {
		note("128 are in flight");
	}
}

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		CHECK(the_own_node_responds_to_a_route_without_hops),
		CHECK(a_route_has_up_to_63_hops),
		CHECK(a_wrong_route_is_refused),
		CHECK(a_route_without_a_link_times_out),
		CHECK(lid_routed_smps_reach_any_node),
		CHECK(an_unknown_attribute_has_status_0x000c),
		CHECK(each_of_two_programs_gets_its_own_responses),
		CHECK(a_transaction_in_flight_is_not_begun_again),
		CHECK(a_set_is_responded),
		CHECK(a_wrong_m_key_has_no_response),
		CHECK(a_trap_reaches_a_program),
		CHECK(a_node_repeats_its_trap_until_it_is_repressed),
		CHECK(requests_in_flight_at_once_are_all_or_128),
	};

	set_environment(argc, argv);
	find_ports();
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
