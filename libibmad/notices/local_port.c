/* SPDX-License-Identifier: BSD-2-Clause */

/* The local port: reads its PortInfo, and compares it with the previous one. */

#include "notices/notices_state.h"

#include <infiniband/mad_fields.h>
#include <infiniband/mad_link.h>

#define TIMEOUT_MS 1000

static void decode(const uint8_t *info, struct mad_notice_port *port)
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

static bool is_same(const struct mad_notice_port *a, const struct mad_notice_port *b)
{
	return a->state == b->state && a->physical_state == b->physical_state &&
	       a->lid == b->lid && a->lmc == b->lmc && a->sm_lid == b->sm_lid &&
	       a->sm_sl == b->sm_sl && a->gid_prefix == b->gid_prefix &&
	       a->capability_mask == b->capability_mask && a->mtu == b->mtu &&
	       a->width == b->width && a->speed == b->speed;
}

/*
 * Whether the subscription has to be renewed: the SM knows the subscriber by LID and GID, and a
 * link that was down may have another SM.
 */
static bool needs_subscription(const struct mad_notice_port *before,
			       const struct mad_notice_port *after)
{
	return before->state != after->state || before->lid != after->lid ||
	       before->sm_lid != after->sm_lid || before->sm_sl != after->sm_sl ||
	       before->gid_prefix != after->gid_prefix;
}

bool local_port_is_usable(const struct mad_notices *notices)
{
	return notices->port.state == MAD_PORT_ACTIVE && notices->port.sm_lid &&
	       notices->port.lid;
}

static void take_port(struct mad_notices *notices, const struct mad_notice_port *port)
{
	struct mad_notice notice = {
		.kind = MAD_NOTICE_PORT, .before = notices->port, .after = *port};
	bool first = !notices->known;

	if (!first && is_same(&notices->port, port))
		return;
	notices->port = *port;
	notices->known = true;
	if (first || needs_subscription(&notice.before, port)) {
		notices->changed = notices->setting > 0;
		subscription_cancel(notices); /* the SM of these requests may be gone */
		notices->retry_ms = 0;
		notices->renew_at = 0;
	}
	if (!first)
		notices_tell(notices, &notice);
}

static void read_came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	struct mad_notices *notices = arg;
	struct mad_notice_port port;

	(void)async;
	notices->reading = false;
	notices->read_id = 0;
	if (!reply->error && reply->data_size >= IB_SMP_DATA_SIZE && !notices->stopping) {
		decode(reply->data, &port);
		take_port(notices, &port);
	}
	notices_set_timer(notices, 0);
}

void local_port_read(struct mad_notices *notices, int64_t now)
{
	const ib_rpc_t rpc = {
		.mgtclass = IB_SMI_DIRECT_CLASS,
		.method = IB_MAD_METHOD_GET,
		.attr = {.id = IB_ATTR_PORT_INFO},
		.dataoffs = IB_SMP_DATA_OFFS,
		.mkey = smp_mkey_get(notices->engine->port),
		.timeout = TIMEOUT_MS,
	};
	const ib_portid_t self = {0};

	notices->poll_at = now + notices->poll_us;
	notices->reading = !mad_async_submit(notices->engine, &rpc, &self, NULL, 0, read_came,
					     notices, &notices->read_id);
}
