/* SPDX-License-Identifier: BSD-2-Clause */

#include "notices/local_port.h"

#include <infiniband/mad_fields.h>

void local_port_decode(const uint8_t *info, struct mad_notice_port *port)
{
	*port = (struct mad_notice_port){
		.state = mad_read_field(info, 0, IB_PORT_STATE_F),
		.physical_state = mad_read_field(info, 0, IB_PORT_PHYS_STATE_F),
		.lid = mad_read_field(info, 0, IB_PORT_LID_F),
		.lmc = mad_read_field(info, 0, IB_PORT_LMC_F),
		.sm_lid = mad_read_field(info, 0, IB_PORT_SMLID_F),
		.sm_sl = mad_read_field(info, 0, IB_PORT_SMSL_F),
		.gid_prefix = mad_read_field64(info, 0, IB_PORT_GID_PREFIX_F),
		.capability_mask = mad_read_field(info, 0, IB_PORT_CAPMASK_F),
		.mtu = mad_read_field(info, 0, IB_PORT_NEIGHBOR_MTU_F),
		.width = mad_read_field(info, 0, IB_PORT_LINK_WIDTH_ACTIVE_F),
		.speed = mad_read_field(info, 0, IB_PORT_LINK_SPEED_ACTIVE_F),
	};
}

bool local_port_is_same(const struct mad_notice_port *a, const struct mad_notice_port *b)
{
	return a->state == b->state && a->physical_state == b->physical_state &&
	       a->lid == b->lid && a->lmc == b->lmc && a->sm_lid == b->sm_lid &&
	       a->sm_sl == b->sm_sl && a->gid_prefix == b->gid_prefix &&
	       a->capability_mask == b->capability_mask && a->mtu == b->mtu &&
	       a->width == b->width && a->speed == b->speed;
}

bool local_port_needs_subscription(const struct mad_notice_port *before,
				   const struct mad_notice_port *after)
{
	return before->state != after->state || before->lid != after->lid ||
	       before->sm_lid != after->sm_lid || before->sm_sl != after->sm_sl ||
	       before->gid_prefix != after->gid_prefix;
}
