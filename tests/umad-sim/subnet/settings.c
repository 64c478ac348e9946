/* SPDX-License-Identifier: BSD-2-Clause */

/* Settings of ports: the default values of an unconfigured fabric, and those that differ. */
#include <stdlib.h>

#include "link.h"
#include "settings.h"

static void set_defaults(const struct fabric *fabric, uint32_t port,
			 struct port_settings *settings)
{
	const struct graph_port *end = cable(fabric, port);

	*settings = (struct port_settings){
		.gid_prefix = DEFAULT_PREFIX,
		.pkeys = {DEFAULT_PKEY},
		.width_enabled = widths_supported(end),
		.speed_enabled = speeds_supported(end),
		.speed_ext_enabled = speeds_ext_supported(end),
		.speed_ext2_enabled = speed_ext2_bit(end->speed),
		.link_down_default = 2,
		.hoq_life = 18,
		.subnet_timeout = 18,
		.error_thresholds = 0x88,
		.fdr10_enabled = end->speed == FDR10,
	};
}

struct port_settings *settings_of(struct fabric *fabric, uint32_t port)
{
	struct port *state = &fabric->ports[port];

	if (!state->settings) {
		state->settings = malloc(sizeof(*state->settings));
		if (state->settings)
			set_defaults(fabric, port, state->settings);
	}
	return state->settings;
}

const struct port_settings *settings_read(const struct fabric *fabric, uint32_t port,
					  struct port_settings *defaults)
{
	const struct port_settings *settings = fabric->ports[port].settings;

	if (settings)
		return settings;
	set_defaults(fabric, port, defaults);
	return defaults;
}

uint64_t gid_prefix(const struct fabric *fabric, uint32_t port)
{
	const struct port_settings *settings = fabric->ports[port].settings;

	return settings ? settings->gid_prefix : DEFAULT_PREFIX;
}

uint16_t pkey_at(const struct fabric *fabric, uint32_t port, unsigned int index)
{
	const struct port_settings *settings = fabric->ports[port].settings;

	if (index >= PKEY_COUNT)
		return 0;
	if (settings)
		return settings->pkeys[index];
	return index == 0 ? DEFAULT_PKEY : 0;
}

unsigned int guid_capacity(const struct fabric *fabric, uint32_t port)
{
	if (end_port(fabric, port) != port)
		return 0;
	return hardware(fabric, cable(fabric, port)->node)->type == NODE_SWITCH ? 1
										: GUID_COUNT;
}

void settings_free(struct port_settings *settings)
{
	if (!settings)
		return;
	while (settings->sl_to_vl) {
		struct sl_to_vl *next = settings->sl_to_vl->next;

		free(settings->sl_to_vl);
		settings->sl_to_vl = next;
	}
	free(settings->vl_arbitration);
	free(settings);
}
