/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/loss.h"

/* Fewer late MADs than these may be chance... */
#define FEW           5
/* ...and fewer than these are, even if they are a large share. */
#define SOME          3
/* A smaller share than this is no reason to act, */
#define SMALL_SHARE   (LOSS_ONE / 256)
/* and this one beyond the links' share is in any case. */
#define LARGE_SHARE   (LOSS_ONE / 8)
/* In a trial, so many would have to be late if the share was the same, */
#define EXPECTED      8
/* of so many at least and at most. */
#define WATCHED       16
#define WATCHED_MAX   512
/* What the links lose is measured anew after so many MADs. */
#define PERIOD        1024
/* The share of lost requests is that of about so many. */
#define RECENT        1024
/* A row of losses that is less likely than this is none. */
#define UNLIKELY      1
#define MOST_IN_A_ROW 32

/* "all" is not 0. */
static uint32_t share_of(uint32_t part, uint32_t all)
{
	return (uint32_t)((uint64_t)part * LOSS_ONE / all);
}

/* --- periods -------------------------------------------------------------------- */

void losses_restart(struct losses *losses)
{
	losses->period = losses->period == UINT8_MAX ? 1 : (uint8_t)(losses->period + 1);
	losses->sent = losses->ended = losses->late = 0;
}

void losses_init(struct losses *losses)
{
	*losses = (struct losses){0};
	losses_restart(losses);
}

uint8_t losses_sent(struct losses *losses)
{
	if (losses->trial && losses->sent == losses->planned)
		return 0;
	losses->sent++;
	return losses->period;
}

/* What is not too many is the links'. */
static enum loss_verdict end_period(struct losses *losses)
{
	losses->link += losses->late;
	losses->link_share = (losses->link_share + share_of(losses->late, losses->ended)) / 2;
	losses->ended = losses->late = 0;
	return LOSS_NOTHING;
}

/* --- trials --------------------------------------------------------------------- */

/* Whether it is far more than the links lose, or more by three standard deviations. */
static bool is_too_many(const struct losses *losses)
{
	uint64_t expected = (uint64_t)losses->ended * losses->link_share / LOSS_ONE;
	uint64_t beyond = losses->late > expected ? losses->late - expected : 0;

	if (losses->late < SOME || share_of(losses->late, losses->ended) < SMALL_SHARE)
		return false;
	if (beyond * LOSS_ONE > (losses->ended - expected) * LARGE_SHARE)
		return beyond * beyond > expected;
	return losses->late >= FEW && beyond * beyond > 9 * expected;
}

static enum loss_verdict begin_trial(struct losses *losses)
{
	losses->trial = true;
	losses->share_before = share_of(losses->late, losses->ended);
	losses->planned = EXPECTED * LOSS_ONE / losses->share_before;
	if (losses->planned < WATCHED)
		losses->planned = WATCHED;
	if (losses->planned > WATCHED_MAX)
		losses->planned = WATCHED_MAX;
	losses->late_before = losses->late;
	losses->found_before = 0;
	losses->blamed = losses->period;
	losses_restart(losses);
	return LOSS_TRY;
}

static enum loss_verdict end_trial(struct losses *losses)
{
	uint32_t share = share_of(losses->late, losses->ended);
	/* one late MAD may be chance; its share is always less than half of the share before */
	bool link = share >= losses->share_before / 2;

	losses->trial = false;
	if (link) {
		losses->link += losses->late + losses->late_before;
		losses->link_share = share;
		losses->blamed = 0;
	} else {
		losses->queue += losses->late + losses->late_before;
	}
	losses_restart(losses);
	return link ? LOSS_LINK : LOSS_QUEUE;
}

enum loss_verdict losses_ended(struct losses *losses, uint8_t period, bool late)
{
	if (period != losses->period)
		return LOSS_NOTHING;
	losses->ended++;
	losses->late += late;
	if (losses->trial)
		return losses->ended == losses->planned ? end_trial(losses) : LOSS_NOTHING;
	if (late && is_too_many(losses))
		return begin_trial(losses);
	if (losses->ended < PERIOD)
		return LOSS_NOTHING;
	/* a queue may be full now, or have been full during the trial, too */
	if (share_of(losses->late, losses->ended) > SMALL_SHARE)
		return begin_trial(losses);
	return end_period(losses);
}

bool losses_found(struct losses *losses, uint8_t period)
{
	if (period == losses->period && losses->late)
		losses->late--;
	if (period != losses->blamed || !period ||
	    4 * ++losses->found_before < 3 * losses->late_before)
		return false;
	losses->blamed = 0;
	if (!losses->trial) {
		losses->queue -= losses->late_before;
	} else {
		losses->trial = false;
		losses_restart(losses);
	}
	return true;
}

/* --- rows of losses ------------------------------------------------------------- */

void losses_count(struct losses *losses, bool lost)
{
	losses->responses++;
	losses->lost += lost;
	if (losses->responses >= 2 * RECENT) {
		losses->responses /= 2;
		losses->lost /= 2;
	}
}

unsigned losses_in_a_row(const struct losses *losses)
{
	unsigned count = 1;
	uint64_t likely;
	uint32_t share;

	if (losses->lost < SOME)
		return 1;
	share = share_of(losses->lost, losses->responses);
	if (share < losses->link_share)
		share = losses->link_share;
	for (likely = share; likely > UNLIKELY && count < MOST_IN_A_ROW; count++)
		likely = likely * share / LOSS_ONE;
	return count;
}
