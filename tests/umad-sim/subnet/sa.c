/* SPDX-License-Identifier: BSD-2-Clause */

/* Subnet administrator (SA): dispatches requests and builds responses (IBA 15.2, 15.4). */
#include <stdlib.h>

#include "rmpp.h"
#include "sa.h"
#include "sa_groups.h"
#include "sa_multi.h"
#include "sa_services.h"
#include "sa_subscriptions.h"

#define CLASS_VERSION      2
#define METHOD_TRACE_TABLE 0x13
#define METHOD_MULTI       0x14
#define CLASS_PORT_INFO    0x01
#define INFORM_INFO        0x03
#define RESPONSE_TIME      16 /* 4.096 us * 2^16: 268 ms */

/* ClassPortInfo's CapabilityMask (IBA 15.2.1.4). */
enum {
	HAS_OPTIONAL_RECORDS = 1 << 8,
	HAS_MULTICAST = 1 << 9,
	HAS_MULTI_PATH = 1 << 10,
	MATCHES_CAPABILITIES = 1 << 13
};

/* CapabilityMask2: GUIDs can be set, PortInfoRecords are complete. */
enum {
	HAS_ADDITIONAL_GUIDS = 1 << 5,
	HAS_FULL_PORT_INFO = 1 << 6,
	HAS_EXTENDED_SPEEDS = 1 << 7
};

static const struct record_type *const types[] = {
	&node_record,           &port_info_record, &switch_info_record, &sm_info_record,
	&link_record,           &guid_info_record, &pkey_record,        &sl_to_vl_record,
	&vl_arbitration_record, &linear_record,    &multicast_record,   &path_record,
	&member_record,         &service_record,   &inform_info_record,
};

struct sa *sa_new(struct fabric *fabric, sa_send_fn *send, void *context)
{
	struct sa *sa = calloc(1, sizeof(*sa));

	if (!sa)
		return NULL;
	sa->fabric = fabric;
	sa->send = send;
	sa->context = context;
	if (groups_start(sa)) {
		sa_free(sa);
		return NULL;
	}
	return sa;
}

void sa_free(struct sa *sa)
{
	if (!sa)
		return;
	groups_free(sa);
	services_free(sa);
	subscriptions_free(sa);
	free(sa->by_guid);
	free(sa);
}

void sa_forget(struct sa *sa)
{
	while (sa->groups)
		group_remove(sa, sa->groups);
	services_free(sa);
	subscriptions_free(sa);
	groups_start(sa); /* on OOM there is no group */
}

static unsigned int look_up(struct sa_request *request)
{
	request->type->walk(request);
	if (!request->status && !request->table && request->count == 0)
		return SA_NO_RECORDS;
	return request->status;
}

static void class_port_info(struct sa_request *request)
{
	memset(request->record, 0, MAD_BYTES - SA_HEADER);
	mad_set_field(request->record, 0, IB_CPI_BASEVER_F, 1);
	mad_set_field(request->record, 0, IB_CPI_CLASSVER_F, CLASS_VERSION);
	mad_set_field(request->record, 0, IB_CPI_CAPMASK_F,
		      HAS_OPTIONAL_RECORDS | HAS_MULTICAST | HAS_MULTI_PATH |
			      MATCHES_CAPABILITIES);
	mad_set_field(request->record, 0, IB_CPI_CAPMASK2_F,
		      HAS_ADDITIONAL_GUIDS | HAS_FULL_PORT_INFO | HAS_EXTENDED_SPEEDS);
	mad_set_field(request->record, 0, IB_CPI_RESP_TIME_VALUE_F, RESPONSE_TIME);
}

static const struct record_type *type_of(unsigned int attribute)
{
	for (size_t i = 0; i < COUNT(types); i++)
		if (types[i]->attribute == attribute)
			return types[i];
	return NULL;
}

