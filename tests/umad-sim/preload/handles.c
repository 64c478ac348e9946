/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Which descriptors are devices. A device lives as long as a descriptor, or a thread that uses
 * it, refers to it. The table belongs to one process: a child of vfork() shares the memory, but
 * a descriptor that it closes stays open in the parent.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "preload.h"

#define MOST_FDS        65536
#define DEVICES_AT_ONCE 16
#define ENTRY_BYTES     80 /* of device_list(): five numbers and separators */

static _Atomic(struct device *) devices[MOST_FDS];
static atomic_int end; /* no device is at this descriptor or above */
static atomic_int owner;

/* The kernel zeroes this in a child with its own memory, but not in a child of vfork(). */
static atomic_int *inherited;

/* Released devices. Never freed, because device_get() may still read them. */
static struct device *unused;
static pthread_mutex_t unused_lock = PTHREAD_MUTEX_INITIALIZER;

/* A thread with the lock runs no signal handler, which could need the lock, too. */
static void lock_unused(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, before);
	pthread_mutex_lock(&unused_lock);
}

static void unlock_unused(const sigset_t *before)
{
	pthread_mutex_unlock(&unused_lock);
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* Allocates more devices without malloc(), because a signal handler may open one. */
static void make_devices(void)
{
	struct device *more =
		REAL(mmap)(NULL, DEVICES_AT_ONCE * sizeof(*more), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (more == MAP_FAILED)
		return;
	for (unsigned int i = 0; i < DEVICES_AT_ONCE; i++) {
		more[i].next = unused;
		unused = &more[i];
	}
}

struct device *device_new(enum device_kind kind)
{
	struct device *device;
	sigset_t before;

	lock_unused(&before);
	if (!unused)
		make_devices();
	device = unused;
	if (device)
		unused = device->next;
	unlock_unused(&before);
	if (!device)
		return NULL;
	device->kind = kind;
	device->flags = 0;
	device->number = 0;
	device->handle = 0;
	device->shared = NULL;
	pthread_mutex_init(&device->reading, NULL);
	atomic_store(&device->references, 1);
	return device;
}

struct device *device_get_any(int fd)
{
	for (;;) {
		struct device *device =
			fd >= 0 && fd < MOST_FDS ? atomic_load(&devices[fd]) : NULL;
		int references;

		if (!device)
			return NULL;
		references = atomic_load(&device->references);
		while (references > 0 &&
		       !atomic_compare_exchange_weak(&device->references, &references,
						     references + 1))
			;
		if (references > 0 && atomic_load(&devices[fd]) == device)
			return device;
		if (references > 0)
			device_put(device); /* meanwhile closed by another thread */
	}
}

struct device *device_get(int fd)
{
	struct device *device = device_get_any(fd);

	if (!device || !(device->flags & O_PATH))
		return device;
	device_put(device);
	return NULL;
}

void device_put(struct device *device)
{
	sigset_t before;

	if (atomic_fetch_sub(&device->references, 1) > 1)
		return;
	if (device->shared)
		munmap(device->shared, sizeof(struct shared));
	pthread_mutex_destroy(&device->reading);
	lock_unused(&before);
	device->next = unused;
	unused = device;
	unlock_unused(&before);
}

/* Hands the reference over to the table. */
static void enter(int fd, struct device *device)
{
	struct device *before = atomic_exchange(&devices[fd], device);
	int seen = atomic_load(&end);

	while (device && seen <= fd && !atomic_compare_exchange_weak(&end, &seen, fd + 1))
		;
	if (before)
		device_put(before);
}

int device_note(int fd, struct device *device)
{
	if (fd >= MOST_FDS)
		return -EMFILE;
	atomic_fetch_add(&device->references, 1);
	enter(fd, device);
	return 0;
}

static bool owns_table(void)
{
	if (atomic_load(&owner) == getpid())
		return true;
	if (!inherited || atomic_load(inherited))
		return false;
	device_begin_process(); /* a child of clone(), which does not call fork handlers */
	return true;
}

void device_close(int fd)
{
	if (fd >= 0 && fd < MOST_FDS && atomic_load(&devices[fd]) && owns_table())
		enter(fd, NULL);
}

void device_close_range(unsigned int first, unsigned int last)
{
	unsigned int most = (unsigned int)atomic_load(&end);

	for (unsigned int fd = first; fd <= last && fd < most; fd++)
		device_close((int)fd);
}

void device_share(int fd, int copy)
{
	struct device *device;

	if (copy >= MOST_FDS || !owns_table())
		return;
	device = device_get_any(fd);
	if (device || atomic_load(&devices[copy]))
		enter(copy, device);
}

static size_t write_entry(char entry[ENTRY_BYTES], int fd, const struct device *device)
{
	const unsigned long long numbers[] = {(unsigned int)fd, device->kind, device->number,
					      (unsigned int)device->flags, device->handle};
	const size_t count = sizeof(numbers) / sizeof(numbers[0]);
	char *text_end = entry;

	for (size_t i = 0; i < count; i++) {
		text_end = append_number(text_end, numbers[i]);
		*text_end++ = i + 1 < count ? ':' : ',';
	}
	return (size_t)(text_end - entry);
}

size_t device_list(char *text, size_t size)
{
	int most = atomic_load(&end);
	size_t length = 0, written = 0;

	for (int fd = 0; fd < most; fd++) {
		struct device *device = device_get_any(fd);
		char entry[ENTRY_BYTES];
		size_t bytes;

		if (!device)
			continue;
		if (!(REAL(fcntl)(fd, F_GETFD) & FD_CLOEXEC)) {
			bytes = write_entry(entry, fd, device);
			length += bytes;
			if (length < size) {
				memcpy(text + written, entry, bytes);
				written = length;
			}
		}
		device_put(device);
	}
	if (size)
		text[written] = '\0';
	return length ? length + 1 : 0;
}

bool owns_memory(void)
{
	return owns_table();
}

static void watch_children(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *page = REAL(mmap)(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);

	if (page == MAP_FAILED)
		return;
	if (madvise(page, size, MADV_WIPEONFORK))
		munmap(page, size);
	else
		inherited = page;
}

/* A child of fork() has its own table and only the thread that forked, so only descriptors
 * refer to devices. */
void device_begin_process(void)
{
	int most = atomic_load(&end);

	if (!inherited)
		watch_children();
	if (inherited)
		atomic_store(inherited, 1);
	atomic_store(&owner, getpid());
	pthread_mutex_init(&unused_lock, NULL);
	for (int fd = 0; fd < most; fd++) {
		struct device *device = atomic_load(&devices[fd]);

		if (device) {
			pthread_mutex_init(&device->reading, NULL);
			atomic_store(&device->references, 0);
		}
	}
	for (int fd = 0; fd < most; fd++) {
		struct device *device = atomic_load(&devices[fd]);

		if (device)
			atomic_fetch_add(&device->references, 1);
	}
}
