/* SPDX-License-Identifier: BSD-2-Clause */

/* Pairs of ports: the SMPs of a planarized device go by another port than its GMPs. */

#include "base/export.h"
#include "calls/port.h"
#include "mad/layout.h"

#include <errno.h>
#include <stdlib.h>

static int select_classes(const int *classes, int count, bool smi, int *selected)
{
	int n = 0;

	for (int i = 0; i < count; i++)
		if (is_smp_class(classes[i]) == smi && n < MGMT_CLASSES)
			selected[n++] = classes[i];
	return n;
}

static void name_item(ibmad_ports_item_t *item, struct ibmad_port *port, const char *name)
{
	item->port = port;
	snprintf(item->ca_name, sizeof(item->ca_name), "%s", name);
}

/* Both kinds of classes on one port. */
static int open_one(struct ibmad_ports_pair *pair, const struct umad_ca_pair *names,
		    const int *classes, int count)
{
	struct ibmad_port *port =
		port_open_any("mad_rpc_open_port2", report, names->gsi_name,
			      (int)names->gsi_preferred_port, false, classes, count);

	if (!port)
		return -1;
	name_item(&pair->gsi, port, names->gsi_name);
	name_item(&pair->smi, port, names->gsi_name);
	return 0;
}

static int open_both(struct ibmad_ports_pair *pair, const struct umad_ca_pair *names,
		     const int *classes, int count)
{
	int selected[MGMT_CLASSES] = {0}, n = select_classes(classes, count, true, selected),
	    error;
	struct ibmad_port *smi, *gsi;

	smi = port_open_any("mad_rpc_open_port2", report, names->smi_name,
			    (int)names->smi_preferred_port, true, selected, n);
	if (!smi)
		return -1;
	n = select_classes(classes, count, false, selected);
	gsi = port_open_any("mad_rpc_open_port2", report, names->gsi_name,
			    (int)names->gsi_preferred_port, false, selected, n);
	if (!gsi) {
		error = errno;
		mad_rpc_close_port(smi);
		errno = error;
		return -1;
	}
	name_item(&pair->smi, smi, names->smi_name);
	name_item(&pair->gsi, gsi, names->gsi_name);
	return 0;
}

/* 0 or a negative errno. */
static int find_pair(const char *ca_name, int portnum, unsigned enforce_smi,
		     struct umad_ca_pair *names)
{
	int ret, fd;

	if (portnum < 0 || portnum > UINT8_MAX)
		return -ENODEV;
	ret = umad_get_smi_gsi_pair_by_ca_name(ca_name, (uint8_t)portnum, names, enforce_smi);
	if (!ret)
		return 0;
	/* libibumad reports why the port cannot be opened */
	fd = umad_open_port(ca_name, portnum);
	if (fd >= 0)
		umad_close_port(fd);
	return ret < 0 ? ret : -ENODEV;
}

EXPORT struct ibmad_ports_pair *mad_rpc_open_port2(char *dev_name, int dev_port,
						   int *mgmt_classes, int num_classes,
						   unsigned enforce_smi)
{
	struct umad_ca_pair names = {0};
	struct ibmad_ports_pair *pair;
	int ret;

	if (num_classes < 0 || (num_classes && !mgmt_classes)) {
		errno = EINVAL;
		return NULL;
	}
	ret = find_pair(dev_name, dev_port, enforce_smi, &names);
	if (ret) {
		errno = -ret;
		report("mad_rpc_open_port2", "cannot open %s port %d", port_name(dev_name),
		       dev_port);
		return NULL;
	}
	pair = calloc(1, sizeof(*pair));
	if (!pair)
		return NULL;
	if (names.smi_name[0] && strcmp(names.smi_name, names.gsi_name))
		ret = open_both(pair, &names, mgmt_classes, num_classes);
	else
		ret = open_one(pair, &names, mgmt_classes, num_classes);
	if (ret) {
		ret = errno;
		free(pair);
		errno = ret;
		return NULL;
	}
	return pair;
}

EXPORT void mad_rpc_close_port2(struct ibmad_ports_pair *srcport)
{
	if (!srcport)
		return;
	if (srcport->smi.port != srcport->gsi.port)
		mad_rpc_close_port(srcport->smi.port);
	mad_rpc_close_port(srcport->gsi.port);
	free(srcport);
}
