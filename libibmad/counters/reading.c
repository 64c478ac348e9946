/* SPDX-License-Identifier: BSD-2-Clause */

/* Selects the attributes that a reading needs, and reads their responses. */

#include "counters/reading.h"

#include "base/export.h"
#include "port/timers.h"

#include <infiniband/mad_fields.h>
#include <errno.h>
#include <stdlib.h>

/* Codes of invalid requests in a MAD's status (IBA 13.4.7). */
enum {
	STATUS_CODE_SHIFT = 2,
	STATUS_CODE_MASK = 7,
	BAD_VERSION = 1,
	BAD_METHOD = 2,
	BAD_ATTRIBUTE = 3
};

/* --- nodes ---------------------------------------------------------------------- */

EXPORT struct mad_counters_node *mad_counters_node_create(void)
{
	struct mad_counters_node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	pthread_mutex_init(&node->lock, NULL);
	list_init(&node->waiting);
	node->users = 1;
	return node;
}

EXPORT void mad_counters_node_free(struct mad_counters_node *node)
{
	node_release(node);
}

void node_hold(struct mad_counters_node *node)
{
	if (!node)
		return;
	pthread_mutex_lock(&node->lock);
	node->users++;
	pthread_mutex_unlock(&node->lock);
}

void node_release(struct mad_counters_node *node)
{
	unsigned users;

	if (!node)
		return;
	pthread_mutex_lock(&node->lock);
	users = --node->users;
	pthread_mutex_unlock(&node->lock);
	if (users)
		return;
	pthread_mutex_destroy(&node->lock);
	free(node);
}

bool node_recall(struct mad_counters_node *node, struct abilities *abilities)
{
	bool known;

	if (!node)
		return false;
	pthread_mutex_lock(&node->lock);
	known = node->known;
	*abilities = node->abilities;
	pthread_mutex_unlock(&node->lock);
	return known;
}

void node_learn(struct mad_counters_node *node, const struct abilities *abilities)
{
	if (!node)
		return;
	pthread_mutex_lock(&node->lock);
	node->abilities.capability_mask = abilities->capability_mask;
	node->abilities.capability_mask2 = abilities->capability_mask2;
	node->known = true;
	pthread_mutex_unlock(&node->lock);
}

void node_note_refusal(struct mad_counters_node *node, enum counter_source source)
{
	if (!node)
		return;
	pthread_mutex_lock(&node->lock);
	node->abilities.refused |= (uint8_t)(1U << source);
	pthread_mutex_unlock(&node->lock);
}

/* --- readings ------------------------------------------------------------------- */

static bool is_valid(const struct mad_counters_options *options)
{
	for (size_t i = 0; i < sizeof(options->reserved) / sizeof(options->reserved[0]); i++)
		if (options->reserved[i])
			return false;
	return options->timeout_ms >= 0 &&
	       (!options->counters || options->counters & MAD_COUNTERS_ALL);
}

bool reading_is_valid(const ib_portid_t *dport, unsigned port_number,
		      const struct mad_counters_options *options)
{
	return dport && IB_LID_VALID(dport->lid) && port_number <= UINT8_MAX &&
	       (!options || is_valid(options));
}

void reading_init(struct reading *reading, unsigned port_number,
		  const struct mad_counters_options *options)
{
	*reading = (struct reading){.port = (uint8_t)port_number};
	if (options)
		reading->options = (struct reading_options){
			.counters = options->counters,
			.node = options->node,
			.timeout_ms = options->timeout_ms,
			.basic = options->basic,
		};
	if (!reading->options.counters)
		reading->options.counters = MAD_COUNTERS_DEFAULT;
}

bool reading_needs_class_port_info(const struct reading *reading)
{
	return !reading->options.basic || reading->port == MAD_COUNTERS_ALL_PORTS;
}

ib_rpc_t reading_request(const struct reading *reading, unsigned attribute, uint8_t *data)
{
	memset(data, 0, IB_PC_DATA_SZ);
	if (attribute != CLASS_PORT_INFO)
		mad_set_field(data, 0, IB_PC_PORT_SELECT_F, reading->port);
	return (ib_rpc_t){
		.mgtclass = IB_PERFORMANCE_CLASS,
		.method = IB_MAD_METHOD_GET,
		.attr.id = attribute,
		.dataoffs = IB_PC_DATA_OFFS,
		.datasz = IB_PC_DATA_SZ,
		.timeout = reading->options.timeout_ms,
	};
}

