/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The subscription at the SA: a Set of InformInfo for each filter, again and again, because an
 * SA that is restarted, or another one, has forgotten it.
 */
#ifndef LIBIBMAD_SUBSCRIPTION_H
#define LIBIBMAD_SUBSCRIPTION_H

#include "notices/notices_state.h"

/* Sends all filters to the SA, to subscribe or to end that. */
void subscription_start_round(struct mad_notices *notices, bool subscribe);
/* What is in flight ends with -ECANCELED. */
void subscription_cancel(struct mad_notices *notices);
/* Calls back with the state of the subscription, unless it is what was told last. */
void subscription_tell(struct mad_notices *notices, int error, unsigned status, unsigned sm);

#endif
