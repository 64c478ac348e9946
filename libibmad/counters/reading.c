/* SPDX-License-Identifier: BSD-2-Clause */

/* Selects the attributes that a reading needs, and reads their responses. */

#include "counters/reading.h"

#include "base/export.h"
#include "base/report.h"
#include "base/reserved.h"
#include "engine/timers.h"

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

	if (!node) {
		failure_refuse_call(MAD_FAILURE_OTHER, 0, ENOMEM);
		return NULL;
	}
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
	node->abilities.refused |= (uint16_t)(1U << source);
	pthread_mutex_unlock(&node->lock);
}

/* --- readings ------------------------------------------------------------------- */

#define ALL_GROUPS ((1U << (ALL_SOURCES - COUNTER_SOURCES)) - 1)

static bool is_valid(const struct mad_counters_options *options)
{
	if (!is_reserved(options->reserved))
		return false;
	if (options->details & ~ALL_GROUPS || (options->details && !options->details_to))
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
			.details_to = options->details_to,
			.details_size = options->details_size,
		};
	if (options)
		reading->groups = options->details;
	if (!reading->options.counters && !reading->groups)
		reading->options.counters = MAD_COUNTERS_DEFAULT;
}

bool reading_needs_class_port_info(const struct reading *reading)
{
	return (reading->options.counters && !reading->options.basic) ||
	       reading->port == MAD_COUNTERS_ALL_PORTS;
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

/* Whether the node does not have the attribute. */
static bool is_refusal(const struct mad_outcome *outcome)
{
	unsigned code = outcome->failure.status >> STATUS_CODE_SHIFT & STATUS_CODE_MASK;

	return outcome->failure.error == -EIO &&
	       (code == BAD_VERSION || code == BAD_METHOD || code == BAD_ATTRIBUTE);
}

/* Stores the status of a request. Returns its error; -EBADMSG if the response is too short. */
static int judge(struct reading *reading, const struct mad_outcome *outcome)
{
	reading->requests++;
	reading->failure = outcome->failure;
	if (outcome->failure.error == -EIO)
		reading->status = outcome->failure.status;
	if (outcome->failure.error)
		return outcome->failure.error;
	return outcome->size < IB_PC_DATA_SZ ? -EBADMSG : 0;
}

int counters_fail(int error)
{
	if (error < 0)
		failure_store(&(struct mad_failure){.error = error,
						    .mgmt_class = IB_PERFORMANCE_CLASS,
						    .kind = error == -EPROTONOSUPPORT
								    ? MAD_FAILURE_REQUEST
								    : MAD_FAILURE_OTHER});
	return error;
}

int reading_fail(const struct reading *reading, int error)
{
	if (error && reading->failure.error == error)
		failure_store(&reading->failure);
	else
		counters_fail(error);
	return error;
}

int reading_take_class_port_info(struct reading *reading, const struct mad_outcome *outcome)
{
	int error = judge(reading, outcome);

	if (is_refusal(outcome)) {
		/* the node has only PortCounters then, which each node has */
		reading->status = 0;
		return 0;
	}
	if (error)
		return error;
	reading->abilities.capability_mask =
		(uint32_t)mad_read_field(outcome->data, 0, IB_CPI_CAPMASK_F);
	reading->abilities.capability_mask2 =
		(uint32_t)mad_read_field(outcome->data, 0, IB_CPI_CAPMASK2_F);
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
	unsigned done = reading->asked | reading->abilities.refused;

	*error = 0;
	if (reading->port == MAD_COUNTERS_ALL_PORTS &&
	    !(reading->abilities.capability_mask & MAD_PMA_ALL_PORT_SELECT)) {
		*error = -EOPNOTSUPP;
		return -1;
	}
	for (int source = 0; source < COUNTER_SOURCES; source++)
		if (reading_wanted(reading, (enum counter_source)source))
			return source;
	for (int source = COUNTER_SOURCES; source < ALL_SOURCES; source++)
		if (reading->groups >> (source - COUNTER_SOURCES) & 1 && !(done >> source & 1))
			return source;
	if (!reading->present && !(reading->details && reading->details->present))
		*error = -EOPNOTSUPP;
	return -1;
}

bool reading_note_refusal(struct reading *reading, enum counter_source source,
			  const struct mad_outcome *outcome)
{
	/* each node has PortCounters: an error has another cause */
	if (source == SOURCE_BASIC || !is_refusal(outcome))
		return false;
	reading->status = 0;
	reading->abilities.refused |= (uint16_t)(1U << source);
	node_note_refusal(reading->options.node, source);
	return true;
}

int reading_take(struct reading *reading, enum counter_source source,
		 const struct mad_outcome *outcome)
{
	struct mad_counters *counters = reading->counters;
	uint64_t wanted = 0;
	int error;

	if (source < COUNTER_SOURCES)
		wanted = reading_wanted(reading, source);
	error = judge(reading, outcome);
	reading->asked |= (uint16_t)(1U << source);
	if (reading_note_refusal(reading, source, outcome))
		return 0;
	if (error)
		return error;
	if (source >= COUNTER_SOURCES) {
		details_read(source, outcome->data, reading->details);
		reading->details->time_us = (uint64_t)clock_us();
		return 0;
	}
	counters->time_us = (uint64_t)clock_us();
	counters->response_us[source] = counters->time_us;
	if (mad_read_field(outcome->data, 0, IB_PC_PORT_SELECT_F) != reading->port)
		counters->odd |= MAD_COUNTERS_ODD_PORT;
	counter_source_read(source, outcome->data, wanted, counters);
	reading->present = counters->present;
	return 0;
}

void reading_complete(struct reading *reading)
{
	struct mad_counters *counters = reading->counters;
	size_t size = reading->options.details_size;

	counters->size = sizeof(*counters);
	counters->port = reading->port;
	counters->requests = reading->requests;
	counters->status = reading->status;
	counters->capability_mask = reading->abilities.capability_mask;
	counters->capability_mask2 = reading->abilities.capability_mask2;
	/* the attribute was requested because ClassPortInfo has it */
	if (reading->abilities.refused & 1U << SOURCE_EXTENDED)
		counters->odd |= MAD_COUNTERS_ODD_CAPABILITY;
	if (!reading->details)
		return;
	reading->details->port = reading->port;
	memset(reading->options.details_to, 0, size);
	memcpy(reading->options.details_to, reading->details,
	       size < sizeof(*reading->details) ? size : sizeof(*reading->details));
}
