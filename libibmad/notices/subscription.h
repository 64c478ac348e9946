/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The subscription at the SA. A round is a Set of InformInfo for each filter. The rounds are
 * repeated, because a restarted SA, or another SA, does not know the subscription.
 */
#ifndef LIBIBMAD_SUBSCRIPTION_H
#define LIBIBMAD_SUBSCRIPTION_H

#include "notices/notices_state.h"

/* Begins a round, which subscribes or ends the subscription. */
void subscription_start_round(struct mad_notices *notices, bool subscribe);
/* The requests in flight complete with -ECANCELED. */
void subscription_cancel(struct mad_notices *notices);
/* Calls the program back with the state of the subscription, if the state has changed. */
void subscription_tell(struct mad_notices *notices, int error, unsigned status, unsigned sm);

#endif
