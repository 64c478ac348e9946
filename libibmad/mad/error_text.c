/* SPDX-License-Identifier: BSD-2-Clause */

/* How a request completed, and why a call failed, in words. */

#include "base/export.h"
#include "mad/status_text.h"

#include <infiniband/mad_errors.h>
#include <errno.h>
#include <string.h>

static const struct {
	int error;
	const char *text;
} errors[] = {
	{0, "success"},
	{EINVAL, "an argument is wrong"},
	{ECANCELED, "cancelled"},
	{ENODEV, "the device is gone"},
	{ELOOP, "redirected too often"},
	{EHOSTUNREACH, "redirected to a port to which there is no path"},
	{EOPNOTSUPP, "a request of more than one MAD was redirected"},
	{ENOMEM, "out of memory"},
	{ENXIO, "no SM is known"},
	{EBADMSG, "the response is malformed"},
	{EPROTO, "the records of the response are too short"},
};

/* "3.0 s", "12 ms" */
static void put_time(struct text *text, unsigned ms)
{
	if (ms < 1000) {
		text_uint(text, ms);
		text_string(text, " ms");
		return;
	}
	text_uint(text, ms / 1000);
	text_char(text, '.');
	text_uint(text, ms % 1000 / 100);
	text_string(text, " s");
}

static void put_no_response(struct text *text, unsigned transmissions, unsigned ms)
{
	text_string(text, "no response");
	if (!transmissions)
		return;
	text_string(text, " to ");
	text_uint(text, transmissions);
	text_string(text, transmissions == 1 ? " transmission in " : " transmissions in ");
	put_time(text, ms);
}

static void put_failure(struct text *text, const struct mad_failure *failure)
{
	int error = -failure->error;

	if (error == EIO && failure->status) {
		text_status(text, failure->mgmt_class, failure->status);
		return;
	}
	if (error == ETIMEDOUT) {
		put_no_response(text, failure->transmissions, failure->elapsed_ms);
		return;
	}
	if (error == EMSGSIZE) {
		text_string(text, failure->transmissions ? "the response is too long"
							 : "the request is too long");
		return;
	}
	if (error == EPROTONOSUPPORT) {
		text_class(text, failure->mgmt_class);
		text_string(text, ": the class is not registered on the port");
		return;
	}
	for (unsigned i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		/* the kernel says EINVAL, too */
		if (error == errors[i].error && !(error == EINVAL && failure->transmissions)) {
			text_string(text, errors[i].text);
			return;
		}
	text_string(text, "the MAD cannot be sent: ");
	text_string(text, strerror(error));
}

EXPORT const char *mad_reply_text(const struct mad_reply *reply, char *buffer, size_t size)
{
	const struct mad_failure failure = {
		.error = reply->error,
		.mgmt_class = reply->mad ? reply->mad[1] : 0,
		.status = reply->status,
		.transmissions = reply->transmissions,
		.elapsed_ms = reply->elapsed_ms,
	};
	struct text text = error_text_begin(buffer, size);

	put_failure(&text, &failure);
	return error_text_end(&text, buffer);
}

EXPORT const char *mad_last_failure_text(char *buffer, size_t size)
{
	struct text text = error_text_begin(buffer, size);

	put_failure(&text, mad_last_failure());
	return error_text_end(&text, buffer);
}
