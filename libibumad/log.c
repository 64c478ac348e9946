/* SPDX-License-Identifier: BSD-2-Clause */

#include "log.h"
#include "export.h"
#include "hook.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include <arpa/inet.h>

atomic_int log_debug_level;

static struct hook hook;

EXPORT void umad_set_log_hook(umad_log_fn *new_hook, void *user)
{
	hook_set(&hook, (struct hook){(void (*)(void))new_hook, user});
}

EXPORT int umad_debug(int level)
{
	if (level >= 0)
		atomic_store(&log_debug_level, level);
	return atomic_load(&log_debug_level);
}

EXPORT int umad_log(enum umad_log_level level, const char *text)
{
	int saved_errno = errno;
	struct hook call = hook_get(&hook);

	if (call.function)
		((umad_log_fn *)call.function)(level, text, call.user);
	errno = saved_errno;
	return call.function != NULL;
}

void log_message(enum umad_log_level level, const char *format, ...)
{
	int saved_errno = errno;
	char text[512], *at;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* a caller's name must not make two lines of one */
	for (at = text; *at; at++)
		if ((unsigned char)*at < ' ')
			*at = '?';

	if (!umad_log(level, text))
		fprintf(stderr, "libibumad: %s\n", text);
	errno = saved_errno;
}

EXPORT void umad_addr_dump(ib_mad_addr_t *addr)
{
	char gid[INET6_ADDRSTRLEN];

	if (!addr)
		return;
	fprintf(stderr, "lid %u qpn 0x%x qkey 0x%08x sl %u path_bits %u", be16toh(addr->lid),
		be32toh(addr->qpn), be32toh(addr->qkey), addr->sl, addr->path_bits);
	/* the old layout ends before it */
	if (umad_size() == sizeof(struct ib_user_mad))
		fprintf(stderr, " pkey_index %u", addr->pkey_index);
	fputc('\n', stderr);
	if (addr->grh_present)
		fprintf(stderr,
			"grh gid %s gid_index %u hop_limit %u traffic_class %u "
			"flow_label 0x%05x\n",
			inet_ntop(AF_INET6, addr->gid, gid, sizeof(gid)), addr->gid_index,
			addr->hop_limit, addr->traffic_class, be32toh(addr->flow_label));
}

EXPORT void umad_dump(void *umad)
{
	struct ib_user_mad *mad = umad;

	if (!mad)
		return;
	fprintf(stderr, "agent %u status %u timeout_ms %u retries %u length %u\n",
		mad->agent_id, mad->status, mad->timeout_ms, mad->retries, mad->length);
	umad_addr_dump(&mad->addr);
}
