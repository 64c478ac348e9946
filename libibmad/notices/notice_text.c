/* SPDX-License-Identifier: BSD-2-Clause */

/* Formats notices as a line of text. */

#include "base/export.h"
#include "fields/text.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_link.h>
#include <infiniband/mad_notice.h>
#include <arpa/inet.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

static void put_gid(struct text *text, const char *before, const uint8_t *gid)
{
	char buf[INET6_ADDRSTRLEN];

	text_string(text, before);
	text_string(text, inet_ntop(AF_INET6, gid, buf, sizeof(buf)));
}

static void put_uint(struct text *text, const char *before, uint64_t number)
{
	text_string(text, before);
	text_uint(text, number);
}

static void put_hex(struct text *text, const char *before, uint64_t number, int digits)
{
	text_string(text, before);
	text_string(text, "0x");
	text_hex(text, number, digits);
}

/* --- traps ---------------------------------------------------------------------- */

static void put_capabilities(struct text *text, const struct mad_notice *notice)
{
	static const char *const names[] = {", new node description", ", new enabled widths",
					    ", new enabled speeds", ", new SM priority"};

	put_hex(text, "capability mask ", notice->capability_mask, 8);
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (notice->changes >> i & 1)
			text_string(text, names[i]);
}

static void put_request(struct text *text, const struct mad_notice *notice)
{
	put_hex(text, "bad M_Key ", notice->key, 16);
	put_hex(text, " in a request of method ", notice->method, 2);
	put_hex(text, ", attribute ", notice->attribute, 4);
	put_hex(text, ", modifier ", notice->modifier, 8);
	if (notice->dr_slid)
		put_uint(text, ", from LID ", notice->dr_slid);
	for (unsigned i = 0; i < notice->path_length && i < sizeof(notice->path); i++)
		put_uint(text, i ? "," : ", return path ", notice->path[i]);
}

static void put_bad_key(struct text *text, const struct mad_notice *notice)
{
	text_string(text, notice->trap == 258 ? "bad Q_Key " : "bad P_Key ");
	put_hex(text, "", notice->key, notice->trap == 258 ? 8 : 4);
	put_uint(text, ", LID ", notice->lid);
	put_hex(text, " QP ", notice->qp, 1);
	put_gid(text, " GID ", notice->gid);
	put_uint(text, " to LID ", notice->lid2);
	put_hex(text, " QP ", notice->qp2, 1);
	put_gid(text, " GID ", notice->gid2);
	put_uint(text, ", SL ", notice->sl);
}

static void put_trap(struct text *text, const struct mad_notice *notice)
{
	static const char *const groups[] = {" in service", " out of service",
					     " multicast group created",
					     " multicast group deleted"};
	static const char *const links[] = {"link integrity threshold reached",
					    "excessive buffer overruns",
					    "flow control watchdog expired"};
	/* bad keys come with their own LIDs */
	bool is_bad_key = notice->trap == 257 || notice->trap == 258;

	if (!notice->generic) {
		put_hex(text, "trap of vendor ", notice->producer, 6);
		put_hex(text, ", device ", notice->trap, 4);
		put_uint(text, ": type ", notice->type);
		put_uint(text, " from LID ", notice->issuer_lid);
		return;
	}
	put_uint(text, "trap ", notice->trap);
	text_string(text, ": ");
	if (notice->details & MAD_NOTICE_SWITCH)
		put_uint(text, "switch LID ", notice->switch_lid);
	else if (notice->details & MAD_NOTICE_LID && !is_bad_key)
		put_uint(text, "LID ", notice->lid);
	if (notice->details & MAD_NOTICE_PORT_NUMBER)
		put_uint(text, " port ", notice->port);
	if (notice->details & (MAD_NOTICE_SWITCH | MAD_NOTICE_LID) && !is_bad_key)
		text_string(text, ": ");
	switch (notice->trap) {
	case 64:
	case 65:
	case 66:
	case 67:
		put_gid(text, "GID ", notice->gid);
		text_string(text, groups[notice->trap - 64]);
		break;
	case 128:
		text_string(text, "the state of a link has changed");
		break;
	case 129:
	case 130:
	case 131:
		text_string(text, links[notice->trap - 129]);
		break;
	case 144:
		put_capabilities(text, notice);
		break;
	case 145:
		put_hex(text, "system image GUID ", notice->guid, 16);
		break;
	case 256:
		put_request(text, notice);
		break;
	case 257:
	case 258:
	case 259:
		put_bad_key(text, notice);
		break;
	default:
		put_uint(text, "type ", notice->type);
		put_uint(text, " of producer ", notice->producer);
		put_uint(text, " from LID ", notice->issuer_lid);
	}
}