struct mad_outcome outcome_of(const struct mad_reply *reply)
{
	return (struct mad_outcome){
		.error = reply->error,
		.status = reply->status,
		.data = reply->data,
		.size = reply->data_size,
	};
}

bool outcome_is_refusal(const struct mad_outcome *outcome)
{
	unsigned code = outcome->status >> STATUS_CODE_SHIFT & STATUS_CODE_MASK;

	return outcome->error == -EIO &&
	       (code == BAD_VERSION || code == BAD_METHOD || code == BAD_ATTRIBUTE);
}

/* Stores the status of a request. Returns its error; -EBADMSG if the response is too short. */
static int judge(struct reading *reading, const struct mad_outcome *outcome)
{
	reading->requests++;
	if (outcome->error == -EIO)
		reading->status = outcome->status;
	if (outcome->error)
		return outcome->error;
	return outcome->size < IB_PC_DATA_SZ ? -EBADMSG : 0;
}

int reading_take_class_port_info(struct reading *reading, const struct mad_outcome *outcome)
{
	int error = judge(reading, outcome);

	if (outcome_is_refusal(outcome)) {
		/* the node has only PortCounters then, which each node has */
		reading->status = 0;
		return 0;
	}
	if (error)
		return error;
	reading->abilities.capability_mask = mad_read_field(outcome->data, 0, IB_CPI_CAPMASK_F);
	reading->abilities.capability_mask2 =
		mad_read_field(outcome->data, 0, IB_CPI_CAPMASK2_F);
	return 0;
}

uint64_t reading_wanted(const struct reading *reading, enum counter_source source)
{
	const struct abilities *abilities = &reading->abilities;

	if ((reading->asked | abilities->refused) >> source & 1 ||
	    (reading->options.basic && source == SOURCE_EXTENDED))
		return 0;
	return counter_source_offers(source, abilities->capability_mask,
				     abilities->capability_mask2) &
	       reading->options.counters & ~reading->present;
}

int reading_next(const struct reading *reading, int *error)
{
	*error = 0;
	if (reading->port == MAD_COUNTERS_ALL_PORTS &&
	    !(reading->abilities.capability_mask & MAD_PMA_ALL_PORT_SELECT)) {
		*error = -EOPNOTSUPP;
		return -1;
	}
	for (int source = 0; source < COUNTER_SOURCES; source++)
		if (reading_wanted(reading, (enum counter_source)source))
			return source;
	if (!reading->present)
		*error = -EOPNOTSUPP;
	return -1;
}

bool reading_note_refusal(struct reading *reading, enum counter_source source,
			  const struct mad_outcome *outcome)
{
	/* each node has PortCounters: an error has another cause */
	if (source == SOURCE_BASIC || !outcome_is_refusal(outcome))
		return false;
	reading->status = 0;
	reading->abilities.refused |= (uint8_t)(1U << source);
	node_note_refusal(reading->options.node, source);
	return true;
}

int reading_take(struct reading *reading, enum counter_source source,
		 const struct mad_outcome *outcome)
{
	uint64_t wanted = reading_wanted(reading, source);
	int error = judge(reading, outcome);

	reading->asked |= (uint8_t)(1U << source);
	if (reading_note_refusal(reading, source, outcome))
		return 0;
	if (error)
		return error;
	reading->counters->time_us = (uint64_t)clock_us();
	reading->counters->response_us[source] = reading->counters->time_us;
	if (mad_read_field(outcome->data, 0, IB_PC_PORT_SELECT_F) != reading->port)
		reading->counters->odd |= MAD_COUNTERS_ODD_PORT;
	counter_source_read(source, outcome->data, wanted, reading->counters);
	reading->present = reading->counters->present;
	return 0;
}

void reading_complete(struct reading *reading)
{
	struct mad_counters *counters = reading->counters;

	counters->port = reading->port;
	counters->requests = reading->requests;
	counters->status = reading->status;
	counters->capability_mask = reading->abilities.capability_mask;
	counters->capability_mask2 = reading->abilities.capability_mask2;
	/* the attribute was requested because ClassPortInfo has it */
	if (reading->abilities.refused & 1U << SOURCE_EXTENDED)
		counters->odd |= MAD_COUNTERS_ODD_CAPABILITY;
}
