/* SPDX-License-Identifier: BSD-2-Clause */

#include "faults.h"

#include <infiniband/mad.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum fault {
	LOSE,
	TIME_OUT,
	DOUBLE,
	DELAY,
	CORRUPT,
	TRUNCATE,
	BUSY,
	REFUSE,
	REDIRECT,
	REQUEST,
	NO_FAULT,
	FAULTS
};

/* Rates per thousand packets. */
static const struct {
	const char *name;
	unsigned rate;
} faults[FAULTS] = {
	[LOSE] = {"lost", 10},
	[TIME_OUT] = {"reported as timed out", 5},
	[DOUBLE] = {"two responses", 20},
	[DELAY] = {"delayed", 200},
	[CORRUPT] = {"corrupted", 10},
	[TRUNCATE] = {"truncated", 10},
	[BUSY] = {"busy", 10},
	[REFUSE] = {"refused", 20},
	[REDIRECT] = {"redirected", 5},
	[REQUEST] = {"a request before the response", 10},
	[NO_FAULT] = {"one response", 1000},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for all below, and the delay */
static uint64_t random_state;
static unsigned counts[FAULTS];
static bool lose_everything;

static unsigned choose(unsigned count)
{
	return (unsigned)(next_random(&random_state) >> 33) % count;
}

static enum fault choose_fault(void)
{
	unsigned number = choose(1000);

	for (unsigned fault = 0; fault < NO_FAULT; fault++) {
		if (number < faults[fault].rate)
			return fault;
		number -= faults[fault].rate;
	}
	return NO_FAULT;
}

/* The request as a response; a long one continues with the first byte of data. */
static size_t make_response(const struct device_packet *packet, uint8_t mad[2 * LONGEST_ANSWER])
{
	size_t length = packet->length;
	bool table = packet->mad[3] == IB_MAD_METHOD_GET_TABLE;

	device_copy_mad(packet, mad);
	if (length > IB_MAD_SIZE)
		memcpy(mad + IB_MAD_SIZE, packet->mad + IB_MAD_SIZE, length - IB_MAD_SIZE);
	if (table && length == IB_MAD_SIZE && choose(2)) {
		length += choose(LONGEST_ANSWER);
		memset(mad + IB_MAD_SIZE, mad[IB_MAD_SIZE - 1], length - IB_MAD_SIZE);
	}
	mad[3] = mad[3] == IB_MAD_METHOD_SET ? IB_MAD_METHOD_GET_RESPONSE
					     : mad[3] | IB_MAD_RESPONSE;
	return length;
}

/* Any bit of the header; in the TID, a bit that makes the TID unknown. */
static void corrupt(uint8_t *mad)
{
	unsigned byte = choose(24);

	if (byte >= 8 && byte < 16)
		mad[12] ^= 0x80;
	else
		mad[byte] ^= (uint8_t)(1 << choose(8));
}

static void redirect(uint8_t *mad)
{
	uint8_t *info = mad + (mad[1] == IB_SA_CLASS ? IB_SA_DATA_OFFS : IB_PC_DATA_OFFS);

	mad[5] = IB_MAD_STS_REDIRECT;
	memset(info, 0, 72);
	mad_set_field(info, 0, IB_CPI_REDIRECT_LID_F, 1 + choose(1000));
}

static void ask(const struct device_packet *packet)
{
	uint8_t mad[IB_MAD_SIZE];

	device_copy_mad(packet, mad);
	mad[3] = IB_MAD_METHOD_GET;
	if (choose(2))
		mad[12] ^= 0x40;
	device_reply(packet, mad, sizeof(mad));
}

static void respond(const struct device_packet *packet, enum fault fault)
{
	uint8_t mad[2 * LONGEST_ANSWER];
	size_t length = make_response(packet, mad);

	if (fault == CORRUPT)
		corrupt(mad);
	else if (fault == BUSY || fault == REFUSE)
		mad[5] = fault == BUSY ? IB_MAD_STS_BUSY : 0x1c;
	else if (fault == REDIRECT)
		redirect(mad);
	else if (fault == TRUNCATE)
		length = choose(IB_MAD_SIZE);
	else if (fault == REQUEST)
		ask(packet);
	device_reply(packet, mad, length);
	if (fault == DOUBLE) {
		device_delay(choose(5000));
		device_reply(packet, mad, length);
	}
}

static int misbehave(const struct device_packet *packet, void *arg)
{
	enum fault fault;

	(void)arg;
	pthread_mutex_lock(&lock);
	fault = lose_everything ? LOSE : choose_fault();
	counts[fault]++;
	device_delay(fault == DELAY ? choose(3000) : 0);
	if (fault == TIME_OUT)
		device_time_out(packet);
	else if (fault != LOSE)
		respond(packet, fault);
	pthread_mutex_unlock(&lock);
	return 0;
}

void faults_start(uint64_t seed)
{
	random_state = seed | 1;
	device_on_write(misbehave, NULL);
}

void faults_lose_everything(void)
{
	pthread_mutex_lock(&lock);
	lose_everything = true;
	pthread_mutex_unlock(&lock);
}

void faults_report(void)
{
	for (unsigned fault = 0; fault < FAULTS; fault++)
		printf("%9u packets %s\n", counts[fault], faults[fault].name);
}
