/* SPDX-License-Identifier: BSD-2-Clause */

/* Converts addresses to and from text. */

#include "base/export.h"
#include "base/report.h"
#include "fields/text.h"
#include "mad/packet.h"

#include <infiniband/mad.h>
#include <ctype.h>
#include <errno.h>

/* Last index of a route's array. */
#define LAST_HOP (IB_SUBNET_PATH_HOPS_MAX - 1)

static void put_route(struct text *text, const ib_dr_path_t *path)
{
	int i, count = path->cnt < LAST_HOP ? path->cnt : LAST_HOP;

	text_string(text, "slid ");
	text_uint(text, path->drslid);
	text_string(text, "; dlid ");
	text_uint(text, path->drdlid);
	text_string(text, "; ");
	text_uint(text, path->p[0]);
	for (i = 1; i <= count; i++) {
		text_char(text, ',');
		text_uint(text, path->p[i]);
	}
}

EXPORT char *drpath2str(ib_dr_path_t *path, char *dstr, size_t dstr_size)
{
	struct text text = text_begin(dstr, dstr_size < INT32_MAX ? (int)dstr_size : INT32_MAX);

	put_route(&text, path);
	text_end(&text);
	return dstr;
}

void address_print(const ib_portid_t *portid, char *buf, int size)
{
	struct text text = text_begin(buf, size);
	char gid[INET6_ADDRSTRLEN];

	if (portid->lid > 0) {
		text_string(&text, "Lid ");
		text_int(&text, portid->lid);
		if (portid->grh_present) {
			text_string(&text, " Gid ");
			text_string(&text, inet_ntop(AF_INET6, portid->gid, gid, sizeof(gid)));
		}
		if (portid->drpath.cnt)
			text_char(&text, ' ');
	}
	if (portid->lid <= 0 || portid->drpath.cnt) {
		text_string(&text, "DR path ");
		put_route(&text, &portid->drpath);
	}
	text_end(&text);
}

EXPORT char *portid2str(ib_portid_t *portid)
{
	static _Thread_local char buf[ADDRESS_TEXT_MAX];

	address_print(portid, buf, sizeof(buf));
	return buf;
}

EXPORT int portid2portnum(ib_portid_t *portid)
{
	if (portid->lid > 0 || portid->drpath.cnt < 0 || portid->drpath.cnt > LAST_HOP)
		return -1;
	return portid->drpath.cnt ? portid->drpath.p[portid->drpath.cnt - 1] : 0;
}

static const char *skip_blanks(const char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	return text;
}

/* Parses a port number, blanks allowed around it, and advances *text; -1 if invalid. */
static int parse_port(const char **text)
{
	int number = 0, digits = 0;

	*text = skip_blanks(*text);
	while (**text >= '0' && **text <= '9') {
		number = number * 10 + *(*text)++ - '0';
		digits++;
		if (number > UINT8_MAX)
			return -1;
	}
	*text = skip_blanks(*text);
	return digits ? number : -1;
}

static int parse_route(ib_dr_path_t *path, const char *text)
{
	int port;

	path->cnt = -1;
	path->p[0] = 0;
	do {
		port = text ? parse_port(&text) : -1;
		if (port < 0 || path->cnt == LAST_HOP || (*text && *text != ',')) {
			memset(path->p, 0, sizeof(path->p));
			path->cnt = 0;
			failure_refuse_call(MAD_FAILURE_OTHER, 0, EINVAL);
			return -1;
		}
		path->p[++path->cnt] = (uint8_t)port;
		/* a trailing comma is allowed */
	} while (*text && *++text);
	return path->cnt;
}

EXPORT int str2drpath(ib_dr_path_t *path, char *routepath, int drslid, int drdlid)
{
	int hops;

	path->drslid = (uint16_t)(drslid ? drslid : 0xffff);
	path->drdlid = (uint16_t)(drdlid ? drdlid : 0xffff);
	hops = parse_route(path, routepath);
	if (ibdebug && hops < 0)
		report_debug("str2drpath", "\"%s\" is no route", routepath ? routepath : "");
	else if (ibdebug)
		report_debug("str2drpath", "\"%s\" has %d hop%s", routepath, hops,
			     hops == 1 ? "" : "s");
	return hops;
}
