/* SPDX-License-Identifier: BSD-2-Clause */

/* Error texts: MAD status, request completion, failed call. */

#include "base/export.h"
#include "fields/text.h"
#include "mad/layout.h"

#include <infiniband/mad_errors.h>
#include <infiniband/umad_sa.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

static struct text error_text_begin(char *buffer, size_t size)
{
	return text_begin(buffer, size < INT_MAX ? (int)size : INT_MAX);
}

/* Returns the result of the public call. */
static const char *error_text_end(struct text *text, char *buffer)
{
	text_end(text);
	return text->end ? buffer : "";
}

/* --- classes -------------------------------------------------------------------- */

static const char *const class_names[] = {
	[IB_SMI_CLASS] = "SMP",
	[IB_SA_CLASS] = "SA",
	[IB_PERFORMANCE_CLASS] = "performance management",
	[IB_BOARD_MGMT_CLASS] = "baseboard management",
	[IB_DEVICE_MGMT_CLASS] = "device management",
	[IB_CM_CLASS] = "communication management",
	[IB_SNMP_CLASS] = "SNMP tunneling",
	[IB_CC_CLASS] = "congestion control",
};

/* "SA", "vendor class 0x0a", "class 0x60". */
static void put_class(struct text *text, unsigned mgmt_class)
{
	int class = (int)(mgmt_class & 0xff);
	const char *name = NULL;

	if (class == IB_SMI_DIRECT_CLASS)
		name = "directed SMP";
	else if (class < (int)(sizeof(class_names) / sizeof(*class_names)))
		name = class_names[class];
	if (name) {
		text_string(text, name);
		return;
	}
	if (mad_is_vendor_range1(class) || mad_is_vendor_range2(class))
		text_string(text, "vendor ");
	text_string(text, "class 0x");
	text_hex(text, (unsigned)class, 2);
}

/* --- the common part (IBA 13.4.7) ----------------------------------------------- */

/* Bits 2 to 4 form a number; values without text are reserved. */
#define CODE_SHIFT 2
#define CODE_MASK  0x1c
static const char *const codes[] = {
	[IB_MAD_STS_BAD_BASE_VER_OR_CLASS >> CODE_SHIFT] =
		"base version or class version not supported",
	[IB_MAD_STS_METHOD_NOT_SUPPORTED >> CODE_SHIFT] = "method not supported",
	[IB_MAD_STS_METHOD_ATTR_NOT_SUPPORTED >> CODE_SHIFT] =
		"attribute not supported with this method",
	[IB_MAD_STS_INV_ATTR_VALUE >> CODE_SHIFT] =
		"invalid value in the attribute or its modifier",
};

#define CLASS_PART  0xff00
#define CLASS_SHIFT 8

/* --- the parts that classes define ---------------------------------------------- */

/* SubnAdm (IBA 15.2.3): a number */
static const char *const sa_codes[] = {
	[UMAD_SA_STATUS_NO_RESOURCES] = "no resources",
	[UMAD_SA_STATUS_REQ_INVALID] = "invalid request",
	[UMAD_SA_STATUS_NO_RECORDS] = "no records",
	[UMAD_SA_STATUS_TOO_MANY_RECORDS] = "too many records",
	[UMAD_SA_STATUS_INVALID_GID] = "invalid GID",
	[UMAD_SA_STATUS_INSUF_COMPS] = "insufficient components",
	[UMAD_SA_STATUS_REQ_DENIED] = "request denied",
	[UMAD_SA_STATUS_PRI_SUGGESTED] = "priority suggested",
};

/* DevMgt (IBA 16.3): bits */
static const struct {
	unsigned bit;
	const char *text;
} device_bits[] = {
	{0x0100, "no response of the I/O controller"},
	{0x0200, "no service entries"},
	{0x8000, "failure of the I/O controller"},
};

/* --- composing ------------------------------------------------------------------ */

static void put_hex(struct text *text, unsigned bits)
{
	text_string(text, "status 0x");
	text_hex(text, bits, 4);
}

/* Appends a part to a list; the first separator is empty. */
static void put_part(struct text *text, const char **separator, const char *part)
{
	text_string(text, *separator);
	text_string(text, part);
	*separator = "; ";
}

