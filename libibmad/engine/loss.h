/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Whether MADs are late because a queue is full, or for a reason that has nothing to do with
 * their number: links that lose packets, nodes that are slow or dead. A full queue drops fewer
 * MADs when fewer are in flight, the others do not change. So when many are late, a trial
 * begins: the window is halved, and some of the MADs that are sent then are watched. If the
 * share of late MADs falls, a queue was full. If it does not, that share is taken for the
 * links', and the window need not be small. If most of the MADs that began the trial have a
 * response after all, nothing was full: this process did not run, or another one.
 *
 * Shares are parts of LOSS_ONE.
 */
#ifndef LIBIBMAD_LOSS_H
#define LIBIBMAD_LOSS_H

#include <stdbool.h>
#include <stdint.h>

#define LOSS_ONE 65536

struct losses {
	uint8_t period;        /* its number, not 0; a trial is a period of its own */
	bool trial;            /* this period is one */
	uint32_t sent;         /* in a trial: MADs to watch so far, */
	uint32_t planned;      /* and in all */
	uint32_t ended, late;  /* MADs of this period: all, and those that were late */
	uint32_t link_share;   /* what is late whatever the window is */
	uint32_t share_before; /* what was late before the trial, */
	uint32_t late_before;  /* and so many MADs, */
	uint32_t found_before; /* of which so many have a response after all */
	uint8_t blamed;        /* the period of these MADs; 0: they tell nothing any more */
	uint32_t responses;    /* to requests, of late: */
	uint32_t lost;         /* to requests of which an earlier MAD was lost */
	uint64_t queue, link;  /* how many late MADs were judged so, in all */
};

enum loss_verdict {
	LOSS_NOTHING, /* nothing new */
	LOSS_TRY,     /* a trial begins: halve the window */
	LOSS_QUEUE,   /* a queue was full: the trial is over */
	LOSS_LINK,    /* no queue was full: the trial is over */
};

void losses_init(struct losses *losses);
/* What was sent before tells nothing any more; a trial begins anew. */
void losses_restart(struct losses *losses);

/* A MAD is sent: the period that it belongs to, or 0. */
uint8_t losses_sent(struct losses *losses);
/* A MAD has a response, or is late. */
enum loss_verdict losses_ended(struct losses *losses, uint8_t period, bool late);

/*
 * A MAD that was late has a response after all: it was not lost. Returns true if there was no
 * reason for the trial: it ends, or its verdict that a queue was full does not hold.
 */
bool losses_found(struct losses *losses, uint8_t period);

/* A request has a response; "lost": an earlier MAD of the request was lost. */
void losses_count(struct losses *losses, bool lost);

/*
 * How many transmissions of one request the links may lose one after the other, 1 at least.
 * More than so many are less likely lost than sent to a dead node.
 */
unsigned losses_in_a_row(const struct losses *losses);

#endif
