/* SPDX-License-Identifier: BSD-2-Clause */

#include "log.h"
#include "export.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include <arpa/inet.h>

static atomic_int debug_level;

/* Guards the hook and its argument, which belong together; never held while it is called. */
static pthread_mutex_t hook_lock = PTHREAD_MUTEX_INITIALIZER;
static umad_log_fn *hook;
static void *hook_user;

static void unlock_hook(void)
{
	pthread_mutex_unlock(&hook_lock);
}

/* The lock is nobody else's across a fork: in the child, nobody else could give it back. */
static void lock_hook(void)
{
	pthread_mutex_lock(&hook_lock);
}

static void watch_forks(void)
{
	pthread_atfork(lock_hook, unlock_hook, unlock_hook);
}

static void take_hook(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	lock_hook();
}

EXPORT void umad_set_log_hook(umad_log_fn *new_hook, void *user)
{
	take_hook();
	hook = new_hook;
	hook_user = user;
	unlock_hook();
}

EXPORT int umad_debug(int level)
{
	if (level >= 0)
		atomic_store(&debug_level, level);
	return atomic_load(&debug_level);
}

int log_wanted(enum umad_log_level level)
{
	return (int)level <= atomic_load_explicit(&debug_level, memory_order_relaxed);
}

EXPORT int umad_log(enum umad_log_level level, const char *text)
{
	int saved_errno = errno;
	umad_log_fn *call;
	void *user;

	take_hook();
	call = hook;
	user = hook_user;
	unlock_hook();

	if (call)
		call(level, text, user);
	errno = saved_errno;
	return call != NULL;
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
