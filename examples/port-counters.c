/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Prints a port's counters: those of PortCounters that are not 0, and the data counters of 64
 * bits where the node has them.
 *
 *   port-counters             the port of this node
 *   port-counters 7 3         port 3 of the node that has LID 7
 *   port-counters -r 7 3      sets them to 0 after they were read
 *
 * Exits with 0, with 1 where there was no answer, with 2 where the question makes no sense.
 */

#include <infiniband/mad.h>
#include <infiniband/mad_fields.h>

#include <errno.h>
#include <stdbool.h>

/* ClassPortInfo:CapabilityMask (IBA 16.1.3.1). */
#define HAS_EXTENDED       0x0200
#define HAS_EXTENDED_NO_IE 0x0400 /* but without unicast and multicast packets */

static void usage(void)
{
	fprintf(stderr, "usage: port-counters [-r] [LID PORT]\n");
	exit(2);
}

/* The attribute goes to data, of IB_MAD_SIZE bytes. */
static bool get(struct ibmad_port *port, ib_portid_t *to, int number, unsigned attribute,
		uint8_t *data)
{
	memset(data, 0, IB_MAD_SIZE);
	if (pma_query_via(data, to, number, 0, attribute, port))
		return true;
	fprintf(stderr, "LID %d port %d: %s\n", to->lid, number, strerror(errno));
	return false;
}

/* All fields of an attribute, as the library knows them. */
static void print(const char *attribute, uint8_t *data)
{
	enum MAD_FIELDS field = IB_NO_FIELD;

	while ((field = mad_attribute_next_field(attribute, field)) != IB_NO_FIELD) {
		uint64_t value = mad_get_field64(data, 0, field);

		if (value && !strstr(mad_field_name(field), "Select"))
			printf("%-28s %" PRIu64 "\n", mad_field_name(field), value);
	}
}

static bool show(struct ibmad_port *port, ib_portid_t *to, int number)
{
	uint8_t data[IB_MAD_SIZE];
	unsigned can;

	if (!get(port, to, number, CLASS_PORT_INFO, data))
		return false;
	can = mad_get_field(data, 0, IB_CPI_CAPMASK_F);
	if (!get(port, to, number, IB_GSI_PORT_COUNTERS, data))
		return false;
	printf("LID %d port %d\n", to->lid, number);
	print("PortCounters", data);
	if (!(can & (HAS_EXTENDED | HAS_EXTENDED_NO_IE)))
		return true;
	if (!get(port, to, number, IB_GSI_PORT_COUNTERS_EXT, data))
		return false;
	printf("and in 64 bits\n");
	print("PortCountersExtended", data);
	return true;
}

int main(int argc, char **argv)
{
	int classes[] = {IB_SMI_DIRECT_CLASS, IB_PERFORMANCE_CLASS};
	bool reset = argc > 1 && !strcmp(argv[1], "-r"), done;
	uint8_t data[IB_MAD_SIZE] = {0};
	struct ibmad_port *port;
	ib_portid_t to = {0};
	int number;

	argc -= reset;
	argv += reset;
	if (argc != 1 && argc != 3)
		usage();
	port = mad_rpc_open_port(NULL, 0, classes, 2);
	if (!port) {
		perror("mad_rpc_open_port");
		return 1;
	}
	if (argc == 3) {
		to.lid = (int)strtol(argv[1], NULL, 0);
		number = (int)strtol(argv[2], NULL, 0);
	} else if (ib_resolve_self_via(&to, &number, NULL, port) < 0) {
		perror("this port's LID");
		return 1;
	}
	if (!IB_LID_VALID(to.lid) || number < 0 || number > 255)
		usage();
	done = show(port, &to, number);
	if (done && reset) {
		done = performance_reset_via(data, &to, number, 0, 0, IB_GSI_PORT_COUNTERS,
					     port);
		if (!done)
			perror("reset");
	}
	mad_rpc_close_port(port);
	return !done;
}
