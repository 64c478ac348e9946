/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The account of each request and each MAD of a run. It checks what must hold in every run. The
 * first violation is kept as a sentence.
 */
#ifndef TESTS_FLOW_ACCOUNT_H
#define TESTS_FLOW_ACCOUNT_H

#include "model.h"

#define SENTENCE   200
#define MOST_HOSTS 8
/* Responses are counted for each interval of this length. */
#define INTERVAL   (10 * MS)
#define INTERVALS  4000

struct result {
	/* seconds until 99 % of the requests to living nodes have a response; 0: not yet */
	double t99;
	double tall; /* until all requests to living nodes are complete */
	double host_tall[MOST_HOSTS];
	double end; /* until all requests are complete */
	unsigned requests, transmissions;
	unsigned failed;      /* requests to living nodes */
	unsigned failed_dead; /* requests to dead or BUSY nodes */
	unsigned dropped, lost, to_dead;
	unsigned extra;   /* transmissions that nobody needed */
	unsigned crowded; /* requests that were sent while another one was at the node */
	bool aborted;
	char broken[SENTENCE]; /* what was violated */
};

void account_start(const struct fabric *fabric);
/* The figures so far. */
void account_figures(struct result *result);
void account_end(void);

/* The next request of a host: its number, which is the attribute modifier of its MADs. */
uint32_t account_submit(unsigned host, unsigned *node);
bool account_can_submit(unsigned host);
void account_complete(uint32_t request, bool responded);
unsigned account_open(unsigned host);
bool account_is_finished(void);
/* Whether all requests to living nodes are complete. */
bool account_living_are_complete(void);
/* No MAD may be written from now on. */
void account_close(void);

void account_written(struct packet *packet);
void account_read(const struct packet *packet);
void account_lost(const struct packet *packet, enum fate fate);
void account_arrived(const struct packet *packet);

void account_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *account_broken(void);
/* Responses in an interval, counted from 0. */
unsigned account_responses(unsigned interval);
unsigned account_written_in(unsigned interval);

#endif
