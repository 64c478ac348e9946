/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/redirect.h"

#include "mad/layout.h"

#include <errno.h>
#include <stdbool.h>

#define REDIRECTIONS_MAX 4

/* PathRecord's component mask: DGID, SGID, NumbPath (IBA 15.2.5.16). */
#define PATH_COMPONENTS (1 << 2 | 1 << 3 | 1 << 12)

/* Offset of ClassPortInfo in a MAD of its class. */
static int data_offset(const uint8_t *mad)
{
	return mad[1] == IB_SA_CLASS ? IB_SA_DATA_OFFS : IB_PC_DATA_OFFS;
}

/* Changes the destination, but neither partition nor source GID. */
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

static int take_class_port_info(struct redirect_state *state, uint8_t *packet, uint32_t *tid,
				uint8_t *info)
{
	ib_portid_t *to = &state->to;

	if (++state->count > REDIRECTIONS_MAX)
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
		state->needs_path = true;
		/* the path request needs its own TID */
		state->tid = *tid;
		*tid = 0;
		return 0;
	}
	if (!IB_LID_VALID(to->lid))
		return -EHOSTUNREACH;
	/* with a GRH, it goes through a router again */
	to->grh_present = umad_get_mad_addr(packet)->grh_present && has_gid(to);
	readdress(to, packet);
	return 0;
}

/* The SA has responded: restores the redirected request into the packet. */
static int take_path(struct redirect_state *state, uint8_t *packet, uint32_t *tid, uint8_t *mad)
{
	uint8_t *record = mad + IB_SA_DATA_OFFS;

	memcpy(packet, state->request, PACKET_SIZE);
	*tid = state->tid;
	state->awaits_path = false;
	if (get16(mad, STATUS_OFFS))
		return -EHOSTUNREACH;
	state->to.lid = (int)mad_get_field(record, 0, IB_SA_PR_DLID_F);
	state->to.sl = (uint8_t)mad_get_field(record, 0, IB_SA_PR_SL_F);
	if (!IB_LID_VALID(state->to.lid))
		return -EHOSTUNREACH;
	readdress(&state->to, packet);
	return 0;
}

int redirect(struct redirect_state **state, uint8_t *packet, uint32_t *tid, const uint8_t *mad,
	     int length)
{
	uint8_t copy[IB_MAD_SIZE] = {0};

	memcpy(copy, mad, length < IB_MAD_SIZE ? (size_t)length : IB_MAD_SIZE);
	if (!*state)
		*state = calloc(1, sizeof(**state));
	if (!*state)
		return -ENOMEM;
	if ((*state)->awaits_path)
		return take_path(*state, packet, tid, copy);
	return take_class_port_info(*state, packet, tid, copy + data_offset(copy));
}

void redirect_ask_path(struct redirect_state *state, uint8_t *packet,
		       const struct path_source *source)
{
	uint8_t record[IB_SA_DATA_SIZE] = {0}, gid[16];
	struct ib_user_mad *header = (struct ib_user_mad *)(void *)packet;
	ib_portid_t sa = source->sa;
	ib_rpc_t rpc = {
		.mgtclass = IB_SA_CLASS,
		.method = IB_MAD_METHOD_GET,
		.attr.id = IB_SA_ATTR_PATHRECORD,
		.mask = PATH_COMPONENTS,
		.mkey = source->sa_key,
		.dataoffs = IB_SA_DATA_OFFS,
		.datasz = IB_SA_DATA_SIZE,
	};

	memcpy(gid, source->gid, sizeof(gid));
	mad_set_array(record, 0, IB_SA_PR_DGID_F, state->to.gid);
	mad_set_array(record, 0, IB_SA_PR_SGID_F, gid);
	mad_set_field(record, 0, IB_SA_PR_NPATH_F, 1);
	memcpy(state->request, packet, PACKET_SIZE);
	memset(packet, 0, PACKET_SIZE);
	/* mad_build_pkt() cannot fail: no directed route, and the data fits */
	mad_build_pkt(packet, &rpc, &sa, NULL, record);
	header->agent_id = (uint32_t)source->agent;
	state->needs_path = false;
	state->awaits_path = true;
}

void redirect_report(const struct redirect_state *state, ib_portid_t *dport)
{
	const ib_portid_t *to = state ? &state->to : NULL;

	if (!to || !to->lid)
		return;
	dport->lid = to->lid;
	dport->qp = to->qp;
	dport->qkey = to->qkey;
	dport->sl = to->sl;
	dport->grh_present = to->grh_present;
	if (to->grh_present)
		memcpy(dport->gid, to->gid, sizeof(dport->gid));
}
