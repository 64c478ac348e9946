/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Fabrics for tests of discoveries: the machine on a topology by its lines, the simulator's own
 * graph to compare with, and nodes that behave oddly.
 *
 *	start(TWO_SWITCHES);
 *	add_oddity((struct oddity){.node = "far", .attribute = IB_ATTR_PORT_INFO, .drop =
 *true}); discover(NULL);
 *	...
 *	stop();
 */
#ifndef TESTS_MACHINE_FABRICS_H
#define TESTS_MACHINE_FABRICS_H

#include "machine.h"
#include "test.h"
#include "topology.h"

#include <infiniband/mad.h>
#include <infiniband/mad_errors.h>
#include <infiniband/mad_fabric.h>
#include <infiniband/mad_fabric_text.h>
#include <infiniband/mad_fields.h>
#include <unistd.h>

/* Two switches with two links between them, and a host at each. */
#define TWO_SWITCHES           \
	"Ca 1 \"host\"\n"      \
	"[1] \"left\"[1]\n"    \
	"Switch 5 \"left\"\n"  \
	"[2] \"right\"[2]\n"   \
	"[3] \"right\"[3]\n"   \
	"Switch 5 \"right\"\n" \
	"[1] \"far\"[1]\n"     \
	"Ca 1 \"far\"\n"

/* An attribute of performance management, whose modifier is the port. */
#define PMA(attribute) ((unsigned)IB_PERFORMANCE_CLASS << 16 | (attribute))

/* What a node does with requests, instead of what it should do. */
struct oddity {
	const char *node;     /* NULL: all */
	unsigned attribute;   /* 0: all */
	unsigned first, last; /* modifiers; both 0: all */
	bool only_0;          /* only the modifier 0 */
	unsigned passes;      /* requests that it handles before */
	uint64_t m_key;       /* it drops requests with another M_Key; 0: no key */
	bool drop;
	uint16_t status;       /* of its responses */
	enum MAD_FIELDS field; /* or the value of a field of its responses */
	uint64_t value;
	bool counts; /* and each response has the next value */
};

#define MOST_ODDITIES 8
#define MOST_ASKED    40000

static struct {
	struct oddity oddities[MOST_ODDITIES];
	unsigned oddity_count;
	struct {
		char node[16];
		unsigned attribute, modifier;
	} asked[MOST_ASKED];
	unsigned asked_count;
	uint8_t marks[65536]; /* oddities of a response, by the TID */
} net;
static struct graph truth;
static struct ibmad_port *port;
static struct mad_fabric *fabric, *previous;

static inline bool is_odd_here(const struct oddity *oddity, const char *node,
			       unsigned attribute, unsigned modifier)
{
	if ((oddity->node && strcmp(oddity->node, node)) ||
	    (oddity->attribute && oddity->attribute != attribute))
		return false;
	if (oddity->only_0)
		return modifier == 0;
	return (!oddity->first && !oddity->last) ||
	       (modifier >= oddity->first && modifier <= oddity->last);
}

static inline enum machine_verdict request_arrived(struct machine_mad *mad, unsigned tid)
{
	unsigned attribute = mad_get_field(mad->bytes, 0, IB_MAD_ATTRID_F);
	unsigned modifier = mad_get_field(mad->bytes, 0, IB_MAD_ATTRMOD_F);

	if (mad->bytes[1] == IB_PERFORMANCE_CLASS) {
		attribute = PMA(attribute);
		modifier = mad->bytes[IB_PC_DATA_OFFS + 1];
	}
	if (net.asked_count < MOST_ASKED) {
		snprintf(net.asked[net.asked_count].node, sizeof(net.asked->node), "%s",
			 mad->node);
		net.asked[net.asked_count].attribute = attribute;
		net.asked[net.asked_count++].modifier = modifier;
	}
	net.marks[tid] = 0;
	for (unsigned i = 0; i < net.oddity_count; i++) {
		struct oddity *oddity = &net.oddities[i];

		if (!is_odd_here(oddity, mad->node, attribute, modifier))
			continue;
		if (oddity->passes) {
			oddity->passes--;
			continue;
		}
		if (oddity->drop ||
		    (oddity->m_key &&
		     oddity->m_key != mad_get_field64(mad->bytes, 0, IB_MAD_MKEY_F)))
			return MACHINE_DROP;
		if (oddity->status)
			return machine_reply(mad, oddity->status, 0, NULL, 0);
		net.marks[tid] |= (uint8_t)(1 << i);
	}
	return MACHINE_PASS;
}

static inline enum machine_verdict mad_arrived(struct machine_mad *mad, void *arg)
{
	unsigned tid = (unsigned)mad->bytes[14] << 8 | mad->bytes[15];

	(void)arg;
	if (mad->bytes[1] != IB_SMI_CLASS && mad->bytes[1] != IB_SMI_DIRECT_CLASS &&
	    mad->bytes[1] != IB_PERFORMANCE_CLASS)
		return MACHINE_PASS;
	if (!(mad->bytes[3] & IB_MAD_RESPONSE))
		return request_arrived(mad, tid);
	for (unsigned i = 0; mad->at_host && i < net.oddity_count; i++) {
		struct oddity *oddity = &net.oddities[i];

		if (!(net.marks[tid] >> i & 1) || !oddity->field)
			continue;
		if (mad_field_info(oddity->field)->bits > 32)
			mad_set_field64(mad->bytes, IB_SMP_DATA_OFFS, oddity->field,
					oddity->value);
		else
			mad_set_field(mad->bytes, IB_SMP_DATA_OFFS, oddity->field,
				      (uint32_t)oddity->value);
		oddity->value += oddity->counts;
	}
	return MACHINE_PASS;
}

