/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Stories: events and what is expected after them, as lists of steps, "WORD N-M TEXT; ...".
 * Each program has its own words. The story is printed if a step fails.
 */
#ifndef TESTS_MACHINE_STORY_H
#define TESTS_MACHINE_STORY_H

#include "test.h"

struct step {
	char word[16];
	unsigned first, last; /* without M, last is first; without numbers, both are 0 */
	const char *text;     /* behind the word */
	const char *rest;     /* behind the numbers */
};

static void play_step(const struct step *step);

static inline bool is(const struct step *step, const char *word)
{
	return !strcmp(step->word, word);
}

static inline void play(const char *story)
{
	for (const char *at = story; *at; at += strspn(at, "; ")) {
		int length = (int)strcspn(at, ";"), word_end = 0, end = 0, first = 0;
		struct step step = {.first = 0};
		char text[300];

		snprintf(text, sizeof(text), "%.*s", length, at);
		sscanf(text, "%15s %n%i%n-%u%n", step.word, &word_end, &first, &end, &step.last,
		       &end);
		step.first = (unsigned)first;
		if (step.last < step.first)
			step.last = step.first;
		step.text = text + word_end;
		step.rest = text + end + (text[end] == ' ');
		print_message("%s\n", text);
		play_step(&step);
		at += length;
	}
}

/* Appends " NAME N" to a text; nothing if N is 0. */
static inline char *put_count(char *at, const char *name, uint64_t count)
{
	return count ? at + sprintf(at, " %s %u", name, (unsigned)count) : at;
}

/* A row of stories; TEST_ROWS(play_story, stories). */
struct story {
	const char *behaviour, *steps;
};

static inline void play_story(const struct story *story)
{
	play(story->steps);
}

#endif
