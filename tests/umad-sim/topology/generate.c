/* SPDX-License-Identifier: BSD-2-Clause */

/* Generates regular topologies from a few numbers. The same word always gives the same names,
 * GUIDs and port numbers. */

#include "topology.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#define VENDOR        0x02c9
#define HOST_DEVICE   0x101b /* ConnectX-6 */
#define SWITCH_DEVICE 0xd2f0 /* Quantum */

/* the GUIDs of MAX_NODES hosts are below the switches' first one */
#define HOST_GUID   0x0002c90300100000ULL
#define SWITCH_GUID 0x0002c90300f00000ULL
#define GUID_STEP   16

#define MAX_LEVELS 6
#define NUMBERS    4

struct generator {
	struct graph *graph;
	const char *spec;
	struct topology_error *error;
	uint32_t numbers[NUMBERS]; /* the numbers after the colon */
	unsigned int number_count;
	uint32_t hosts; /* of the graph so far, */
	uint32_t switches;
	unsigned int width;
	enum link_speed speed;
};

#define fail(generator, ...) refuse(generator, -EINVAL, __VA_ARGS__)

__attribute__((format(printf, 3, 4))) static int refuse(struct generator *generator, int ret,
							const char *format, ...)
{
	char reason[sizeof(generator->error->text)];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	return topology_fail(generator->error, ret, "%.80s: %s", generator->spec, reason);
}

static int add(struct generator *generator, enum node_type type, uint64_t guid,
	       const char *name, unsigned int ports)
{
	struct graph *graph = generator->graph;
	uint32_t node;
	int ret = graph_add(graph, type, guid, name, ports, &node);

	if (ret)
		return refuse(generator, ret, "%s: %s", name, strerror(-ret));
	graph->nodes[node].vendor_id = VENDOR;
	graph->nodes[node].device_id = type == NODE_CA ? HOST_DEVICE : SWITCH_DEVICE;
	return 0;
}

static int add_hosts(struct generator *generator, uint64_t count)
{
	char name[MAX_NAME];

	for (; generator->hosts < count; generator->hosts++) {
		uint32_t n = generator->hosts;
		int ret;

		snprintf(name, sizeof(name), "host-%u", n + 1);
		ret = add(generator, NODE_CA, HOST_GUID + (uint64_t)n * GUID_STEP, name, 1);
		if (ret)
			return ret;
	}
	return 0;
}

static int add_switch(struct generator *generator, const char *name, unsigned int ports)
{
	uint64_t guid = SWITCH_GUID + (uint64_t)generator->switches * GUID_STEP;

	generator->switches++;
	return add(generator, NODE_SWITCH, guid, name, ports);
}

/* Nodes by their number: hosts come first. */
static int cable(struct generator *generator, uint64_t a, unsigned int a_port, uint64_t b,
		 unsigned int b_port)
{
	struct graph *graph = generator->graph;
	int ret = graph_cable(graph, graph_port(graph, (uint32_t)a, a_port),
			      graph_port(graph, (uint32_t)b, b_port), generator->width,
			      generator->speed);

	return ret ? refuse(generator, ret, "cable: %s", strerror(-ret)) : 0;
}

/* Host n is at port n % each + 1 of switch n / each. */
static int cable_hosts(struct generator *generator, uint32_t each)
{
	uint32_t n;
	int ret = 0;

	for (n = 0; n < generator->hosts && !ret; n++)
		ret = cable(generator, n, 1, generator->hosts + n / each, n % each + 1);
	return ret;
}

static int check_size(struct generator *generator, uint64_t nodes)
{
	if (nodes > MAX_NODES)
		return fail(generator, "more than %u nodes", MAX_NODES);
	return 0;
}

static int generate_pair(struct generator *generator)
{
	int ret = add_hosts(generator, 2);

	return ret ? ret : cable(generator, 0, 1, 1, 1);
}

/*
 * A level of a fat tree; level 1 has the leaves. A level consists of groups of switches that
 * have the same hosts below them. Within a group, each switch is connected to different
 * switches above.
 */
struct level {
	uint64_t hosts;  /* below one group */
	uint64_t groups; /* how many are needed */
	uint64_t width;  /* switches of a group */
	uint64_t first;  /* the first switch's number in the graph */
};

