/* SPDX-License-Identifier: BSD-2-Clause */

/* The messages of libibumad's log between two calls: their number, and the last one. */
#ifndef TESTS_UNIT_KEPT_LOG_H
#define TESTS_UNIT_KEPT_LOG_H

#include <infiniband/umad_ext.h>
#include <errno.h>
#include <stdio.h>

static struct {
	int count;
	enum umad_log_level level;
	char text[1024];
	void *user;
} kept;

/* A hook may change errno. */
static inline void keep_message(enum umad_log_level level, const char *text, void *user)
{
	kept.count++;
	kept.level = level;
	kept.user = user;
	snprintf(kept.text, sizeof(kept.text), "%s", text);
	errno = EXDEV;
}

/* Begins to keep messages, at this level of umad_debug(). */
static inline void keep_log(int level)
{
	kept.count = 0;
	kept.text[0] = '\0';
	umad_set_log_hook(keep_message, NULL);
	umad_debug(level);
}

static inline void end_log(void)
{
	umad_debug(0);
	umad_set_log_hook(NULL, NULL);
}

#endif
