/* SPDX-License-Identifier: BSD-2-Clause */

#include "ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RING_MAGIC 0x75636133 /* changes with the layout */
#define PATIENCE   10000000L  /* ns */

static struct ring *map(int fd, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

static int init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attributes;
	int error;

	error = pthread_mutexattr_init(&attributes);
	if (error)
		return -error;
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	error = pthread_mutex_init(lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
	return -error;
}

/* Sets the size of the file for good: if a program could shrink it, all processes that use the
 * ring would die. */
static int set_size(int fd, size_t bytes)
{
	if (ftruncate(fd, (off_t)bytes))
		return -1;
	return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

int ring_create(struct ring **created, size_t bytes)
{
	int fd = memfd_create("umad-capture", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct ring *ring;
	int error;

	if (fd < 0)
		return -errno;
	if (set_size(fd, sizeof(*ring) + bytes) || !(ring = map(fd, sizeof(*ring) + bytes))) {
		error = -errno;
		close(fd);
		return error;
	}
	error = init_lock(&ring->lock);
	if (error) {
		close(fd);
		return error;
	}
	ring->capacity = bytes;
	ring->magic = RING_MAGIC;
	*created = ring;
	return fd;
}

struct ring *ring_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct ring *ring = NULL;
	struct stat status;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &status) && status.st_size > (off_t)sizeof(*ring))
		ring = map(fd, (size_t)status.st_size);
	close(fd);
	if (ring && (ring->magic != RING_MAGIC ||
		     ring->capacity != (size_t)status.st_size - sizeof(*ring))) {
		munmap(ring, (size_t)status.st_size);
		return NULL;
	}
	return ring;
}

void ring_close(struct ring *ring)
{
	munmap(ring, sizeof(*ring) + (size_t)ring->capacity);
}

/* Whether the mutex call that returned this error left the ring locked. */
static bool is_locked(struct ring *ring, int error)
{
	/* the record that the dead owner was copying does not count: head is unchanged */
	if (error == EOWNERDEAD)
		error = pthread_mutex_consistent(&ring->lock);
	return error == 0;
}

static bool take_lock(struct ring *ring)
{
	struct timespec until;
	int error = pthread_mutex_trylock(&ring->lock);

	if (error == EBUSY) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += PATIENCE;
		if (until.tv_nsec >= 1000000000L) {
			until.tv_sec++;
			until.tv_nsec -= 1000000000L;
		}
		error = pthread_mutex_timedlock(&ring->lock, &until);
	}
	return is_locked(ring, error);
}

static void copy_in(struct ring *ring, uint64_t at, const void *bytes, size_t count)
{
	size_t start = (size_t)(at % ring->capacity);
	size_t first = ring->capacity - start < count ? (size_t)ring->capacity - start : count;

	memcpy(ring->data + start, bytes, first);
	memcpy(ring->data, (const uint8_t *)bytes + first, count - first);
}

static void copy_out(const struct ring *ring, uint64_t at, void *bytes, size_t count)
{
	size_t start = (size_t)(at % ring->capacity);
	size_t first = ring->capacity - start < count ? (size_t)ring->capacity - start : count;

	memcpy(bytes, ring->data + start, first);
	memcpy((uint8_t *)bytes + first, ring->data, count - first);
}

/* The size of a record with this many bytes of the MAD. */
static uint64_t record_size(uint64_t mad_bytes)
{
	return (sizeof(struct packet_record) + mad_bytes + 7) / 8 * 8;
}

/* How many bytes of the MAD go into the ring, since most MADs end with many zeros. */
static uint32_t without_zeros(const uint8_t *mad, uint32_t length)
{
	uint32_t end = length;
	uint64_t last = 0;

	while (end >= sizeof(last)) {
		memcpy(&last, mad + end - sizeof(last), sizeof(last));
		if (last)
			break;
		end -= (uint32_t)sizeof(last);
	}
	/* zeros up to the end of the record, so that old bytes of the ring do not become part
	 * of the MAD */
	end = (end + 7) & ~7U;
	return end < length ? end : length;
}

void ring_put(struct ring *ring, struct packet_record *record, const void *mad)
{
	uint32_t mad_bytes = without_zeros(mad, record->length);
	uint64_t size = record_size(mad_bytes), head, used;

	if (record_size(record->length) > ring->capacity || !take_lock(ring)) {
		atomic_fetch_add(&ring->left_out, 1);
		return;
	}
	record->size = (uint32_t)size;
	head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	used = head - atomic_load_explicit(&ring->tail, memory_order_acquire);
	if (ring->capacity - used < size) {
		atomic_fetch_add(&ring->left_out, 1);
	} else {
		copy_in(ring, head, record, sizeof(*record));
		copy_in(ring, head + sizeof(*record), mad, mad_bytes);
		atomic_store_explicit(&ring->head, head + size, memory_order_release);
	}
	pthread_mutex_unlock(&ring->lock);
}

/* The ring is shared with the programs, so it may contain anything. */
static bool is_sound(const struct ring *ring, const struct packet_record *record,
		     uint64_t available)
{
	return record->size >= sizeof(*record) && record->size % 8 == 0 &&
	       record->size <= available && record->size <= record_size(record->length) &&
	       record_size(record->length) <= ring->capacity;
}

/* An empty ring starts over at its beginning, so that only the first part of its 16 MiB is in
 * use and cached. Programs read head and tail only with the lock held. */
static void begin_again(struct ring *ring)
{
	if (!is_locked(ring, pthread_mutex_trylock(&ring->lock)))
		return;
	if (atomic_load(&ring->head) == atomic_load(&ring->tail)) {
		atomic_store(&ring->head, 0);
		atomic_store(&ring->tail, 0);
	}
	pthread_mutex_unlock(&ring->lock);
}

struct packet_record *ring_take(struct ring *ring)
{
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
	struct packet_record record, *taken;
	size_t size;

	if (head == tail) {
		if (head)
			begin_again(ring);
		return NULL;
	}
	if (head - tail >= sizeof(record) && head - tail <= ring->capacity)
		copy_out(ring, tail, &record, sizeof(record));
	else
		record.size = 0;
	if (!is_sound(ring, &record, head - tail)) {
		atomic_fetch_add(&ring->left_out, 1);
		atomic_store_explicit(&ring->tail, head, memory_order_release);
		return NULL;
	}
	size = (size_t)record_size(record.length);
	taken = malloc(size);
	if (!taken)
		return NULL; /* on OOM the ring fills up, and new packets are left out until
				memory is free */
	copy_out(ring, tail, taken, record.size);
	memset((uint8_t *)taken + record.size, 0, size - record.size);
	*taken = record;
	taken->size = (uint32_t)size;
	atomic_store_explicit(&ring->tail, tail + record.size, memory_order_release);
	return taken;
}