static inline void add_oddity(struct oddity oddity)
{
	assert_true(net.oddity_count < MOST_ODDITIES);
	net.oddities[net.oddity_count++] = oddity;
}

static inline void set_field(const char *node, unsigned attribute, enum MAD_FIELDS field,
			     uint64_t value)
{
	add_oddity((struct oddity){
		.node = node, .attribute = attribute, .field = field, .value = value});
}

/* The number of requests that arrived; node NULL: at all; attribute 0: all. */
static inline unsigned asked(const char *node, unsigned attribute)
{
	unsigned count = 0;

	for (unsigned i = 0; i < net.asked_count; i++)
		count += (!node || !strcmp(net.asked[i].node, node)) &&
			 (!attribute || net.asked[i].attribute == attribute);
	return count;
}

static inline void forget_odd_nodes(void)
{
	net.oddity_count = net.asked_count = 0;
}

/* --- the machine ---------------------------------------------------------------- */

static char topology_file[32];

static inline void drop_topology_file(void)
{
	if (topology_file[0])
		unlink(topology_file);
}

/* The file with these lines: that of the test before, if it had the same. */
static inline const char *file_of(const char *lines)
{
	static char *written;
	int fd;

	if (!written)
		atexit(drop_topology_file);
	if (written && !strcmp(written, lines))
		return topology_file;
	drop_topology_file();
	free(written);
	written = strdup(lines);
	strcpy(topology_file, "/tmp/topology-XXXXXX");
	fd = mkstemp(topology_file);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, lines, strlen(lines)), strlen(lines));
	close(fd);
	return topology_file;
}

/* On the lines of a topology, or a generated one. */
static inline void start_at(const char *topology, const char *nodes)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_PERFORMANCE_CLASS};
	struct topology_error error;

	if (strchr(topology, '\n'))
		topology = file_of(topology);
	graph_free(&truth);
	graph_init(&truth);
	if (strncmp(topology, "star:", 5) && topology_load(&truth, topology, &error))
		fail_msg("%s", error.text);
	forget_odd_nodes();
	machine_start(topology, nodes);
	machine_on_arrival(mad_arrived, NULL);
	port = mad_rpc_open_port(NULL, 0, classes, 3);
	assert_non_null(port);
}

static inline void start(const char *topology)
{
	start_at(topology, NULL);
}

static inline void stop(void)
{
	machine_fail(MACHINE_MALLOC, 0, 0);
	mad_rpc_close_port(port);
	machine_stop();
}

static inline int setup_two_switches(void)
{
	start(TWO_SWITCHES);
	return 0;
}

static inline void free_fabrics(void)
{
	mad_fabric_free(fabric);
	mad_fabric_free(previous);
	fabric = previous = NULL;
}

static inline int teardown_fabrics(void)
{
	machine_fail(MACHINE_MALLOC, 0, 0);
	free_fabrics();
	stop();
	graph_free(&truth);
	graph_init(&truth);
	return 0;
}

/* --- the result ----------------------------------------------------------------- */

/* Returns the number of nodes. */
static inline size_t discover(const struct mad_fabric_options *options)
{
	mad_fabric_free(fabric);
	assert_int_equal(mad_fabric_discover(port, options, &fabric), 0);
	return fabric->node_count;
}

/* The fabric becomes the previous one. */
static inline void discover_again(void)
{
	mad_fabric_free(previous);
	previous = fabric;
	fabric = NULL;
	discover(&(struct mad_fabric_options){.previous = previous});
}

static inline uint64_t guid_of(const char *node)
{
	uint32_t found = graph_find(&truth, node);

	assert_int_not_equal(found, NONE);
	return truth.nodes[found].guid;
}

static inline const struct mad_fabric_node *find(const char *node)
{
	return mad_fabric_find_guid(fabric, guid_of(node));
}

static inline const struct mad_fabric_port *port_of(const char *node, unsigned number)
{
	return mad_fabric_get_port(find(node), number);
}

static inline unsigned problems(enum mad_fabric_problem_kind kind)
{
	unsigned count = 0;

	for (size_t i = 0; i < fabric->problem_count; i++)
		count += mad_fabric_get_problem(fabric, i)->kind == kind;
	return count;
}

static inline void expect_link(const char *one, unsigned number, const char *other,
			       unsigned other_number)
{
	assert_non_null(port_of(one, number));
	assert_ptr_equal(port_of(one, number)->peer, port_of(other, other_number));
	assert_ptr_equal(port_of(other, other_number)->peer, port_of(one, number));
}

#endif
