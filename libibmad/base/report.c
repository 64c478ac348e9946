/* SPDX-License-Identifier: BSD-2-Clause */

/* Messages, hex dumps, and each thread's last failure. */

#include "base/report.h"

#include "base/export.h"

#include <infiniband/mad.h>
#include <infiniband/umad_ext.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

EXPORT int ibdebug;

static atomic_bool show_errors;

/* Writes a message, with its cause unless NULL. Preserves errno. */
__attribute__((format(printf, 5, 0))) static void write_message(
	enum umad_log_level level, const char *kind, const char *call, const char *cause,
	const char *format, va_list args)
{
	int saved_errno = errno;
	char text[512], line[640];
	size_t length;

	vsnprintf(text, sizeof(text), format, args);
	/* a line feed in a name must not start a new line */
	for (length = 0; text[length]; length++)
		if ((unsigned char)text[length] < ' ')
			text[length] = '?';
	if (cause)
		snprintf(text + length, sizeof(text) - length, ": %s", cause);
	snprintf(line, sizeof(line), "%s: %s", call, text);
	if (!umad_log(level, line))
		fprintf(stderr, "%s: [%d] %s\n", kind, getpid(), line);
	errno = saved_errno;
}

void report(const char *call, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_message(UMAD_LOG_WARNING, "ibwarn", call, NULL, format, args);
	va_end(args);
}

void report_debug(const char *call, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_message(UMAD_LOG_INFO, "ibwarn", call, NULL, format, args);
	va_end(args);
}

void report_and_exit(const char *call, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_message(UMAD_LOG_WARNING, "ibpanic", call, strerror(errno), format, args);
	va_end(args);
	exit(-1);
}

void report_not_made(const char *call, int error)
{
	if (ibdebug)
		report_debug(call, "the request cannot be made: %s", strerror(error));
}

void report_bytes(const char *what, const uint8_t *mad, int length)
{
	/* xdump() only reads */
	union {
		const uint8_t *in;
		void *out;
	} bytes = {.in = mad};

	xdump(stderr, what, bytes.out, length);
}

EXPORT void madrpc_show_errors(int set)
{
	show_errors = set != 0;
}

static bool errors_are_shown(void)
{
	return ibdebug || show_errors;
}

void report_retry(unsigned left, const uint8_t *mad)
{
	if (errors_are_shown())
		report("mad_rpc", "no response to attribute 0x%x; %u attempts are left",
		       mad[16] << 8 | mad[17], left);
}

void report_mismatch(unsigned lid, const uint8_t *mad)
{
	if (errors_are_shown())
		report("mad_rpc",
		       "a response from LID %u does not match the request with its transaction "
		       "ID: "
		       "class 0x%02x method 0x%02x attribute 0x%x",
		       lid, mad[1], mad[3], mad[16] << 8 | mad[17]);
}

void report_class(const char *call, int mgmt_class)
{
	if (errors_are_shown())
		report(call, "class 0x%02x is not registered on the port", mgmt_class & 0xff);
}

void report_class_debug(const char *call, int mgmt_class)
{
	if (ibdebug)
		report_class(call, mgmt_class);
}

void report_status(const char *call, const char *destination, unsigned status)
{
	if (errors_are_shown())
		report(call, "the response of %s has status 0x%x", destination, status);
}

void report_failure(const char *call, const char *destination, int error)
{
	report(call, "%s: %s",
	       error == ETIMEDOUT ? "no response"
	       : error == EBADMSG ? "the response is not complete"
				  : "the request cannot be made",
	       strerror(error));
	report(call, "the request to %s failed", destination);
}

/* --- bytes ---------------------------------------------------------------------- */

/* Prints 16 bytes a line, in pairs. */
EXPORT void xdump(FILE *file, const char *msg, void *p, int size)
{
	const uint8_t *bytes = p;
	int i;

	if (msg)
		fputs(msg, file);
	for (i = 0; i < size; i++) {
		fprintf(file, "%02x", bytes[i]);
		if (i % 16 == 15)
			fputc('\n', file);
		else if (i % 2)
			fputc(' ', file);
	}
	if (size > 0 && size % 16)
		fputc('\n', file);
}

/* --- the last failure ----------------------------------------------------------- */

static _Thread_local struct mad_failure last_failure;

void failure_store(const struct mad_failure *failure)
{
	last_failure = *failure;
}

int failure_of_call(int mgmt_class, int error)
{
	if (error < 0)
		last_failure = (struct mad_failure){
			.error = error,
			.mgmt_class = mgmt_class & 0xff,
			.kind = mgmt_class ? MAD_FAILURE_REQUEST : MAD_FAILURE_OTHER,
		};
	return error;
}

void failure_of_reply(const struct mad_reply *reply, int mgmt_class, unsigned method,
		      unsigned attribute)
{
	if (reply->error)
		last_failure = (struct mad_failure){
			.error = reply->error,
			.mgmt_class = mgmt_class & 0xff,
			.method = method,
			.attribute = attribute,
			.status = reply->status,
			.transmissions = reply->transmissions,
			.elapsed_ms = reply->elapsed_ms,
		};
}

void failure_refuse(int mgmt_class, int error)
{
	failure_refuse_call(MAD_FAILURE_REQUEST, mgmt_class, error);
}

void failure_refuse_call(enum mad_failure_kind kind, int mgmt_class, int error)
{
	last_failure = (struct mad_failure){
		.error = -error, .mgmt_class = mgmt_class & 0xff, .kind = kind};
	errno = error;
}

EXPORT const struct mad_failure *mad_last_failure(void)
{
	return &last_failure;
}
