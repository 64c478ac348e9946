/* SPDX-License-Identifier: BSD-2-Clause */

/* What the agents on QP1 share: the key of a class, and ClassPortInfo. */
#include "gmp_agents.h"

#define REQUEST_KEY 24 /* where the B_Key or CC_Key is in a MAD */

/* Offsets of the fields of BKeyInfo and CongestionKeyInfo. */
enum {
	INFO_KEY = 0,
	INFO_PROTECT = 8,
	INFO_LEASE = 10,
	INFO_VIOLATIONS = 12
};

#define TRAP_PART 40 /* ClassPortInfo: begins with TrapGID */
#define TRAP_SIZE 32 /* ends after TrapQ_Key */

#define RESPONSE_TIME 8 /* as encoded: 4.096 us * 2^8, about a millisecond */

static struct gmp_place place_of(const struct query *query, unsigned int attribute)
{
	return (struct gmp_place){.node = query->node,
				  .class = (uint8_t)mad_class_of(query->mad),
				  .attribute = (uint16_t)attribute};
}

static struct key_info load(const struct query *query, unsigned int attribute)
{
	struct gmp_place place = place_of(query, attribute);
	struct key_info info;

	if (!gmp_recall(query->fabric, &place, &info, sizeof(info)))
		return (struct key_info){0};
	if (info.lease_end && query->fabric->now >= info.lease_end) {
		info.lease_end = 0;
		info.protect = false;
	}
	return info;
}

static void store(const struct query *query, unsigned int attribute,
		  const struct key_info *info)
{
	struct gmp_place place = place_of(query, attribute);

	(void)gmp_keep(query->fabric, &place, info, sizeof(*info));
}

static bool has_key(const struct query *query, const struct key_info *info)
{
	return info->key == 0 || info->key == get64(query->mad + REQUEST_KEY);
}

/* A wrong key starts the lease, after which anybody can read the key. The right key shows that
 * the manager is alive, and stops the lease (as IBA 14.2.4 says for M_Keys). */
bool key_admits(struct query *query, unsigned int attribute)
{
	struct key_info info = load(query, attribute);
	bool admitted = has_key(query, &info);

	if (admitted && !info.lease_end)
		return true;
	if (admitted) {
		info.lease_end = 0;
	} else {
		if (info.violations != 0xffff)
			info.violations++;
		if (info.lease && !info.lease_end)
			info.lease_end = query->fabric->now + info.lease * SECOND;
	}
	store(query, attribute, &info);
	return admitted;
}

void key_read(struct query *query, unsigned int attribute, uint8_t *data)
{
	struct key_info info = load(query, attribute);

	memset(data, 0, KEY_INFO_SIZE);
	if (!info.protect || has_key(query, &info))
		put64(data + INFO_KEY, info.key);
	data[INFO_PROTECT] = info.protect ? 0x80 : 0;
	put16(data + INFO_LEASE, info.lease);
	put16(data + INFO_VIOLATIONS, info.violations);
}

void key_write(struct query *query, unsigned int attribute, const uint8_t *data)
{
	struct key_info info = {
		.key = get64(data + INFO_KEY),
		.protect = (data[INFO_PROTECT] & 0x80) != 0,
		.lease = (uint16_t)get16(data + INFO_LEASE),
		.violations = (uint16_t)get16(data + INFO_VIOLATIONS),
	};

	store(query, attribute, &info);
}

void class_port_info(struct query *query, const struct class_info *info, int offset)
{
	struct gmp_place place = place_of(query, CLASS_PORT_INFO);
	uint8_t *data = query->mad + offset;
	uint8_t trap[TRAP_SIZE] = {0};

	if (mad_method(query->mad) == METHOD_SET)
		(void)gmp_keep(query->fabric, &place, data + TRAP_PART, TRAP_SIZE);
	(void)gmp_recall(query->fabric, &place, trap, TRAP_SIZE);
	memset(data, 0, (size_t)(MAD_BYTES - offset));
	mad_set_field(query->mad, offset, IB_CPI_BASEVER_F, 1);
	mad_set_field(query->mad, offset, IB_CPI_CLASSVER_F, info->version);
	mad_set_field(query->mad, offset, IB_CPI_CAPMASK_F, info->capabilities);
	mad_set_field(query->mad, offset, IB_CPI_CAPMASK2_F, info->capabilities2);
	mad_set_field(query->mad, offset, IB_CPI_RESP_TIME_VALUE_F, RESPONSE_TIME);
	memcpy(data + TRAP_PART, trap, TRAP_SIZE);
	respond(query->mad, STATUS_OK);
}
