/* SPDX-License-Identifier: BSD-2-Clause */

/* The messages of the library; the packet hook, for the calls that send and receive. */
#ifndef LIBIBUMAD_LOG_H
#define LIBIBUMAD_LOG_H

#include <infiniband/umad_ext.h>

#include <stdatomic.h>
#include <stdbool.h>

/* Passes a line, without its end, to the log hook, or to stderr. errno does not change. */
__attribute__((format(printf, 2, 3))) void log_message(enum umad_log_level level,
						       const char *format, ...);

/* The level that umad_debug() sets. */
extern atomic_int log_debug_level;

/* Whether a message of the level is made. If not, the check costs a load and a branch. */
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

/* --- the packet hook -------------------------------------------------------------- */

extern __attribute__((visibility("hidden"))) atomic_bool packet_hook_set;

/* Whether the hook is set. Without a hook, a call costs a load and a branch more. */
static inline bool packet_wanted(void)
{
	return __builtin_expect(atomic_load_explicit(&packet_hook_set, memory_order_relaxed),
				false);
}

/* CLOCK_REALTIME in ns. errno does not change. */
int64_t packet_time(void);

/* Calls the hook, if it is still set. errno does not change. */
void packet_report(const struct umad_packet_info *packet);

#endif
