/* SPDX-License-Identifier: BSD-2-Clause */

/* Opening and closing: a port or both ports of a planarized device, and agents. */

#include "engine/open.h"

#include "base/export.h"
#include "base/report.h"
#include "mad/layout.h"

#include <infiniband/mad_port.h>
#include <errno.h>
#include <stdlib.h>

/* --- agents --------------------------------------------------------------------- */

/* Stores why a class cannot be registered, and returns -1 with errno. */
static int not_registered(int mgmt_class, int error)
{
	failure_refuse_call(MAD_FAILURE_REGISTER, mgmt_class, error);
	return -1;
}

static int keep_agent(const char *call, struct ibmad_port *port, int mgmt_class,
		      uint8_t rmpp_version, int agent)
{
	if (agent < 0)
		return not_registered(mgmt_class, errno ? errno : EINVAL);
	port->handle.rmpp[mgmt_class] = rmpp_version != 0;
	port->handle.agents[mgmt_class] = agent;
	if (ibdebug)
		report_debug(call, "class 0x%02x is agent %d on handle %d",
			     (unsigned)mgmt_class, agent, port->handle.fd);
	return agent;
}

EXPORT int mad_register_client_via(int mgmt, uint8_t rmpp_version, struct ibmad_port *srcport)
{
	int agent;

	if (!srcport || !is_known_class(mgmt))
		return not_registered(mgmt, EINVAL);
	agent = umad_register(srcport->handle.fd, mgmt, class_version(mgmt), rmpp_version,
			      NULL);
	return keep_agent("mad_register_client_via", srcport, mgmt, rmpp_version, agent) < 0
		       ? -1
		       : 0;
}

EXPORT int mad_register_server_via(int mgmt, uint8_t rmpp_version,
				   long method_mask[16 / sizeof(long)], uint32_t class_oui,
				   struct ibmad_port *srcport)
{
	uint8_t oui[3] = {(uint8_t)(class_oui >> 16), (uint8_t)(class_oui >> 8),
			  (uint8_t)class_oui};
	long mask[16 / sizeof(long)];
	int agent;

	if (!srcport || mgmt < 0 || mgmt >= MGMT_CLASSES)
		return not_registered(mgmt, EINVAL);
	if (method_mask)
		memcpy(mask, method_mask, sizeof(mask));
	else
		memset(mask, 0xff, sizeof(mask));
	if (mad_is_vendor_range2(mgmt))
		agent = umad_register_oui(srcport->handle.fd, mgmt, rmpp_version, oui, mask);
	else
		agent = umad_register(srcport->handle.fd, mgmt, class_version(mgmt),
				      rmpp_version, mask);
	return keep_agent("mad_register_server_via", srcport, mgmt, rmpp_version, agent);
}

EXPORT int mad_rpc_class_agent(struct ibmad_port *srcport, int cls)
{
	return srcport ? handle_agent(&srcport->handle, cls) : -1;
}

/* --- a port --------------------------------------------------------------------- */

/* secure_getenv(): a set-uid program ignores the environment. */
static void take_debug_level(void)
{
	const char *level = secure_getenv("LIBIBMAD_DEBUG_LEVEL");

	if (level)
		ibdebug = atoi(level);
}

static const char *port_name(const char *ca_name)
{
	return ca_name ? ca_name : "(any)";
}

/* 0, or the position, from 1 on, of the class that cannot be registered; errno has the cause.
 */
static int register_clients(struct ibmad_port *port, const int *classes, int count)
{
	for (int i = 0; i < count; i++)
		if (mad_register_client_via(
			    classes[i], classes[i] == IB_SA_CLASS ? RMPP_VERSION : 0, port) < 0)
			return i + 1;
	return 0;
}

/* The classes of mad_port_open(). */
static const int usual_classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS,
				    IB_SA_CLASS,  IB_PERFORMANCE_CLASS,
				    IB_CC_CLASS,  IB_BOARD_MGMT_CLASS};

/* Each class that the port and the kernel permit. Reports the others. */
static void register_usual_clients(struct ibmad_port *port, const char *ca_name, int portnum)
{
	for (size_t i = 0; i < sizeof(usual_classes) / sizeof(usual_classes[0]); i++)
		if (register_clients(port, &usual_classes[i], 1))
			report("mad_port_open", "cannot register class 0x%02x on %s port %d",
			       (unsigned)usual_classes[i], port_name(ca_name), portnum);
}

/* Stores why a port is not opened, and sets errno. */
static struct ibmad_port *not_opened(int error)
{
	failure_refuse_call(MAD_FAILURE_OPEN, 0, error);
	return NULL;
}

/* The errno of a call of libibumad that has failed with "ret". */
static int cause_of(int ret)
{
	return ret == -EIO && errno ? errno : -ret;
}

static struct ibmad_port *open_uncancelled(const char *call, report_fn *tell,
					   const char *ca_name, int portnum, bool smi,
					   const int *classes, int count)
{
	struct ibmad_port *port;
	int fd, error, refused;

	if (count >= MGMT_CLASSES) {
		not_opened(EINVAL);
		tell(call, "%d classes are too many", count);
		return NULL;
	}
	port = port_new(ca_name, portnum);
	take_debug_level();
	if (!port)
		return not_opened(ENOMEM);
	fd = smi ? umad_open_smi_port(ca_name, portnum) : umad_open_port(ca_name, portnum);
	if (fd < 0) {
		error = cause_of(fd);
		port_free(port);
		not_opened(error);
		tell(call, "cannot open %s port %d", port_name(ca_name), portnum);
		return NULL;
	}
	port->handle.fd = fd;
	refused = register_clients(port, classes, count);
	if (refused) {
		error = errno;
		umad_close_port(fd);
		port_free(port);
		errno = error;
		tell(call, "cannot register class %d on %s port %d", classes[refused - 1],
		     port_name(ca_name), portnum);
		return NULL;
	}
	port_begin(port);
	if (ibdebug)
		report_debug(call, "%s port %d is open, handle %d", port_name(ca_name), portnum,
			     fd);
	return port;
}

