/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * store [--load] [--port N] [--names FILE]
 *
 * Discovers the fabric, or with --load loads it from stdin, and stores it to stdout.
 */

#include <infiniband/mad_fabric_text.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what, int err)
{
	fprintf(stderr, "store: %s: %s\n", what, strerror(-err));
	exit(1);
}

static struct mad_fabric *load(void)
{
	struct mad_fabric *fabric;
	unsigned line = 0;
	int err = mad_fabric_load(stdin, &fabric, &line);

	if (err == -EBADMSG)
		fprintf(stderr, "store: line %u\n", line);
	if (err)
		fail("load", err);
	return fabric;
}

static struct mad_fabric *discover(int port_number)
{
	const struct mad_fabric_options options = {
		.read = MAD_FABRIC_READ_DEFAULT | MAD_FABRIC_READ_MLNX_EXT_PORTS,
	};
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS}, err;
	struct ibmad_port *port = mad_rpc_open_port(NULL, port_number, classes, 2);
	struct mad_fabric *fabric;

	if (!port)
		fail("open", -errno);
	err = mad_fabric_discover(port, &options, &fabric);
	if (err)
		fail("discover", err);
	mad_rpc_close_port(port);
	return fabric;
}

static struct mad_node_names *load_names(const char *path)
{
	struct mad_node_names *names;
	FILE *file = fopen(path, "r");
	int err;

	if (!file)
		fail(path, -errno);
	err = mad_node_names_load(file, &names, NULL);
	if (err)
		fail(path, err);
	fclose(file);
	return names;
}

int main(int argc, char **argv)
{
	struct mad_node_names *names = NULL;
	struct mad_fabric *fabric = NULL;
	int port = 0, err, i;

	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--load") == 0)
			fabric = load();
		else if (strcmp(argv[i], "--port") == 0 && argv[i + 1])
			port = atoi(argv[++i]);
		else if (strcmp(argv[i], "--names") == 0 && argv[i + 1])
			names = load_names(argv[++i]);
		else
			fail(argv[i], -EINVAL);
	}
	if (!fabric)
		fabric = discover(port);
	err = mad_fabric_store(fabric, stdout, names);
	if (err)
		fail("store", err);
	mad_node_names_free(names);
	mad_fabric_free(fabric);
	return 0;
}
