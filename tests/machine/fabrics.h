/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Fabrics for tests of discoveries: the machine on a topology by its lines, the simulator's own
 * graph to compare with, and nodes that behave oddly.
 *
 *	start(TWO_SWITCHES);
 *	add_oddity((struct oddity){PORT_INFO("far", 1), .drop = true});
 *	discover(NULL);
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
#define TWO_SWITCHES                                          \
	"Ca 1 \"host\"\n[1] \"left\"[1]\nSwitch 5 \"left\"\n" \
	"[2] \"right\"[2]\n[3] \"right\"[3]\n"                \
	"Switch 5 \"right\"\n[1] \"far\"[1]\nCa 1 \"far\"\n"

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
		const char *node;
		unsigned attribute;
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
	bool all = !oddity->only_0 && !oddity->first && !oddity->last;

	return (!oddity->node || !strcmp(oddity->node, node)) &&
	       (!oddity->attribute || oddity->attribute == attribute) &&
	       (all || (modifier >= oddity->first && modifier <= oddity->last));
}

static inline enum machine_verdict request_arrived(struct machine_mad *mad, uint8_t *marks)
{
	unsigned attribute = mad_get_field(mad->bytes, 0, IB_MAD_ATTRID_F);
	unsigned modifier = mad_get_field(mad->bytes, 0, IB_MAD_ATTRMOD_F);

	if (mad->bytes[1] == IB_PERFORMANCE_CLASS) {
		attribute = PMA(attribute);
		modifier = mad->bytes[IB_PC_DATA_OFFS + 1];
	}
	if (net.asked_count < MOST_ASKED) {
		net.asked[net.asked_count].node = mad->node;
		net.asked[net.asked_count++].attribute = attribute;
	}
	*marks = 0;
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
		*marks |= (uint8_t)(1 << i);
	}
	return MACHINE_PASS;
}

