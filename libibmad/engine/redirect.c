/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/redirect.h"

#include "mad/layout.h"

#include <errno.h>
#include <stdbool.h>

#define REDIRECTIONS_MAX 4

/* PathRecord's component mask: DGID, SGID, NumbPath (IBA 15.2.5.16). */
#define PATH_COMPONENTS (1 << 2 | 1 << 3 | 1 << 12)

/* Where ClassPortInfo is in a MAD of its class. */
static int data_offset(const uint8_t *mad)
{
	return mad[1] == IB_SA_CLASS ? IB_SA_DATA_OFFS : IB_PC_DATA_OFFS;
}

/* The request's address becomes the detour's; its partition and source GID stay. */
static void readdress(ib_portid_t *to, uint8_t *umad)
{
	to->pkey_idx = (unsigned)umad_get_pkey(umad);
	address_gmp(umad, to, umad_get_mad_addr(umad)->gid_index);
}

static bool has_gid(const ib_portid_t *portid)
{
	static const ibmad_gid_t none;

	return memcmp(portid->gid, none, sizeof(none)) != 0;
}

static int take_class_port_info(struct detour *detour, uint8_t *packet, uint32_t *tid,
				uint8_t *info)
{
	ib_portid_t *to = &detour->to;

	if (++detour->count > REDIRECTIONS_MAX)
		return -ELOOP;
	memset(to, 0, sizeof(*to));
	to->lid = (int)mad_get_field(info, 0, IB_CPI_REDIRECT_LID_F);
	to->qp = mad_get_field(info, 0, IB_CPI_REDIRECT_QP_F);
	to->qkey = mad_get_field(info, 0, IB_CPI_REDIRECT_QKEY_F);
	to->sl = (uint8_t)mad_get_field(info, 0, IB_CPI_REDIRECT_SL_F);
	mad_get_array(info, 0, IB_CPI_REDIRECT_GID_F, to->gid);
	if (!to->qp)
		to->qp = 1;
	if (!to->qkey)
		to->qkey = IB_DEFAULT_QP1_QKEY;
	if (!to->lid) {
		to->grh_present = 1;
		detour->needs_path = true;
		/* the request for the path has an ID of its own */
		detour->tid = *tid;
		*tid = 0;
		return 0;
	}
	/* what went through a router goes through one again */
	to->grh_present = umad_get_mad_addr(packet)->grh_present && has_gid(to);
	readdress(to, packet);
	return 0;
}

/* The SA has responded: back to the request. */
static int take_path(struct detour *detour, uint8_t *packet, uint32_t *tid, uint8_t *mad)
{
	uint8_t *record = mad + IB_SA_DATA_OFFS;

	memcpy(packet, detour->request, PACKET_SIZE);
	*tid = detour->tid;
	detour->awaits_path = false;
	if (get16(mad, STATUS_OFFS))
		return -EHOSTUNREACH;
	detour->to.lid = (int)mad_get_field(record, 0, IB_SA_PR_DLID_F);
	detour->to.sl = (uint8_t)mad_get_field(record, 0, IB_SA_PR_SL_F);
	if (!detour->to.lid)
		return -EHOSTUNREACH;
	readdress(&detour->to, packet);
	return 0;
}

int redirect(struct detour **detour, uint8_t *packet, uint32_t *tid, const uint8_t *mad,
	     int length)
{
	uint8_t copy[IB_MAD_SIZE] = {0};

	memcpy(copy, mad, length < IB_MAD_SIZE ? (size_t)length : IB_MAD_SIZE);
	if (!*detour)
		*detour = calloc(1, sizeof(**detour));
	if (!*detour)
		return -ENOMEM;
	if ((*detour)->awaits_path)
		return take_path(*detour, packet, tid, copy);
	return take_class_port_info(*detour, packet, tid, copy + data_offset(copy));
}

/* The SA's address, and this port's GID. */
static int find_sa(const struct link *link, ib_portid_t *sa, uint8_t *gid)
{
	umad_port_t local;

	if (umad_get_port(link->ca_name, link->portnum, &local))
		return EHOSTUNREACH;
	ib_portid_set(sa, (int)local.sm_lid, 1, (int)IB_DEFAULT_QP1_QKEY);
	sa->sl = (uint8_t)local.sm_sl;
	/* both are in the wire's order */
	memcpy(gid, &local.gid_prefix, 8);
	memcpy(gid + 8, &local.port_guid, 8);
	umad_release_port(&local);
	return sa->lid ? 0 : EHOSTUNREACH;
}

int redirect_ask_path(struct detour *detour, uint8_t *packet, const struct link *link,
		      uint64_t sa_key)
{
	int agent = link_agent(link, IB_SA_CLASS), error;
	uint8_t record[IB_SA_DATA_SIZE] = {0}, gid[16];
	struct ib_user_mad *header;
	ib_portid_t sa;
	ib_rpc_t rpc = {
		.mgtclass = IB_SA_CLASS,
		.method = IB_MAD_METHOD_GET,
		.attr.id = IB_SA_ATTR_PATHRECORD,
		.mask = PATH_COMPONENTS,
		.mkey = sa_key,
		.dataoffs = IB_SA_DATA_OFFS,
		.datasz = IB_SA_DATA_SIZE,
	};

	detour->needs_path = false;
	if (agent < 0)
		return EHOSTUNREACH;
	error = find_sa(link, &sa, gid);
	if (error)
		return error;
	mad_set_array(record, 0, IB_SA_PR_DGID_F, detour->to.gid);
	mad_set_array(record, 0, IB_SA_PR_SGID_F, gid);
	mad_set_field(record, 0, IB_SA_PR_NPATH_F, 1);

	memcpy(detour->request, packet, PACKET_SIZE);
	memset(packet, 0, PACKET_SIZE);
	/* it cannot fail: there is no directed route, and the data fit */
	mad_build_pkt(packet, &rpc, &sa, NULL, record);
	header = (struct ib_user_mad *)(void *)packet;
	header->agent_id = (uint32_t)agent;
	detour->awaits_path = true;
	return 0;
}

void redirect_report(const struct detour *detour, ib_portid_t *dport)
{
	const ib_portid_t *to;

	if (!detour || !detour->to.lid)
		return;
	to = &detour->to;
	dport->lid = to->lid;
	dport->qp = to->qp;
	dport->qkey = to->qkey;
	dport->sl = to->sl;
	dport->grh_present = to->grh_present;
	if (to->grh_present)
		memcpy(dport->gid, to->gid, sizeof(dport->gid));
}