static uint64_t measure_levels(struct level *levels, unsigned int count, uint32_t radix)
{
	uint64_t hosts = 1, width = 1;
	unsigned int i;

	for (i = 0; i < count; i++) {
		/* the top level has no ports up: all lead down */
		hosts *= i + 1 == count ? radix : radix / 2;
		levels[i].hosts = hosts;
		levels[i].width = width;
		width *= radix / 2;
	}
	return hosts;
}

/* Adds levels until one group of a level has all hosts below it. */
static unsigned int place_levels(struct level *levels, unsigned int count, uint64_t hosts,
				 uint64_t *nodes)
{
	*nodes = hosts;
	for (unsigned int i = 0; i < count; i++) {
		levels[i].first = *nodes;
		levels[i].groups = (hosts + levels[i].hosts - 1) / levels[i].hosts;
		*nodes += levels[i].groups * levels[i].width;
		if (levels[i].groups == 1)
			return i + 1;
	}
	return count;
}

static int add_level(struct generator *generator, const struct level *level,
		     unsigned int number, uint32_t radix)
{
	static const char *const names[] = {"leaf", "spine", "core"};
	uint64_t n, count = level->groups * level->width;
	char name[MAX_NAME];
	int ret = 0;

	for (n = 1; n <= count && !ret; n++) {
		if (number < sizeof(names) / sizeof(*names))
			snprintf(name, sizeof(name), "%s-%u", names[number], (unsigned int)n);
		else
			snprintf(name, sizeof(name), "level%u-%u", number + 1, (unsigned int)n);
		ret = add_switch(generator, name, radix);
	}
	return ret;
}

/* Connects each group of a level to its group above: each switch uses all of its ports up. */
static int cable_level(struct generator *generator, const struct level *low, uint32_t half)
{
	const struct level *high = low + 1;
	uint64_t in_one = high->hosts / low->hosts, group, n;
	uint32_t up;
	int ret = 0;

	for (group = 0; group < low->groups; group++) {
		for (n = 0; n < low->width; n++) {
			uint64_t lower = low->first + group * low->width + n;
			uint64_t upper = high->first + group / in_one * high->width + n;

			for (up = 0; up < half && !ret; up++)
				ret = cable(generator, lower, half + 1 + up,
					    upper + up * low->width,
					    (unsigned int)(group % in_one) + 1);
		}
	}
	return ret;
}

static int build_fat_tree(struct generator *generator, const struct level *levels,
			  unsigned int count, uint64_t hosts)
{
	uint32_t radix = generator->numbers[0];
	unsigned int i;
	int ret = add_hosts(generator, hosts);

	for (i = 0; i < count && !ret; i++)
		ret = add_level(generator, &levels[i], i, radix);
	if (!ret)
		ret = cable_hosts(generator, (uint32_t)levels[0].hosts);
	for (i = 0; i + 1 < count && !ret; i++)
		ret = cable_level(generator, &levels[i], radix / 2);
	return ret;
}

static int generate_fat_tree(struct generator *generator)
{
	uint32_t radix = generator->numbers[0], level_count = generator->numbers[1];
	struct level levels[MAX_LEVELS] = {0};
	uint64_t hosts, nodes;
	int ret;

	if (radix > MAX_PORTS)
		return fail(generator, "a radix of more than %u ports", MAX_PORTS);
	if (level_count > MAX_LEVELS)
		return fail(generator, "more than %u levels", MAX_LEVELS);
	if (level_count > 1 && radix % 2)
		return fail(generator,
			    "the radix must be even: half of the ports lead up, half down");
	hosts = measure_levels(levels, level_count, radix);
	if (generator->number_count > 2) {
		if (generator->numbers[2] > hosts)
			return fail(generator, "at most %llu hosts", (unsigned long long)hosts);
		hosts = generator->numbers[2];
	}
	ret = check_size(generator, hosts);
	if (ret)
		return ret;
	level_count = place_levels(levels, level_count, hosts, &nodes);
	ret = check_size(generator, nodes);
	return ret ? ret : build_fat_tree(generator, levels, level_count, hosts);
}

/*
 * A router's ports: first its hosts, then the other routers of its group, then other groups.
 */