static unsigned int perform(struct sa_request *request, const uint8_t *message, size_t length)
{
	unsigned int attribute = mad_attribute(request->mad);
	unsigned int method = mad_method(request->mad);

	if (request->mad[0] != 1 || mad_version(request->mad) != CLASS_VERSION)
		return STATUS_BAD_VERSION;
	if (method == METHOD_MULTI && attribute == IB_SA_ATTR_MULTIPATH)
		return sa_multi_path(request, message, length);
	if (method != METHOD_GET && method != METHOD_SET && method != METHOD_GET_TABLE &&
	    method != METHOD_DELETE)
		return method == METHOD_TRACE_TABLE || method == METHOD_MULTI
			       ? STATUS_BAD_ATTRIBUTE
			       : STATUS_BAD_METHOD;
	if (attribute == CLASS_PORT_INFO && method == METHOD_GET) {
		class_port_info(request);
		return STATUS_OK;
	}
	if (attribute == INFORM_INFO && method == METHOD_SET)
		return subscribe(request);
	request->type = type_of(attribute);
	if (!request->type)
		return STATUS_BAD_ATTRIBUTE;
	if (method == METHOD_GET || method == METHOD_GET_TABLE)
		return look_up(request);
	if (method == METHOD_SET)
		return request->type->set ? request->type->set(request) : STATUS_BAD_ATTRIBUTE;
	return request->type->remove ? request->type->remove(request) : STATUS_BAD_ATTRIBUTE;
}

/* Derives the response's header from the request's. */
static void make_header(const struct sa_request *request, unsigned int status,
			uint8_t *response)
{
	unsigned int method = mad_method(request->mad);

	memcpy(response, request->mad, SA_HEADER);
	response[0] = 1;
	response[3] = (uint8_t)((method == METHOD_SET ? METHOD_GET : method) | METHOD_RESPONSE);
	put16(response + 4, status);
	memset(response + 24, 0, 12);
	put64(response + 36, 0); /* the response never has an SM_Key */
	put32(response + 44,
	      request->type ? (uint32_t)(sa_stride(request->type) / 8) << 16 : 0);
}

static uint8_t *make_response(struct sa_request *request, unsigned int status, size_t *length)
{
	size_t size = SA_HEADER;

	if (status == STATUS_OK && request->table) {
		size += request->count * sa_stride(request->type);
		if (!request->response)
			request->response = malloc(size);
		if (!request->response)
			return NULL;
		make_header(request, status, request->response);
		request->response[RMPP_VERSION] = 1;
		request->response[RMPP_TYPE] = RMPP_DATA;
		request->response[RMPP_FLAGS] = 0x1f << 3 | RMPP_ACTIVE; /* RRespTime: none */
		*length = size;
		return request->response;
	}
	if (status == STATUS_OK && request->count == 1)
		memcpy(request->record, request->response + SA_HEADER, request->type->size);
	free(request->response);
	request->response = calloc(1, MAD_BYTES);
	if (!request->response)
		return NULL;
	memcpy(request->response, request->mad, MAD_BYTES);
	make_header(request, status, request->response);
	*length = MAD_BYTES;
	return request->response;
}

uint8_t *sa_respond(struct sa *sa, uint32_t from, uint16_t from_lid, const uint8_t *request,
		    size_t request_length, size_t *length)
{
	struct sa_request asked = {
		.sa = sa,
		.fabric = sa->fabric,
		.from = from,
		.from_lid = from_lid,
	};
	unsigned int status;

	if (request_length)
		memcpy(asked.mad, request,
		       request_length < MAD_BYTES ? request_length : MAD_BYTES);
	asked.record = asked.mad + SA_HEADER;
	/* nobody responds to Send and Trap (IBA 13.4.5) */
	if (mad_class_of(asked.mad) != CLASS_SA || mad_is_response(asked.mad) ||
	    mad_method(asked.mad) == METHOD_SEND || mad_method(asked.mad) == METHOD_TRAP)
		return NULL;
	asked.mask = get64(asked.mad + 48);
	asked.trusted = get64(asked.mad + 36) != 0;
	asked.table = mad_method(asked.mad) == METHOD_GET_TABLE ||
		      mad_method(asked.mad) == METHOD_MULTI;
	status = perform(&asked, request, request_length);
	return make_response(&asked, status, length);
}
