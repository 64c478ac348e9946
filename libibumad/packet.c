/* SPDX-License-Identifier: BSD-2-Clause */

/* The umad buffer: size, address, GRH, P_Key, status. */

#include "packet.h"
#include "export.h"
#include "kernel_abi.h"

#include <string.h>

atomic_size_t packet_header = sizeof(struct ib_user_mad_hdr_old);

void packet_set_layout(bool has_pkey_index)
{
	atomic_store(&packet_header, has_pkey_index ? sizeof(struct ib_user_mad_hdr)
						    : sizeof(struct ib_user_mad_hdr_old));
}

static bool with_pkey_index(void)
{
	return packet_header_size() == sizeof(struct ib_user_mad_hdr);
}

EXPORT size_t umad_size(void)
{
	return packet_header_size();
}

EXPORT void *umad_get_mad(void *umad)
{
	return umad ? (char *)umad + packet_header_size() : NULL;
}

EXPORT int umad_status(void *umad)
{
	return umad ? (int)((struct ib_user_mad *)umad)->status : fail_errno(-EINVAL);
}

EXPORT ib_mad_addr_t *umad_get_mad_addr(void *umad)
{
	return umad ? &((struct ib_user_mad *)umad)->addr : NULL;
}

EXPORT int umad_set_grh_net(void *umad, void *mad_addr)
{
	struct ib_mad_addr *to = umad_get_mad_addr(umad);
	const struct ib_mad_addr *from = mad_addr;

	if (!to)
		return fail_errno(-EINVAL);
	to->grh_present = from != NULL;
	if (!from)
		return 0;
	to->gid_index = from->gid_index;
	to->hop_limit = from->hop_limit;
	to->traffic_class = from->traffic_class;
	memmove(to->gid, from->gid, sizeof(to->gid));
	to->flow_label = from->flow_label;
	return 0;
}

EXPORT int umad_set_grh(void *umad, void *mad_addr)
{
	struct ib_mad_addr *to = umad_get_mad_addr(umad);
	int err = umad_set_grh_net(umad, mad_addr);

	if (!err && mad_addr)
		to->flow_label = htobe32(to->flow_label);
	return err;
}

EXPORT int umad_set_addr_net(void *umad, __be16 dlid, __be32 dqp, int sl, __be32 qkey)
{
	struct ib_mad_addr *addr = umad_get_mad_addr(umad);

	if (!addr)
		return fail_errno(-EINVAL);
	addr->qpn = dqp;
	addr->lid = dlid;
	addr->sl = (uint8_t)sl;
	addr->qkey = qkey;
	return 0;
}

EXPORT int umad_set_addr(void *umad, int dlid, int dqp, int sl, int qkey)
{
	return umad_set_addr_net(umad, htobe16((uint16_t)dlid), htobe32((uint32_t)dqp), sl,
				 htobe32((uint32_t)qkey));
}

/* Without an index in the layout, its bytes are the MAD's. */
EXPORT int umad_set_pkey(void *umad, int pkey_index)
{
	struct ib_mad_addr *addr = umad_get_mad_addr(umad);

	if (!addr || pkey_index < 0 || pkey_index > UINT16_MAX)
		return fail_errno(-EINVAL);
	if (!with_pkey_index())
		return pkey_index ? fail_errno(-EOPNOTSUPP) : 0;
	addr->pkey_index = (uint16_t)pkey_index;
	return 0;
}

EXPORT int umad_get_pkey(void *umad)
{
	const struct ib_mad_addr *addr = umad_get_mad_addr(umad);

	if (!addr)
		return fail_errno(-EINVAL);
	return with_pkey_index() ? addr->pkey_index : 0;
}
