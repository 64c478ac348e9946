/* SPDX-License-Identifier: BSD-2-Clause */

/* Link widths, speeds and rates (IBA 14.2.5.6). */

#include "classes/link_rate.h"

#include "base/export.h"

#include <infiniband/mad_fields.h>

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* "All supported" in LinkWidthEnabled and the enabled-speed fields. */
#define WIDTHS_AS_SUPPORTED       255
#define SPEEDS_AS_SUPPORTED       15
#define EXT_SPEEDS_AS_SUPPORTED   31
#define EXT_SPEEDS_DISABLED       30
#define EXT_SPEEDS_2_AS_SUPPORTED 7

/* Combines the bits of the four fields. */
static unsigned speed_set(unsigned speeds, unsigned ext, unsigned ext_2, unsigned mlnx)
{
	unsigned set = 0;

	set |= (speeds & 7) << MAD_SPEED_SDR;
	set |= (mlnx & 1) << MAD_SPEED_FDR10;
	set |= (ext & 15) << MAD_SPEED_FDR;
	set |= (ext_2 & 1) << MAD_SPEED_XDR;
	return set;
}

static unsigned read_number(const void *info, enum MAD_FIELDS field)
{
	return (unsigned)mad_read_field(info, 0, field);
}

static unsigned read_mlnx_number(const void *info, enum MAD_FIELDS field)
{
	return info ? read_number(info, field) : 0;
}

static void decode_speeds(struct mad_link *link, const void *info, bool extended,
			  const void *mlnx)
{
	unsigned supported = read_number(info, IB_PORT_LINK_SPEED_SUPPORTED_F);
	unsigned enabled = read_number(info, IB_PORT_LINK_SPEED_ENABLED_F);
	unsigned ext_supported = 0, ext_enabled = 0, ext_active = 0;
	unsigned ext_2_supported = 0, ext_2_enabled = 0, ext_2_active = 0;

	if (extended) {
		ext_supported = read_number(info, IB_PORT_LINK_SPEED_EXT_SUPPORTED_F);
		ext_enabled = read_number(info, IB_PORT_LINK_SPEED_EXT_ENABLED_F);
		ext_active = read_number(info, IB_PORT_LINK_SPEED_EXT_ACTIVE_F);
		ext_2_supported = read_number(info, IB_PORT_LINK_SPEED_EXT_SUPPORTED_2_F);
		ext_2_enabled = read_number(info, IB_PORT_LINK_SPEED_EXT_ENABLED_2_F);
		ext_2_active = read_number(info, IB_PORT_LINK_SPEED_EXT_ACTIVE_2_F);
	}
	if (enabled == SPEEDS_AS_SUPPORTED)
		enabled = supported;
	if (ext_enabled == EXT_SPEEDS_AS_SUPPORTED)
		ext_enabled = ext_supported;
	else if (ext_enabled == EXT_SPEEDS_DISABLED)
		ext_enabled = 0;
	if (ext_2_enabled == EXT_SPEEDS_2_AS_SUPPORTED)
		ext_2_enabled = ext_2_supported;
	link->speeds_supported = (uint16_t)speed_set(
		supported, ext_supported, ext_2_supported,
		read_mlnx_number(mlnx, IB_MLNX_EXT_PORT_LINK_SPEED_SUPPORTED_F));
	link->speeds_enabled = (uint16_t)speed_set(
		enabled, ext_enabled, ext_2_enabled,
		read_mlnx_number(mlnx, IB_MLNX_EXT_PORT_LINK_SPEED_ENABLED_F));
	link->speed = (uint8_t)link_fastest(speed_set(
		read_number(info, IB_PORT_LINK_SPEED_ACTIVE_F), ext_active, ext_2_active,
		read_mlnx_number(mlnx, IB_MLNX_EXT_PORT_LINK_SPEED_ACTIVE_F)));
}

