/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * discover [--port N] [--m-key KEY] [--port-m-key KEY] [--time-limit MS] [--rate N]
 *          [--load FILE] [--again COMMAND] [--store [--names FILE]]
 *
 * Discovers the fabric, with an M_Key of the options or of the port, or with --load loads it.
 * With --again then runs a command by sh and discovers the fabric again, with the first fabric
 * as the previous one. A discovery that ends early also prints its error and its time, and the
 * exit status is 1. Prints a line for each node, each end of a link, each failure and each
 * oddity, or with --store stores the fabric to stdout, with the names of a node-name-map.
 */
#include <infiniband/mad_fabric_text.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static _Noreturn void fail(const char *what, int err)
{
	fprintf(stderr, "discover: %s: %s\n", what, strerror(-err));
	exit(1);
}

static FILE *open_file(const char *path)
{
	FILE *file = fopen(path, "r");

	if (!file)
		fail(path, -errno);
	return file;
}

static struct mad_fabric *load(const char *path)
{
	FILE *file = open_file(path);
	struct mad_fabric *fabric;
	unsigned line = 0;
	int err = mad_fabric_load(file, &fabric, &line);

	if (err == -EBADMSG)
		fprintf(stderr, "discover: line %u\n", line);
	if (err)
		fail(path, err);
	fclose(file);
	return fabric;
}

static struct mad_node_names *load_names(const char *path)
{
	FILE *file = open_file(path);
	struct mad_node_names *names;
	int err = mad_node_names_load(file, &names, NULL);

	if (err)
		fail(path, err);
	fclose(file);
	return names;
}

static uint64_t m_key, port_m_key;
static unsigned time_limit_ms, rate;
static int exit_status;

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct mad_fabric *discover(int port_number, const struct mad_fabric *previous)
{
	const struct mad_fabric_options options = {
		.read = MAD_FABRIC_READ_DEFAULT | MAD_FABRIC_READ_MLNX_EXT_PORTS,
		.previous = previous,
		.m_key = m_key,
		.time_limit_ms = time_limit_ms,
		.partial = true,
	};
	double begin = seconds();
	int classes[] = {IB_SMI_DIRECT_CLASS}, err;
	struct ibmad_port *port = mad_rpc_open_port(NULL, port_number, classes, 1);
	struct mad_fabric *fabric;

	if (!port)
		fail("open", -errno);
	smp_mkey_set(port, port_m_key);
	mad_port_set(port, MAD_PORT_RATE, rate);
	err = mad_fabric_discover(port, &options, &fabric);
	if (err && !fabric)
		fail("discover", err);
	if (err) {
		printf("ended: %s after %.2f s\n", strerror(-err), seconds() - begin);
		exit_status = 1;
	}
	mad_rpc_close_port(port);
	return fabric;
}

static struct mad_fabric *discover_again(int port_number, struct mad_fabric *previous,
					 const char *command)
{
	struct mad_fabric *fabric;

	if (system(command) != 0)
		fail(command, -EIO);
	fabric = discover(port_number, previous);
	mad_fabric_free(previous);
	return fabric;
}

/* --- facts, a line each ------------------------------------------------------------ */

static const char *name(const struct mad_fabric_node *node)
{
	static const char letters[] = "?HSR";
	static char names[2][32];
	static int turn;

	turn = !turn;
	snprintf(names[turn], sizeof(names[turn]), "%c-%016" PRIx64,
		 letters[node->type > IB_NODE_ROUTER ? 0 : node->type], node->guid);
	return names[turn];
}

static void print_node(const struct mad_fabric_node *node)
{
	printf("node %s %u \"%s\"\n", name(node), node->port_count, node->description);
	for (unsigned number = 0; number <= node->port_count; number++) {
		const struct mad_fabric_port *port = mad_fabric_get_port(node, number);

		if (port && port->peer)
			printf("link %s %u %s %u %ux%s\n", name(node), number,
			       name(port->peer->node), port->peer->number, port->width,
			       mad_link_speed_name(port->speed));
		if (port && port->lid && (!number || port->peer))
			printf("lid %s %u lmc %u\n", name(node), port->lid, port->lmc);
	}
}

static void print_problem(const struct mad_fabric_problem *problem)
{
	char text[MAD_FABRIC_PROBLEM_TEXT_SIZE];

	printf("problem: %s\n", mad_fabric_problem_text(problem, text, sizeof(text)));
}

static void print_facts(const struct mad_fabric *fabric)
{
	for (size_t i = 0; i < fabric->node_count; i++)
		print_node(mad_fabric_get_node(fabric, i));
	for (size_t i = 0; i < fabric->problem_count; i++)
		print_problem(mad_fabric_get_problem(fabric, i));
}

int main(int argc, char **argv)
{
	const char *file = NULL, *command = NULL;
	struct mad_node_names *names = NULL;
	struct mad_fabric *fabric;
	int port = 0, stores = 0, err = 0, i;

	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--store") == 0)
			stores = 1;
		else if (strcmp(argv[i], "--port") == 0 && argv[i + 1])
			port = atoi(argv[++i]);
		else if (strcmp(argv[i], "--m-key") == 0 && argv[i + 1])
			m_key = strtoull(argv[++i], NULL, 0);
		else if (strcmp(argv[i], "--port-m-key") == 0 && argv[i + 1])
			port_m_key = strtoull(argv[++i], NULL, 0);
		else if (strcmp(argv[i], "--time-limit") == 0 && argv[i + 1])
			time_limit_ms = (unsigned)atoi(argv[++i]);
		else if (strcmp(argv[i], "--rate") == 0 && argv[i + 1])
			rate = (unsigned)atoi(argv[++i]);
		else if (strcmp(argv[i], "--load") == 0 && argv[i + 1])
			file = argv[++i];
		else if (strcmp(argv[i], "--again") == 0 && argv[i + 1])
			command = argv[++i];
		else if (strcmp(argv[i], "--names") == 0 && argv[i + 1])
			names = load_names(argv[++i]);
		else
			fail(argv[i], -EINVAL);
	}
	fabric = file ? load(file) : discover(port, NULL);
	if (command)
		fabric = discover_again(port, fabric, command);
	if (stores)
		err = mad_fabric_store(fabric, stdout, names);
	else
		print_facts(fabric);
	if (err)
		fail("store", err);
	mad_node_names_free(names);
	mad_fabric_free(fabric);
	return exit_status;
}
