/* SPDX-License-Identifier: BSD-2-Clause */

/* The library's messages: whom they reach, the hook or stderr, is decided in log.c. */
#ifndef LIBIBUMAD_LOG_H
#define LIBIBUMAD_LOG_H

#include <infiniband/umad_ext.h>

/* One line, without its end. errno stays as it is. */
__attribute__((format(printf, 2, 3))) void log_message(enum umad_log_level level,
						       const char *format, ...);

/* Whether anybody wants to know; asked first, so that silence costs a load. */
int log_wanted(enum umad_log_level level);

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