/* A thread that is cancelled while it opens a port would leave descriptors open. */
static struct ibmad_port *port_open_any(const char *call, report_fn *tell, const char *ca_name,
					int portnum, bool smi, const int *classes, int count)
{
	struct ibmad_port *port;
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	port = open_uncancelled(call, tell, ca_name, portnum, smi, classes, count);
	pthread_setcancelstate(cancel_state, NULL);
	return port;
}

struct ibmad_port *port_open(const char *call, report_fn *tell, const char *ca_name,
			     int portnum, const int *classes, int count)
{
	if (count < 0 || (count && !classes))
		return not_opened(EINVAL);
	return port_open_any(call, tell, ca_name, portnum, false, classes, count);
}

EXPORT struct ibmad_port *mad_rpc_open_port(char *dev_name, int dev_port, int *mgmt_classes,
					    int num_classes)
{
	return port_open("mad_rpc_open_port", report, dev_name, dev_port, mgmt_classes,
			 num_classes);
}

EXPORT int mad_port_open(const char *ca_name, int portnum, struct ibmad_port **port)
{
	if (!port) {
		not_opened(EINVAL);
		return -EINVAL;
	}
	*port = port_open("mad_port_open", report, ca_name, portnum, NULL, 0);
	if (!*port)
		return -errno;
	register_usual_clients(*port, ca_name, portnum);
	return 0;
}

static void unregister_all(struct ibmad_port *port, bool inherited)
{
	const struct handle *handle = &port->handle;

	for (int i = 0; i < MGMT_CLASSES && !inherited; i++)
		if (handle->agents[i] >= 0)
			umad_unregister(handle->fd, handle->agents[i]);
	servers_unregister(port);
}

/* In a child of fork(), a port that is lost keeps its memory: its lists may be half changed. */
EXPORT void mad_rpc_close_port(struct ibmad_port *srcport)
{
	int cancel_state;
	bool inherited;

	if (!srcport)
		return;
	if (port_enter(srcport, &cancel_state)) {
		umad_close_port(srcport->handle.fd);
		return;
	}
	inherited = srcport->state == PORT_INHERITED;
	port_fail(srcport, PORT_CLOSING, ECANCELED);
	srcport->users--;
	while (srcport->users)
		pthread_cond_wait(&srcport->idle, &srcport->lock);
	unregister_all(srcport, inherited);
	umad_close_port(srcport->handle.fd);
	srcport->state = PORT_CLOSED;
	srcport->users++;
	port_leave(srcport, cancel_state);
}

/* --- a pair of ports ------------------------------------------------------------ */

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

/*
 * A planarized device sends SMPs and GMPs by two ports: open_both(). Other devices send both by
 * one port.
 */
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

/*
 * 0 or an errno. A port that is in no pair, such as a RoCE port, has no device for SMPs.
 */
static int find_pair(const char *ca_name, int portnum, unsigned enforce_smi,
		     struct umad_ca_pair *names)
{
	umad_port_t port;
	int ret, fd, error;

	if (portnum < 0 || portnum > UINT8_MAX)
		return ENODEV;
	ret = umad_get_smi_gsi_pair_by_ca_name(ca_name, (uint8_t)portnum, names, enforce_smi);
	if (!ret)
		return 0;
	error = ret < 0 ? cause_of(ret) : ENODEV;
	if (!umad_get_port(ca_name, portnum, &port)) {
		snprintf(names->gsi_name, sizeof(names->gsi_name), "%s", port.ca_name);
		names->gsi_preferred_port = (uint32_t)port.portnum;
		umad_release_port(&port);
		if (!enforce_smi && ret == -ENODEV)
			return 0;
	}
	/* libibumad reports why the port cannot be opened */
	fd = umad_open_port(ca_name, portnum);
	if (fd >= 0)
		umad_close_port(fd);
	return error;
}

EXPORT struct ibmad_ports_pair *mad_rpc_open_port2(char *dev_name, int dev_port,
						   int *mgmt_classes, int num_classes,
						   unsigned enforce_smi)
{
	struct umad_ca_pair names = {0};
	struct ibmad_ports_pair *pair;
	int ret;

	if (num_classes < 0 || (num_classes && !mgmt_classes)) {
		not_opened(EINVAL);
		return NULL;
	}
	ret = find_pair(dev_name, dev_port, enforce_smi, &names);
	if (ret) {
		not_opened(ret);
		report("mad_rpc_open_port2", "cannot open %s port %d", port_name(dev_name),
		       dev_port);
		return NULL;
	}
	pair = calloc(1, sizeof(*pair));
	if (!pair) {
		not_opened(ENOMEM);
		return NULL;
	}
	if (ibdebug)
		report_debug("mad_rpc_open_port2", "SMI %s port %u, GSI %s port %u",
			     names.smi_name[0] ? names.smi_name : "(none)",
			     names.smi_preferred_port, names.gsi_name,
			     names.gsi_preferred_port);
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