EXPORT void mad_link_decode(struct mad_link *result, size_t size, const void *port_info,
			    const void *switch_port0, const void *mlnx_ext_port_info)
{
	const void *capabilities = switch_port0 ? switch_port0 : port_info;
	unsigned mask = read_number(capabilities, IB_PORT_CAPMASK_F);
	struct mad_link link = {0};

	link.state = (uint8_t)read_number(port_info, IB_PORT_STATE_F);
	link.physical_state = (uint8_t)read_number(port_info, IB_PORT_PHYS_STATE_F);
	link.widths_supported = (uint8_t)read_number(port_info, IB_PORT_LINK_WIDTH_SUPPORTED_F);
	link.widths_enabled = (uint8_t)read_number(port_info, IB_PORT_LINK_WIDTH_ENABLED_F);
	if (link.widths_enabled == WIDTHS_AS_SUPPORTED)
		link.widths_enabled = link.widths_supported;
	decode_speeds(&link, port_info, mask & MAD_PORT_CAP_EXTENDED_SPEEDS,
		      mlnx_ext_port_info);
	link.width = (uint8_t)link_widest(read_number(port_info, IB_PORT_LINK_WIDTH_ACTIVE_F));
	/* active width and speed are only valid if the port is up */
	if (link.state <= MAD_PORT_DOWN && link.physical_state != MAD_PHYSICAL_LINK_UP) {
		link.width = 0;
		link.speed = MAD_SPEED_NONE;
	}
	link.width_supported = (uint8_t)link_widest(link.widths_supported);
	link.width_enabled = (uint8_t)link_widest(link.widths_enabled);
	link.speed_supported = (uint8_t)link_fastest(link.speeds_supported);
	link.speed_enabled = (uint8_t)link_fastest(link.speeds_enabled);
	link.mtu = (uint16_t)mad_link_mtu(read_number(port_info, IB_PORT_NEIGHBOR_MTU_F));
	link.mtu_supported = (uint16_t)mad_link_mtu(read_number(port_info, IB_PORT_MTU_CAP_F));
	link.rate_gbps = mad_link_rate_gbps(link.width, link.speed);
	memset(result, 0, size);
	memcpy(result, &link, size < sizeof(link) ? size : sizeof(link));
}

unsigned link_widest(unsigned widths)
{
	static const struct {
		uint8_t bit, lanes;
	} order[] = {{MAD_WIDTH_12X, 12},
		     {MAD_WIDTH_8X, 8},
		     {MAD_WIDTH_4X, 4},
		     {MAD_WIDTH_2X, 2},
		     {MAD_WIDTH_1X, 1}};

	for (size_t i = 0; i < COUNT(order); i++)
		if (widths & order[i].bit)
			return order[i].lanes;
	return 0;
}

enum mad_link_speed link_fastest(unsigned speeds)
{
	for (unsigned speed = MAD_SPEED_XDR; speed > MAD_SPEED_NONE; speed--)
		if (speeds >> speed & 1)
			return (enum mad_link_speed)speed;
	return MAD_SPEED_NONE;
}

EXPORT const char *mad_link_speed_name(unsigned speed)
{
	static const char *const names[] = {
		[MAD_SPEED_NONE] = "",   [MAD_SPEED_SDR] = "SDR",     [MAD_SPEED_DDR] = "DDR",
		[MAD_SPEED_QDR] = "QDR", [MAD_SPEED_FDR10] = "FDR10", [MAD_SPEED_FDR] = "FDR",
		[MAD_SPEED_EDR] = "EDR", [MAD_SPEED_HDR] = "HDR",     [MAD_SPEED_NDR] = "NDR",
		[MAD_SPEED_XDR] = "XDR"};

	return speed < COUNT(names) ? names[speed] : "?";
}

EXPORT double mad_link_rate_gbps(unsigned lanes, unsigned speed)
{
	static const double lane[] = {
		[MAD_SPEED_NONE] = 0, [MAD_SPEED_SDR] = 2.5,  [MAD_SPEED_DDR] = 5,
		[MAD_SPEED_QDR] = 10, [MAD_SPEED_FDR10] = 10, [MAD_SPEED_FDR] = 14,
		[MAD_SPEED_EDR] = 25, [MAD_SPEED_HDR] = 50,   [MAD_SPEED_NDR] = 100,
		[MAD_SPEED_XDR] = 200};

	return speed < COUNT(lane) ? lanes * lane[speed] : 0;
}

EXPORT unsigned mad_link_mtu(unsigned code)
{
	return code >= 1 && code <= 5 ? 128u << code : 0;
}
