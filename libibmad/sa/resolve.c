/* SPDX-License-Identifier: BSD-2-Clause */

/* Addresses: of the SM, the local port, and others by GUID, GID or text. */

#include "base/export.h"
#include "base/report.h"

#include <infiniband/mad.h>
#include <ctype.h>
#include <errno.h>

static int refuse_address(int error)
{
	failure_refuse(0, error);
	return -1;
}

/* Reads an attribute of the requesting port. */
static int query_self(void *data, unsigned attrid, int timeout,
		      const struct ibmad_port *srcport)
{
	ib_portid_t self = {0};

	return smp_query_via(data, &self, attrid, 0, (unsigned)timeout, srcport) ? 0 : -1;
}

EXPORT int ib_resolve_smlid_via(ib_portid_t *sm_id, int timeout,
				const struct ibmad_port *srcport)
{
	uint8_t port_info[IB_SMP_DATA_SIZE] = {0};
	uint32_t lid;

	if (!sm_id)
		return refuse_address(EINVAL);
	memset(sm_id, 0, sizeof(*sm_id));
	if (query_self(port_info, IB_ATTR_PORT_INFO, timeout, srcport))
		return -1;
	lid = mad_get_field(port_info, 0, IB_PORT_SMLID_F);
	if (!IB_LID_VALID(lid))
		return refuse_address(ENXIO);
	sm_id->lid = (int)lid;
	sm_id->sl = (uint8_t)mad_get_field(port_info, 0, IB_PORT_SMSL_F);
	return 0;
}

EXPORT int ib_resolve_gid_via(ib_portid_t *portid, ibmad_gid_t gid, ib_portid_t *sm_id,
			      int timeout, const struct ibmad_port *srcport)
{
	uint8_t path[IB_SA_DATA_SIZE] = {0};
	ib_portid_t found = {0};

	if (!portid || !gid)
		return refuse_address(EINVAL);
	if (!sm_id)
		sm_id = &found;
	if (!sm_id->lid && ib_resolve_smlid_via(sm_id, timeout, srcport))
		return -1;
	/* the path from a GID to itself has its LID */
	portid->lid = ib_path_query_via(srcport, gid, gid, sm_id, path);
	return portid->lid < 0 ? -1 : 0;
}

EXPORT int ib_resolve_guid_via(ib_portid_t *portid, uint64_t *guid, ib_portid_t *sm_id,
			       int timeout, const struct ibmad_port *srcport)
{
	uint8_t node_info[IB_SMP_DATA_SIZE] = {0}, path[IB_SA_DATA_SIZE] = {0};
	ibmad_gid_t self = {0};
	ib_portid_t found = {0};

	if (!portid || !guid)
		return refuse_address(EINVAL);
	if (!sm_id)
		sm_id = &found;
	if ((!sm_id->lid && ib_resolve_smlid_via(sm_id, timeout, srcport)) ||
	    query_self(node_info, IB_ATTR_NODE_INFO, timeout, srcport))
		return -1;
	mad_set_field64(self, 0, IB_GID_PREFIX_F, IB_DEFAULT_SUBN_PREFIX);
	mad_set_field64(self, 0, IB_GID_GUID_F,
			mad_get_field64(node_info, 0, IB_NODE_PORT_GUID_F));
	if (!mad_get_field64(portid->gid, 0, IB_GID_PREFIX_F))
		mad_set_field64(portid->gid, 0, IB_GID_PREFIX_F, IB_DEFAULT_SUBN_PREFIX);
	mad_set_field64(portid->gid, 0, IB_GID_GUID_F, *guid);
	portid->lid = ib_path_query_via(srcport, self, portid->gid, sm_id, path);
	if (portid->lid < 0)
		return -1;
	portid->sl = (uint8_t)mad_get_field(path, 0, IB_SA_PR_SL_F);
	return 0;
}

EXPORT int ib_resolve_self_via(ib_portid_t *portid, int *portnum, ibmad_gid_t *gid,
			       const struct ibmad_port *srcport)
{
	uint8_t node_info[IB_SMP_DATA_SIZE] = {0}, port_info[IB_SMP_DATA_SIZE] = {0};

	if (query_self(node_info, IB_ATTR_NODE_INFO, 0, srcport) ||
	    query_self(port_info, IB_ATTR_PORT_INFO, 0, srcport))
		return -1;
	if (portid) {
		portid->lid = (int)mad_get_field(port_info, 0, IB_PORT_LID_F);
		portid->sl = (uint8_t)mad_get_field(port_info, 0, IB_PORT_SMSL_F);
	}
	if (portnum)
		*portnum = (int)mad_get_field(node_info, 0, IB_NODE_LOCAL_PORT_F);
	if (gid) {
		mad_set_field64(*gid, 0, IB_GID_PREFIX_F,
				mad_get_field64(port_info, 0, IB_PORT_GID_PREFIX_F));
		mad_set_field64(*gid, 0, IB_GID_GUID_F,
				mad_get_field64(node_info, 0, IB_NODE_PORT_GUID_F));
	}
	return 0;
}

/* --- by text -------------------------------------------------------------------- */

static const char *skip_blanks(const char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	return text;
}

/* Parses a C-style number after optional blanks, and sets its end; 0 if invalid. */
static uint64_t parse_number(const char *text, char **end)
{
	uint64_t number;

	text = skip_blanks(text);
	if (!isdigit((unsigned char)*text))
		return 0;
	errno = 0;
	number = strtoull(text, end, 0);
	return errno ? 0 : number;
}

EXPORT int ib_resolve_portid_str_via(ib_portid_t *portid, char *addr_str, enum MAD_DEST dest,
				     ib_portid_t *sm_id, const struct ibmad_port *srcport)
{
	ib_portid_t self = {0};
	ibmad_gid_t gid;
	uint64_t number;
	char *end;

	if (!portid || !addr_str)
		return refuse_address(EINVAL);
	memset(portid, 0, sizeof(*portid));
	switch (dest) {
	case IB_DEST_LID:
		number = parse_number(addr_str, &end);
		if (!IB_LID_VALID(number) || *skip_blanks(end))
			break;
		portid->lid = (int)number;
		return 0;
	case IB_DEST_DRPATH:
		if (str2drpath(&portid->drpath, addr_str, 0, 0) < 0)
			break;
		return 0;
	case IB_DEST_GUID:
		number = parse_number(addr_str, &end);
		if (!number || *skip_blanks(end))
			break;
		return ib_resolve_guid_via(portid, &number, sm_id, 0, srcport);
	case IB_DEST_DRSLID:
		/* a LID, then a directed route from there, separated by ',', ';' or blank */
		number = parse_number(addr_str, &end);
		if (!IB_LID_VALID(number) ||
		    (*end != ',' && *end != ';' && !isspace((unsigned char)*end)))
			break;
		portid->lid = (int)number;
		/* responses return to the LID where the route begins (IBA 14.2.2) */
		if (ib_resolve_self_via(&self, NULL, NULL, srcport))
			return -1;
		if (str2drpath(&portid->drpath, end + 1, self.lid, 0) < 0)
			break;
		return 0;
	case IB_DEST_GID:
		if (inet_pton(AF_INET6, addr_str, gid) != 1)
			break;
		return ib_resolve_gid_via(portid, gid, sm_id, 0, srcport);
	default:
		report("ib_resolve_portid_str_via", "%u is no kind of address", (unsigned)dest);
	}
	return refuse_address(EINVAL);
}
