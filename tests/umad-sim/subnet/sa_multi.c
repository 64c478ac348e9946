/* SPDX-License-Identifier: BSD-2-Clause */

/* Subnet administrator (SA): MultiPathRecords, which request the paths from each of some GIDs
 * to each of others (IBA 15.2.5.20, 15.4.7). The response is a table of PathRecords. */
#include "sa_multi.h"

#include <infiniband/mad_sa_records.h>

enum {
	MULTI_SIZE = sizeof(struct mad_sa_multi_path_record),
	GID_SIZE = 16,
	ALL_PATHS = 127
};

/* Components of a MultiPathRecord, and the corresponding ones of a PathRecord. */
static const struct {
	uint64_t multi;
	uint64_t path;
} components[] = {
	{MAD_SA_MULTI_PATH_RAW_TRAFFIC, MAD_SA_PATH_RAW_TRAFFIC},
	{MAD_SA_MULTI_PATH_FLOW_LABEL, MAD_SA_PATH_FLOW_LABEL},
	{MAD_SA_MULTI_PATH_HOP_LIMIT, MAD_SA_PATH_HOP_LIMIT},
	{MAD_SA_MULTI_PATH_TCLASS, MAD_SA_PATH_TCLASS},
	{MAD_SA_MULTI_PATH_REVERSIBLE, MAD_SA_PATH_REVERSIBLE},
	{MAD_SA_MULTI_PATH_PKEY, MAD_SA_PATH_PKEY},
	{MAD_SA_MULTI_PATH_QOS_CLASS, MAD_SA_PATH_QOS_CLASS},
	{MAD_SA_MULTI_PATH_SL, MAD_SA_PATH_SL},
	{MAD_SA_MULTI_PATH_MTU_SELECTOR, MAD_SA_PATH_MTU_SELECTOR},
	{MAD_SA_MULTI_PATH_MTU, MAD_SA_PATH_MTU},
	{MAD_SA_MULTI_PATH_RATE_SELECTOR, MAD_SA_PATH_RATE_SELECTOR},
	{MAD_SA_MULTI_PATH_RATE, MAD_SA_PATH_RATE},
	{MAD_SA_MULTI_PATH_LIFE_SELECTOR, MAD_SA_PATH_LIFE_SELECTOR},
	{MAD_SA_MULTI_PATH_LIFE, MAD_SA_PATH_LIFE},
	{MAD_SA_MULTI_PATH_SERVICE_ID_MSB, MAD_SA_PATH_SERVICE_ID_MSB},
	{MAD_SA_MULTI_PATH_SERVICE_ID_LSB, MAD_SA_PATH_SERVICE_ID_LSB},
};

static uint64_t path_mask(uint64_t multi)
{
	uint64_t mask = MAD_SA_PATH_SGID | MAD_SA_PATH_DGID | MAD_SA_PATH_NUMB_PATH;

	for (size_t i = 0; i < COUNT(components); i++)
		if (multi & components[i].multi)
			mask |= components[i].path;
	return mask;
}

static void make_path(const struct mad_sa_multi_path_record *multi, unsigned int paths,
		      const uint8_t *sgid, const uint8_t *dgid, uint8_t *record)
{
	struct mad_sa_path_record path = {
		.flow_hop = multi->flow_hop,
		.tclass = multi->tclass,
		.reversible_num = (uint8_t)((multi->reversible_num & 0x80) | paths),
		.pkey = multi->pkey,
		.qos_sl = multi->qos_sl,
		.mtu = multi->mtu,
		.rate = multi->rate,
		.pkt_life = multi->pkt_life,
	};

	memcpy(path.sgid, sgid, GID_SIZE);
	memcpy(path.dgid, dgid, GID_SIZE);
	memcpy(record, &path, sizeof(path));
	record[0] = multi->service_id_msb;
	memcpy(record + 1, multi->service_id_lsb, sizeof(multi->service_id_lsb));
}

unsigned int sa_multi_path(struct sa_request *request, const uint8_t *message, size_t length)
{
	const uint64_t needed = MAD_SA_MULTI_PATH_SGID_COUNT | MAD_SA_MULTI_PATH_DGID_COUNT;
	const uint8_t *gids = message + SA_HEADER + MULTI_SIZE;
	struct mad_sa_multi_path_record multi;
	uint64_t mask = request->mask;
	unsigned int most = ALL_PATHS;

	if (length < SA_HEADER + MULTI_SIZE)
		return SA_INVALID;
	memcpy(&multi, message + SA_HEADER, sizeof(multi));
	if ((mask & needed) != needed)
		return SA_INSUFFICIENT_COMPONENTS;
	if (!multi.sgid_count || !multi.dgid_count ||
	    length < SA_HEADER + MULTI_SIZE +
			     GID_SIZE * ((size_t)multi.sgid_count + multi.dgid_count))
		return SA_INVALID;
	if (mask & MAD_SA_MULTI_PATH_NUMB_PATH)
		most = multi.reversible_num & 0x7f;
	request->type = &path_record;
	for (unsigned int i = 0; i < (unsigned int)multi.sgid_count * multi.dgid_count; i++) {
		unsigned int from = i / multi.dgid_count;
		unsigned int to = multi.sgid_count + i % multi.dgid_count;

		if (request->count >= most && most)
			break;
		make_path(&multi, most - request->count, gids + (size_t)GID_SIZE * from,
			  gids + (size_t)GID_SIZE * to, request->record);
		request->mask = path_mask(mask);
		path_record.walk(request);
		if (request->status)
			return request->status;
	}
	return STATUS_OK;
}