/* --- the port ------------------------------------------------------------------- */

static const char *state_name(unsigned state)
{
	static const char *const names[] = {"NoChange", "Down", "Init", "Armed", "Active"};

	return state < sizeof(names) / sizeof(*names) ? names[state] : "unknown";
}

static void put_change(struct text *text, const char *name, uint64_t before, uint64_t after)
{
	if (before == after)
		return;
	put_uint(text, name, before);
	put_uint(text, " to ", after);
	text_char(text, ',');
}

static void put_hex_change(struct text *text, const char *name, uint64_t before, uint64_t after)
{
	if (before == after)
		return;
	put_hex(text, name, before, 1);
	put_hex(text, " to ", after, 1);
	text_char(text, ',');
}

static void put_port(struct text *text, const struct mad_notice *notice)
{
	const struct mad_notice_port *before = &notice->before, *after = &notice->after;
	const char *changes;

	text_string(text, "local port:");
	changes = text->at;
	if (before->state != after->state) {
		text_string(text, " state ");
		text_string(text, state_name(before->state));
		text_string(text, " to ");
		text_string(text, state_name(after->state));
		text_char(text, ',');
	}
	put_change(text, " physical state ", before->physical_state, after->physical_state);
	put_change(text, " LID ", before->lid, after->lid);
	put_change(text, " LMC ", before->lmc, after->lmc);
	put_change(text, " SM LID ", before->sm_lid, after->sm_lid);
	put_change(text, " SM SL ", before->sm_sl, after->sm_sl);
	put_hex_change(text, " GID prefix ", before->gid_prefix, after->gid_prefix);
	put_hex_change(text, " capability mask ", before->capability_mask,
		       after->capability_mask);
	put_change(text, " MTU ", before->mtu, after->mtu);
	put_change(text, " width ", before->width, after->width);
	put_change(text, " speed ", before->speed, after->speed);
	/* the byte before may be outside the buffer */
	if (text->at > changes && text->at[-1] == ',')
		text->at--;
}

/* --- the subscription ----------------------------------------------------------- */

static void put_result(struct text *text, const struct mad_notice *notice, const char *good)
{
	char status[256];

	if (!notice->error) {
		text_string(text, good);
	} else if (notice->error == -EIO && notice->status) {
		text_string(text, mad_status_text(IB_SA_CLASS, notice->status, status,
						  sizeof(status)));
	} else if (notice->error == -ENETDOWN) {
		text_string(text, "the local port is not Active, or has no SM");
	} else if (notice->error == -ETIMEDOUT) {
		text_string(text, "the SA does not respond");
	} else {
		text_string(text, strerror(-notice->error));
	}
}

EXPORT char *mad_notice_text(const struct mad_notice *notice, char *buf, size_t size)
{
	struct text text = text_begin(buf, size > INT_MAX ? INT_MAX : (int)size);
	uint64_t tenths;

	if (!notice) {
		text_end(&text);
		return buf;
	}
	switch (notice->kind) {
	case MAD_NOTICE_TRAP:
		put_trap(&text, notice);
		break;
	case MAD_NOTICE_PORT:
		put_port(&text, notice);
		break;
	case MAD_NOTICE_SUBSCRIPTION:
		text_string(&text, "subscription: ");
		put_result(&text, notice, "accepted");
		if (notice->error || !notice->gap_end_us)
			break;
		tenths = (notice->gap_end_us - notice->gap_begin_us + 99999) / 100000;
		put_uint(&text, "; reports of the last ", tenths / 10);
		put_uint(&text, ".", tenths % 10);
		text_string(&text, " s may be lost");
		break;
	case MAD_NOTICE_END:
		text_string(&text, "end: ");
		put_result(&text, notice,
			   notice->status ? "the SA did not have the subscription any more"
					  : "the subscription is undone");
		break;
	}
	text_end(&text);
	return buf;
}
