/* SPDX-License-Identifier: BSD-2-Clause */

/* reset: sets the counters of ports to 0. */

#include "ibfabric.h"

#include <errno.h>
#include <unistd.h>

/* A signal waits for the request in flight: with three attempts less than a second. */
#define TIMEOUT_MS 300

static bool has_counters(const struct mad_fabric_port *port)
{
	if (!is_selected(port))
		return false;
	return port->node->type == IB_NODE_SWITCH ? port->number || port->node->enhanced_port0
						  : port->peer != NULL;
}

static bool is_confirmed(size_t count)
{
	char answer[16];

	if (settings.yes)
		return true;
	if (!isatty(0))
		die("reset: not a terminal; --yes clears the counters without a question");
	fprintf(stderr, "Clear the counters of %zu ports? [y/N] ", count);
	return fgets(answer, sizeof(answer), stdin) && (*answer == 'y' || *answer == 'Y');
}

static int reset_port(const struct mad_fabric_port *port)
{
	const struct mad_counters_options options = {.counters = MAD_COUNTERS_DEFAULT,
						     .timeout_ms = TIMEOUT_MS};
	ib_portid_t to = {.lid = port->gmp_lid};

	if (!port->gmp_lid)
		return -EADDRNOTAVAIL;
	return mad_counters_reset(ibmad_port, &to, port->number, &options);
}

int run_reset(void)
{
	static const struct column columns[] = {
		{.name = "node"},
		{.name = "guid"},
		{.name = "port", .is_number = true},
		{.name = "result"},
	};
	const struct mad_fabric_port **ports, *silent = NULL;
	const struct mad_fabric *fabric;
	size_t count = 0, wanted = 0;
	struct table table;

	if (!settings.arguments[0] && !settings.all && !settings.only_hosts &&
	    !settings.only_switches)
		die("reset: name the ports, or give --all; ibfabric reset --help tells more");
	table_begin(&table, "ports", columns, sizeof(columns) / sizeof(columns[0]));
	fabric = discover(NULL);
	check_selection(fabric, NULL);
	ports = sorted_ports(fabric);
	for (size_t i = 0; i < fabric->port_count; i++)
		wanted += has_counters(ports[i]);
	if (!wanted)
		die("reset: none of these ports has counters");
	if (!is_confirmed(wanted))
		die("reset: no counter was cleared");
	for (size_t i = 0; i < fabric->port_count && !cancelled.is_set && left_ms() != 1; i++) {
		int error;

		if (!has_counters(ports[i]))
			continue;
		show_progress("%zu of %zu ports", ++count, wanted);
		if (silent && silent->node == ports[i]->node)
			continue; /* one failure for the node */
		error = reset_port(ports[i]);
		if (error == -ETIMEDOUT)
			silent = ports[i];
		if (error) {
			record_failure(ports[i]->node, error == -ETIMEDOUT ? NULL : ports[i],
				       "the counters were not cleared: %s",
				       error == -EADDRNOTAVAIL ? "the port has no LID"
							       : error_text(error));
			continue;
		}
		add_port(&table, ports[i]);
		add(&table, "cleared");
	}
	end_progress();
	if (count < wanted)
		record_failure(NULL, NULL, "%s: %zu ports were not cleared",
			       cancelled.is_set ? "a signal" : "the time limit",
			       wanted - count);
	free(ports);
	table_print(&table, fabric);
	return failure_count() ? EXIT_FAILED : EXIT_CLEAN;
}