static int cable_group(struct generator *generator, uint64_t first, uint32_t routers,
		       uint32_t hosts)
{
	uint32_t a, b;
	int ret = 0;

	for (a = 0; a < routers; a++) {
		for (b = a + 1; b < routers && !ret; b++)
			ret = cable(generator, first + a, hosts + b, first + b, hosts + a + 1);
	}
	return ret;
}

/* Spreads the links between two groups over the groups' routers, in a ring. */
static int cable_groups(struct generator *generator, uint32_t a, uint32_t b)
{
	uint32_t groups = generator->numbers[0], routers = generator->numbers[1];
	uint32_t before = generator->numbers[2] + routers;
	uint64_t first = generator->hosts;
	uint32_t from_a = b - a - 1, from_b = groups - (b - a) - 1;

	return cable(generator, first + (uint64_t)a * routers + from_a % routers,
		     before + from_a / routers,
		     first + (uint64_t)b * routers + from_b % routers,
		     before + from_b / routers);
}

static int add_groups(struct generator *generator, uint32_t ports)
{
	uint32_t group, router;
	char name[MAX_NAME];
	int ret = 0;

	for (group = 1; group <= generator->numbers[0]; group++) {
		for (router = 1; router <= generator->numbers[1] && !ret; router++) {
			snprintf(name, sizeof(name), "switch-%u-%u", group, router);
			ret = add_switch(generator, name, ports);
		}
	}
	return ret;
}

static int build_dragonfly(struct generator *generator, uint32_t ports)
{
	uint32_t groups = generator->numbers[0], routers = generator->numbers[1];
	uint32_t hosts = generator->numbers[2], a, b;
	int ret = add_hosts(generator, (uint64_t)groups * routers * hosts);

	if (!ret)
		ret = add_groups(generator, ports);
	if (!ret)
		ret = cable_hosts(generator, hosts);
	for (a = 0; a < groups && !ret; a++) {
		ret = cable_group(generator, generator->hosts + (uint64_t)a * routers, routers,
				  hosts);
		for (b = a + 1; b < groups && !ret; b++)
			ret = cable_groups(generator, a, b);
	}
	return ret;
}

static int generate_dragonfly(struct generator *generator)
{
	uint64_t groups = generator->numbers[0], routers = generator->numbers[1];
	uint64_t hosts = generator->numbers[2];
	uint64_t global = (groups - 1 + routers - 1) / routers;
	uint64_t ports = hosts + routers - 1 + global;
	int ret;

	if (ports > MAX_PORTS)
		return fail(generator, "a switch would need %llu ports, %u at most",
			    (unsigned long long)ports, MAX_PORTS);
	/* hosts and routers are below MAX_PORTS here, so this does not overflow */
	ret = check_size(generator, groups * routers * (hosts + 1));
	return ret ? ret : build_dragonfly(generator, (uint32_t)ports);
}

/* Ports of a dimension: one for each direction, or one if both lead to the same neighbour. */
static uint32_t ways(uint32_t length)
{
	return length > 2 ? 2 : length - 1;
}

/*
 * Cables a switch to the next one in each dimension; stride: the difference of their numbers.
 */
static int cable_torus(struct generator *generator, uint32_t n)
{
	uint32_t port = (generator->number_count > 3 ? generator->numbers[3] : 1) + 1;
	uint32_t stride = 1, first = generator->hosts;
	int i, ret = 0;

	for (i = 2; i >= 0 && !ret; i--) {
		uint32_t length = generator->numbers[i], at = n / stride % length;
		uint32_t next = at + 1 < length ? n + stride : n - at * stride;

		/* with two switches, only the first one adds the cable */
		if (length > 2 || (length == 2 && !at))
			ret = cable(generator, first + n, port, first + next,
				    port + ways(length) - 1);
		port += ways(length);
		stride *= length;
	}
	return ret;
}

static int build_torus(struct generator *generator, uint32_t hosts, uint32_t ports)
{
	const uint32_t *size = generator->numbers;
	uint32_t n, count = size[0] * size[1] * size[2];
	char name[MAX_NAME];
	int ret = add_hosts(generator, (uint64_t)count * hosts);

	for (n = 0; n < count && !ret; n++) {
		snprintf(name, sizeof(name), "switch-%u-%u-%u", n / size[2] / size[1] + 1,
			 n / size[2] % size[1] + 1, n % size[2] + 1);
		ret = add_switch(generator, name, ports);
	}
	if (!ret)
		ret = cable_hosts(generator, hosts);
	for (n = 0; n < count && !ret; n++)
		ret = cable_torus(generator, n);
	return ret;
}

