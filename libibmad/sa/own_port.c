/* SPDX-License-Identifier: BSD-2-Clause */

/* The local port: reads its PortInfo, and compares it with the previous one. */

#include "sa/keeper.h"

#include <infiniband/mad_fields.h>
#include <infiniband/mad_link.h>

#define TIMEOUT_MS 1000

static void decode(const uint8_t *info, struct mad_notice_port *port)
{
	*port = (struct mad_notice_port){
		.state = (uint32_t)mad_read_field(info, 0, IB_PORT_STATE_F),
		.physical_state = (uint32_t)mad_read_field(info, 0, IB_PORT_PHYS_STATE_F),
		.lid = (uint32_t)mad_read_field(info, 0, IB_PORT_LID_F),
		.lmc = (uint32_t)mad_read_field(info, 0, IB_PORT_LMC_F),
		.sm_lid = (uint32_t)mad_read_field(info, 0, IB_PORT_SMLID_F),
		.sm_sl = (uint32_t)mad_read_field(info, 0, IB_PORT_SMSL_F),
		.gid_prefix = mad_read_field(info, 0, IB_PORT_GID_PREFIX_F),
		.capability_mask = (uint32_t)mad_read_field(info, 0, IB_PORT_CAPMASK_F),
		.mtu = (uint32_t)mad_read_field(info, 0, IB_PORT_NEIGHBOR_MTU_F),
		.width = (uint32_t)mad_read_field(info, 0, IB_PORT_LINK_WIDTH_ACTIVE_F),
		.speed = (uint32_t)mad_read_field(info, 0, IB_PORT_LINK_SPEED_ACTIVE_F),
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
 * Whether the registrations have to be renewed: the SA knows the port by LID and GID, and a
 * link that was down may have another SM.
 */
static bool needs_registration(const struct mad_notice_port *before,
			       const struct mad_notice_port *after)
{
	return before->state != after->state || before->lid != after->lid ||
	       before->sm_lid != after->sm_lid || before->sm_sl != after->sm_sl ||
	       before->gid_prefix != after->gid_prefix;
}

bool own_port_is_usable(const struct sa_keeper *keeper)
{
	return keeper->known && keeper->port.state == MAD_PORT_ACTIVE && keeper->port.sm_lid &&
	       keeper->port.lid;
}

static void renew_all(struct sa_keeper *keeper)
{
	record_check_cancel(keeper);
	keeper->guid = 0; /* a virtual function may have another one now */
	list_for_each (entry, &keeper->registrations) {
		struct registration *registration = list_entry(entry, struct registration, all);

		registration->missed = 0;
		registration->changed = registration->setting > 0;
		registration_cancel(registration); /* the SM of these requests may be gone */
		registration_renew(registration);
	}
}

static void take_port(struct sa_keeper *keeper, const struct mad_notice_port *port)
{
	const struct mad_notice_port before = keeper->port;
	bool first = !keeper->known;

	if (!first && is_same(&before, port))
		return;
	keeper->port = *port;
	keeper->known = true;
	if (first || needs_registration(&before, port))
		renew_all(keeper);
	list_for_each (entry, &keeper->registrations) {
		struct registration *registration = list_entry(entry, struct registration, all);

		if (!first && registration->ops->port_changed)
			registration->ops->port_changed(registration, &before, port);
	}
}

static void read_came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	struct sa_keeper *keeper = arg;
	struct mad_notice_port port;

	(void)async;
	keeper->reading = false;
	keeper->read_failure = registration_error(0);
	if (reply->error)
		keeper->read_failure = *mad_last_failure();
	if (!reply->error && reply->data_size >= IB_SMP_DATA_SIZE) {
		if (keeper->wants_guid) {
			keeper->guid = mad_read_field(reply->data, 0, IB_NODE_PORT_GUID_F);
		} else {
			decode(reply->data, &port);
			take_port(keeper, &port);
		}
	}
	keeper->wants_guid = !keeper->wants_guid && !keeper->guid && own_port_is_usable(keeper);
	if (keeper->wants_guid)
		keeper->poll_at = 0;
	keeper_set_timer(keeper, 0);
}

void own_port_read(struct sa_keeper *keeper, int64_t now)
{
	const ib_rpc_t rpc = {
		.mgtclass = IB_SMI_DIRECT_CLASS,
		.method = IB_MAD_METHOD_GET,
		.attr = {.id = keeper->wants_guid ? IB_ATTR_NODE_INFO : IB_ATTR_PORT_INFO},
		.dataoffs = IB_SMP_DATA_OFFS,
		.mkey = smp_mkey_get(keeper->engine->port),
		.timeout = TIMEOUT_MS,
	};
	const ib_portid_t self = {0};

	keeper->poll_at = now + keeper->poll_us;
	keeper->reading = !mad_async_submit(keeper->engine, &rpc, &self, NULL, 0, read_came,
					    keeper, NULL);
}
