/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * bench_forget NODES: forgets the counters of nodes that have left the fabric, one by one.
 * tests/bench/instructions counts the cost of a call. Prints how many calls were made.
 */

#include <infiniband/mad_fabric_text.h>
#include <infiniband/mad_fabric_counters.h>

#include <stdio.h>
#include <stdlib.h>

static struct mad_fabric *load(unsigned nodes)
{
	FILE *text = tmpfile();
	struct mad_fabric *fabric = NULL;

	if (!text)
		return NULL;
	for (unsigned i = 1; i <= nodes; i++)
		fprintf(text, "caguid=0x%x\nCa\t1 \"H-%016x\"\t\t# \"node\"\n\n", i, i);
	rewind(text);
	if (mad_fabric_load(text, &fabric, NULL))
		fabric = NULL;
	fclose(text);
	return fabric;
}

int main(int argc, char **argv)
{
	unsigned nodes = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 1000, calls = 0;
	struct mad_fabric_counters *counters = mad_fabric_counters_create(NULL);
	struct mad_fabric *fabric = load(nodes);

	if (!counters || fabric->node_count != nodes)
		return 1;
	if (mad_fabric_counters_set_fabric(counters, fabric) ||
	    mad_fabric_counters_set_fabric(counters, NULL))
		return 1;
	mad_fabric_free(fabric);
	for (unsigned i = 1; i <= nodes; i++)
		calls += !mad_fabric_counters_forget(counters, i);
	mad_fabric_counters_free(counters);
	printf("%u\n", calls);
	return calls == nodes ? 0 : 1;
}
