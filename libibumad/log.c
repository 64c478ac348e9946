/* SPDX-License-Identifier: BSD-2-Clause */

/* Messages and dumps; the log and packet hooks. */

#include "log.h"
#include "export.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include <arpa/inet.h>

/* --- hooks ------------------------------------------------------------------------ */

/* A function of any type and its argument. */
struct hook {
	void (*function)(void);
	void *user;
};

/*
 * Guards the hooks with their arguments. Not held during a call, so a replaced function may be
 * called once more by another thread.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void hooks_lock(void)
{
	pthread_mutex_lock(&lock);
}

static void hooks_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* Held across fork(), since only the forking thread could release it in the child. */
static void watch_forks(void)
{
	pthread_atfork(hooks_lock, hooks_unlock, hooks_unlock);
}

static void hooks_enter(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	hooks_lock();
}

static void hook_set(struct hook *hook, struct hook value)
{
	hooks_enter();
	*hook = value;
	hooks_unlock();
}

static struct hook hook_get(const struct hook *hook)
{
	struct hook value;

	hooks_enter();
	value = *hook;
	hooks_unlock();
	return value;
}

/* --- the packet hook -------------------------------------------------------------- */

atomic_bool packet_hook_set;

static struct hook packet_hook;

EXPORT void umad_set_packet_hook(umad_packet_fn *new_hook, void *user)
{
	hook_set(&packet_hook, (struct hook){(void (*)(void))new_hook, user});
	atomic_store(&packet_hook_set, new_hook != NULL);
}

int64_t packet_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void packet_report(const struct umad_packet_info *packet)
{
	int saved_errno = errno;
	struct hook call = hook_get(&packet_hook);

	if (call.function)
		((umad_packet_fn *)call.function)(packet, call.user);
	errno = saved_errno;
}

/* --- messages --------------------------------------------------------------------- */

atomic_int log_debug_level;

static struct hook log_hook;

EXPORT void umad_set_log_hook(umad_log_fn *new_hook, void *user)
{
	hook_set(&log_hook, (struct hook){(void (*)(void))new_hook, user});
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
	struct hook call = hook_get(&log_hook);

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
	/* a line feed in a name must not make two lines */
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
	/* the old layout has no P_Key index */
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