static inline enum machine_verdict mad_arrived(struct machine_mad *mad, void *arg)
{
	uint8_t *marks = &net.marks[mad->bytes[14] << 8 | mad->bytes[15]],
		class = mad->bytes[1];

	(void)arg;
	if (class != IB_SMI_CLASS && class != IB_SMI_DIRECT_CLASS &&
	    class != IB_PERFORMANCE_CLASS)
		return MACHINE_PASS;
	if (!(mad->bytes[3] & IB_MAD_RESPONSE))
		return request_arrived(mad, marks);
	for (unsigned i = 0; mad->at_host && i < net.oddity_count; i++) {
		struct oddity *oddity = &net.oddities[i];

		if (!(*marks >> i & 1) || !oddity->field)
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

/* The oddity of requests for PortInfo of one port. */
#define PORT_INFO(name, number) \
	.node = name, .attribute = IB_ATTR_PORT_INFO, .first = number, .last = number

static inline void forget_odd_nodes(void)
{
	net.oddity_count = net.asked_count = 0;
}

/* --- the machine ---------------------------------------------------------------- */

/* Text of any length, e.g. the lines of a topology. */
static struct {
	char text[1 << 22];
	size_t length;
} draft;

static inline void __attribute__((format(printf, 1, 2))) append(const char *format, ...)
{
	size_t room = sizeof(draft.text) - draft.length;
	va_list args;

	va_start(args, format);
	draft.length += (size_t)vsnprintf(draft.text + draft.length, room, format, args);
	va_end(args);
	assert_true(draft.length < sizeof(draft.text));
}

/* The draft, which is complete. */
static inline const char *drafted(void)
{
	draft.text[draft.length] = '\0';
	draft.length = 0;
	return draft.text;
}

/* A random number below the limit. */
static inline unsigned draw(unsigned limit)
{
	return (unsigned)random() % limit;
}

/* On the lines of a topology, or a generated one. */
static inline void start_at(const char *topology, const char *nodes)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_PERFORMANCE_CLASS};
	char file[] = "/tmp/topology-XXXXXX";
	struct topology_error error;
	bool is_text = strchr(topology, '\n');

	if (is_text) {
		int fd = mkstemp(file);

		assert_int_equal(write(fd, topology, strlen(topology)), strlen(topology));
		close(fd);
		topology = file;
	}
	graph_free(&truth);
	graph_init(&truth);
	if (topology_load(&truth, topology, &error))
		fail_msg("%s", error.text);
	forget_odd_nodes();
	machine_start(topology, nodes);
	if (is_text)
		unlink(file);
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

static inline int teardown_fabrics(void)
{
	stop();
	mad_fabric_free(fabric);
	mad_fabric_free(previous);
	fabric = previous = NULL;
	return 0;
}

/* The machine of another topology, whose nodes have GUIDs from the same number on. */
static inline void restart(const char *topology)
{
	stop();
	start(topology);
}

/* --- random fabrics ------------------------------------------------------------- */

/* "n0" is the first node, a CA; then there are switches, and CAs with one or two ports. */
#define DRAWN_SWITCHES 8
#define DRAWN_NODES    20
#define MOST_CABLES    60

static struct {
	struct cable {
		unsigned one, number, other, other_number;
	} cables[MOST_CABLES];
	unsigned count;
	unsigned used[DRAWN_NODES]; /* the port with the highest number that had a cable */
} drawn;

static inline bool is_drawn_switch(unsigned node)
{
	return node && node <= DRAWN_SWITCHES;
}

static inline unsigned drawn_ports(unsigned node)
{
	return is_drawn_switch(node) ? 64 : node ? 1 + node % 2 : 1;
}

static inline unsigned draw_switch(void)
{
	return 1 + draw(DRAWN_SWITCHES);
}

/* At ports that had no cable, if the nodes have any. */
static inline void draw_cable(unsigned one, unsigned other)
{
	if (one != other && drawn.count < MOST_CABLES && drawn.used[one] < drawn_ports(one) &&
	    drawn.used[other] < drawn_ports(other))
		drawn.cables[drawn.count++] =
			(struct cable){one, ++drawn.used[one], other, ++drawn.used[other]};
}

static inline void draw_fabric(void)
{
	memset(&drawn, 0, sizeof(drawn));
	for (unsigned i = 1; i <= DRAWN_SWITCHES; i++)
		draw_cable(i == 1 ? 0 : 1 + draw(i - 1), i);
	for (unsigned i = draw(6); i > 0; i--)
		draw_cable(draw_switch(), draw_switch());
	for (unsigned i = draw(2 * (DRAWN_NODES - DRAWN_SWITCHES)); i > 0; i--)
		draw_cable(draw_switch(), draw(DRAWN_NODES));
}

/* The machine of the fabric that was drawn. A node has the same GUID each time. */
static inline void start_drawn(void)
{
	for (unsigned i = 0; i < DRAWN_NODES; i++) {
		append("%s %u \"n%u\"\n", is_drawn_switch(i) ? "Switch" : "Ca", drawn_ports(i),
		       i);
		for (const struct cable *cable = drawn.cables;
		     cable < drawn.cables + drawn.count; cable++)
			if (cable->one == i)
				append("[%u] \"n%u\"[%u]\n", cable->number, cable->other,
				       cable->other_number);
	}
	stop();
	start_at(drafted(), "n0");
}

/* --- the result ----------------------------------------------------------------- */

/* The present fabric becomes the previous one. */
static inline void keep_fabric(void)
{
	mad_fabric_free(previous);
	previous = fabric;
	fabric = NULL;
}

#define DISCOVERY(...) (&(const struct mad_fabric_options){__VA_ARGS__})

static inline int try_discovery(const struct mad_fabric_options *options)
{
	mad_fabric_free(fabric);
	return mad_fabric_discover(port, options, &fabric);
}

/* Returns the number of nodes. */
static inline size_t discover(const struct mad_fabric_options *options)
{
	assert_int_equal(try_discovery(options), 0);
	return fabric->node_count;
}

/* With the present fabric as the previous one. */
static inline size_t discover_again(void)
{
	keep_fabric();
	return discover(DISCOVERY(.previous = previous));
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

/* Expects the texts of all problems, without GUIDs behind descriptions. */
static inline void expect_problems(const char *expected)
{
	char text[MAD_FABRIC_PROBLEM_TEXT_SIZE], *guid;

	for (size_t i = 0; i < fabric->problem_count; i++) {
		mad_fabric_problem_text(mad_fabric_get_problem(fabric, i), text, sizeof(text));
		while ((guid = strstr(text, " (0x")))
			memmove(guid, strchr(guid, ')') + 1, strlen(strchr(guid, ')')));
		append("%s%s", i ? "; " : "", text);
	}
	assert_string_equal(drafted(), expected);
}

#endif