static int generate_torus(struct generator *generator)
{
	uint64_t hosts = generator->number_count > 3 ? generator->numbers[3] : 1;
	uint64_t switches = 1, ports = hosts;
	int i;

	for (i = 0; i < 3; i++) {
		switches *= generator->numbers[i];
		ports += ways(generator->numbers[i]);
		if (switches > MAX_NODES)
			return check_size(generator, switches);
	}
	if (ports > MAX_PORTS)
		return fail(generator, "a switch would need %llu ports, %u at most",
			    (unsigned long long)ports, MAX_PORTS);
	if (switches * (hosts + 1) > MAX_NODES)
		return check_size(generator, switches * (hosts + 1));
	return build_torus(generator, (uint32_t)hosts, (uint32_t)ports);
}

static const struct shape {
	const char *name;
	const char *numbers; /* the numbers, for messages */
	unsigned int least, most;
	int (*generate)(struct generator *generator);
} shapes[] = {
	{"pair", "", 0, 0, generate_pair},
	{"fat-tree", ":RADIX,LEVELS[,HOSTS]", 2, 3, generate_fat_tree},
	{"dragonfly", ":GROUPS,ROUTERS,HOSTS", 3, 3, generate_dragonfly},
	{"torus", ":X,Y,Z[,HOSTS]", 3, 4, generate_torus},
};

void topology_words(char *text, size_t size)
{
	size_t i, length = 0;

	text[0] = '\0';
	for (i = 0; i < sizeof(shapes) / sizeof(*shapes) && length < size; i++)
		length += (size_t)snprintf(text + length, size - length, "%s%s", i ? ", " : "",
					   shapes[i].name);
}

static const struct shape *find_shape(const char *spec)
{
	size_t i, length = strcspn(spec, ":@");

	for (i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		if (strlen(shapes[i].name) == length && !memcmp(shapes[i].name, spec, length))
			return &shapes[i];
	}
	return NULL;
}

/* Reads a number up to MAX_NODES + 1, which stands for all greater numbers. */
static bool take_number(const char **text, uint32_t *number)
{
	const char *start = *text;

	*number = 0;
	for (; **text >= '0' && **text <= '9'; (*text)++) {
		*number = *number * 10 + (uint32_t)(**text - '0');
		if (*number > MAX_NODES)
			*number = MAX_NODES + 1;
	}
	return *text > start;
}

/* Reads ":36,2", up to the end of the text or of the list. */
static bool take_numbers(struct generator *generator, const char **text)
{
	char separator = ':';

	while (**text == separator) {
		(*text)++;
		if (generator->number_count == NUMBERS ||
		    !take_number(text, &generator->numbers[generator->number_count++]))
			return false;
		separator = ',';
	}
	return true;
}

/* "@4xNDR" */
static bool take_link(struct generator *generator, const char **text)
{
	if (**text != '@')
		return true;
	(*text)++;
	if (!take_number(text, &generator->width) || !link_width_exists(generator->width) ||
	    *(*text)++ != 'x')
		return false;
	generator->speed = link_speed_parse(*text, strlen(*text));
	*text += strlen(*text);
	return generator->speed != SPEED_COUNT;
}

int topology_generate(struct graph *graph, const char *spec, struct topology_error *error)
{
	const struct shape *shape = find_shape(spec);
	struct generator generator = {
		.graph = graph, .spec = spec, .error = error, .width = 4, .speed = HDR};
	const char *text;
	unsigned int i;

	if (!shape)
		return topology_fail(error, -ENOENT, "%.80s: no generator's name", spec);
	text = spec + strlen(shape->name);
	if (!take_numbers(&generator, &text) || generator.number_count < shape->least ||
	    generator.number_count > shape->most || (*text && *text != '@'))
		return fail(&generator, "expected %s%s[@WIDTHxSPEED]", shape->name,
			    shape->numbers);
	for (i = 0; i < generator.number_count; i++) {
		if (!generator.numbers[i])
			return fail(&generator, "numbers must not be 0");
	}
	if (!take_link(&generator, &text))
		return fail(&generator, "expected a width and speed such as @4xHDR");
	return shape->generate(&generator);
}