static void put_common_part(struct text *text, const char **separator, unsigned status)
{
	const char *code = codes[(status & CODE_MASK) >> CODE_SHIFT];

	if (status & IB_MAD_STS_BUSY)
		put_part(text, separator, "busy");
	if (status & IB_MAD_STS_REDIRECT)
		put_part(text, separator, "redirection required");
	status &= ~(unsigned)(IB_MAD_STS_BUSY | IB_MAD_STS_REDIRECT);
	if (code) {
		put_part(text, separator, code);
		status &= ~(unsigned)CODE_MASK;
	}
	if (status) {
		put_part(text, separator, "");
		put_hex(text, status);
	}
}

static void put_class_part(struct text *text, unsigned mgmt_class, unsigned status)
{
	unsigned code = status >> CLASS_SHIFT;
	const char *comma = "";

	put_class(text, mgmt_class);
	text_string(text, ": ");
	if (mgmt_class == IB_SA_CLASS && code < sizeof(sa_codes) / sizeof(*sa_codes)) {
		text_string(text, sa_codes[code]);
		return;
	}
	for (unsigned i = 0; i < sizeof(device_bits) / sizeof(*device_bits); i++)
		if (mgmt_class == IB_DEVICE_MGMT_CLASS && status & device_bits[i].bit) {
			text_string(text, comma);
			text_string(text, device_bits[i].text);
			status &= ~device_bits[i].bit;
			comma = ", ";
		}
	if (status) {
		text_string(text, comma);
		put_hex(text, status);
	}
}

static void put_status(struct text *text, unsigned mgmt_class, unsigned status)
{
	const char *separator = "";

	mgmt_class &= 0xff;
	if (mgmt_class == IB_SMI_DIRECT_CLASS)
		status &= ~DIRECTION;
	if (!status)
		text_string(text, "success");
	if (status & ~(unsigned)CLASS_PART)
		put_common_part(text, &separator, status & ~(unsigned)CLASS_PART);
	if (status & CLASS_PART) {
		text_string(text, separator);
		put_class_part(text, mgmt_class, status & CLASS_PART);
	}
}

EXPORT const char *mad_status_text(unsigned mgmt_class, unsigned status, char *buffer,
				   size_t size)
{
	struct text text = error_text_begin(buffer, size);

	put_status(&text, mgmt_class, status);
	return error_text_end(&text, buffer);
}

/* --- failures ------------------------------------------------------------------- */

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
	{EBUSY, "another operation of the object has not ended"},
	{EDEADLK, "called from a callback"},
	{ENOENT, "it is complete, or does not exist"},
	{ETIME, "the time limit is over"},
	{ETIMEDOUT, "the time is over"},
	{ENETDOWN, "the link of the local port is down"},
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

/* Returns false if errors[] has no text for it. */
static bool put_errno_text(struct text *text, int error)
{
	for (unsigned i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (error == errors[i].error) {
			text_string(text, errors[i].text);
			return true;
		}
	return false;
}

/* The failure of a call that is not a request. */
static void put_call_failure(struct text *text, const struct mad_failure *failure)
{
	int error = -failure->error;

	if (failure->kind == MAD_FAILURE_OPEN) {
		text_string(text, "the port cannot be opened: ");
	} else if (failure->kind == MAD_FAILURE_REGISTER) {
		put_class(text, failure->mgmt_class);
		text_string(text, ": the class cannot be registered: ");
		if (error == EADDRINUSE) {
			text_string(text, "another agent on the port has it");
			return;
		}
	} else if (put_errno_text(text, error)) {
		return;
	}
	text_string(text, strerror(error));
}

static void put_request_failure(struct text *text, const struct mad_failure *failure)
{
	int error = -failure->error;

	if (error == EIO && failure->status) {
		put_status(text, failure->mgmt_class, failure->status);
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
		put_class(text, failure->mgmt_class);
		text_string(text, ": the class is not registered on the port");
		return;
	}
	if (error == ENETDOWN) { /* an SA registration */
		text_string(text, "the local port is not active, or has no SM");
		return;
	}
	/* EINVAL after a transmission comes from the kernel */
	if (!(error == EINVAL && failure->transmissions) && put_errno_text(text, error))
		return;
	text_string(text, "the MAD cannot be sent: ");
	text_string(text, strerror(error));
}

EXPORT const char *mad_failure_text(const struct mad_failure *failure, char *buffer,
				    size_t size)
{
	struct text text = error_text_begin(buffer, size);

	if (!failure)
		failure = mad_last_failure();
	if (failure->kind == MAD_FAILURE_REQUEST)
		put_request_failure(&text, failure);
	else
		put_call_failure(&text, failure);
	return error_text_end(&text, buffer);
}
