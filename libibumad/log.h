/* SPDX-License-Identifier: BSD-2-Clause */

/* The library's messages: whom they reach, the hook or stderr, is decided in log.c. */
#ifndef LIBIBUMAD_LOG_H
#define LIBIBUMAD_LOG_H

#include <infiniband/umad_ext.h>

#include <stdatomic.h>
#include <stdbool.h>

/* One line, without its end. errno stays as it is. */
__attribute__((format(printf, 2, 3))) void log_message(enum umad_log_level level,
						       const char *format, ...);

/* As umad_debug() has it. */
extern __attribute__((visibility("hidden"))) atomic_int log_debug_level;

/* Whether the message is to be made: without messages, this is a load and a branch. */
static inline bool log_wanted(enum umad_log_level level)
{
	return __builtin_expect(
		(int)level <= atomic_load_explicit(&log_debug_level, memory_order_relaxed),
		false);
}

#define log_warning(...) log_message(UMAD_LOG_WARNING, __VA_ARGS__)

#define log_info(...)                                            \
	do {                                                     \
		if (log_wanted(UMAD_LOG_INFO))                   \
			log_message(UMAD_LOG_INFO, __VA_ARGS__); \
	} while (0)

#define log_debug(...)                                            \
	do {                                                      \
		if (log_wanted(UMAD_LOG_DEBUG))                   \
			log_message(UMAD_LOG_DEBUG, __VA_ARGS__); \
	} while (0)

#endif
