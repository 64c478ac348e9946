/* SPDX-License-Identifier: BSD-2-Clause */

#include "soak.h"
#include "../heap_in_use.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <time.h>

#define MOST_OPEN 4096u /* a power of 2 */
#define MOST_LIDS 1024

/*
 * The data of a request of the vendor's class: the nonce, the size and the sum of all data that
 * follow, in the machine's byte order.
 */
#define HEADER 24

enum result {
	OK,
	STATUS,
	TIMEOUT,
	CANCELLED,
	GONE,
	OTHER,
	RESULTS
};

static struct {
	pthread_mutex_t lock;
	struct slot {
		uintptr_t generation;
		bool open;
		enum request_kind kind;
		int lid;
		uint64_t nonce, begun;
	} slots[MOST_OPEN];
	unsigned next;
	unsigned open;
	unsigned long begun, ended, results[RESULTS], late, wrong;
	unsigned errors[256]; /* the errors of OTHER */
	uint64_t guids[MOST_LIDS];
	FILE *file;
	uint64_t start;
} record = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct record_counts counts;

/* The libraries of sanitizers have their own malloc(). */
extern size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

/* --- failures ------------------------------------------------------------------- */

static void __attribute__((format(printf, 1, 0))) wrong_locked(const char *text, va_list args)
{
	record.wrong++;
	if (record.wrong > 100)
		return;
	fprintf(stderr, "%s: WRONG: ", options.name);
	vfprintf(stderr, text, args);
	fputc('\n', stderr);
}

static void __attribute__((format(printf, 1, 2))) wrong(const char *text, ...)
{
	va_list args;

	va_start(args, text);
	wrong_locked(text, args);
	va_end(args);
}

void record_wrong(const char *text, ...)
{
	va_list args;

	va_start(args, text);
	pthread_mutex_lock(&record.lock);
	wrong_locked(text, args);
	pthread_mutex_unlock(&record.lock);
	va_end(args);
}

/* --- requests ------------------------------------------------------------------- */

static uint64_t sum_of(const uint8_t *data, size_t size)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < size; i++)
		sum = (sum ^ data[i]) * UINT64_C(0x100000001b3);
	return sum;
}

static void fill(struct request *request, uint64_t *random)
{
	uint64_t size = request->size, sum;

	memcpy(request->data, &request->nonce, 8);
	memcpy(request->data + 8, &size, 8);
	for (size_t i = HEADER; i < request->size; i += 8) {
		uint64_t word = random_next(random);

		memcpy(request->data + i, &word, request->size - i < 8 ? request->size - i : 8);
	}
	sum = sum_of(request->data + HEADER, request->size - HEADER);
	memcpy(request->data + 16, &sum, 8);
}

static enum request_kind random_kind(uint64_t *random)
{
	static const enum request_kind kinds[] = {
		REQUEST_NODE_INFO, REQUEST_NODE_INFO, REQUEST_NODE_INFO, REQUEST_ROUTE,
		REQUEST_COUNTERS,  REQUEST_COUNTERS,  REQUEST_PATHS,     REQUEST_NODES,
		REQUEST_VENDOR,    REQUEST_VENDOR,    REQUEST_VENDOR,    REQUEST_LONG,
	};
	const unsigned count = sizeof(kinds) / sizeof(kinds[0]);

	/* the last destinations are of the vendor's class */
	if (!options.lids)
		return kinds[count - 4 + random_below(random, 4)];
	return kinds[random_below(random, count)];
}

void request_make(struct request *request, uint64_t *random)
{
	static const ib_rpc_t rpcs[REQUEST_KINDS] = {
		[REQUEST_NODE_INFO] = {.mgtclass = IB_SMI_CLASS,
				       .attr.id = IB_ATTR_NODE_INFO,
				       .dataoffs = IB_SMP_DATA_OFFS,
				       .datasz = IB_SMP_DATA_SIZE},
		[REQUEST_ROUTE] = {.mgtclass = IB_SMI_DIRECT_CLASS,
				   .attr.id = IB_ATTR_NODE_INFO,
				   .dataoffs = IB_SMP_DATA_OFFS,
				   .datasz = IB_SMP_DATA_SIZE},
		[REQUEST_COUNTERS] = {.mgtclass = IB_PERFORMANCE_CLASS,
				      .attr.id = IB_GSI_PORT_COUNTERS,
				      .dataoffs = IB_PC_DATA_OFFS,
				      .datasz = IB_PC_DATA_SZ},
		[REQUEST_VENDOR] = {.mgtclass = CLASS,
				    .attr.id = 0x10,
				    .oui = OUI,
				    .dataoffs = DATA,
				    .datasz = IB_VENDOR_RANGE2_DATA_SIZE},
		[REQUEST_LONG] = {.mgtclass = CLASS,
				  .attr.id = 0x11,
				  .oui = OUI,
				  .dataoffs = DATA,
				  .datasz = IB_VENDOR_RANGE2_DATA_SIZE},
	};

	memset(request, 0, offsetof(struct request, data));
	request->kind = random_kind(random);
	request->rpc = rpcs[request->kind];
	request->rpc.method = IB_MAD_METHOD_GET;
	request->nonce = random_next(random);
	if (request->kind == REQUEST_VENDOR || request->kind == REQUEST_LONG) {
		request->to = options.servers[random_below(random, options.server_count)];
		request->size = request->kind == REQUEST_VENDOR
					? HEADER + random_below(random, 216 - HEADER + 1)
					: 217 + random_below(random, LONGEST - 217 + 1);
		fill(request, random);
	} else if (request->kind != REQUEST_ROUTE) {
		request->to.lid = 1 + (int)random_below(random, options.lids);
	}
	if (request->kind == REQUEST_COUNTERS)
		request->data[1] = 1; /* PortSelect */
	if (request->kind == REQUEST_COUNTERS)
		request->size = 8;
	request->query = (struct mad_sa_query){.attribute = IB_SA_ATTR_NODERECORD};
	if (request->kind == REQUEST_PATHS) {
		memset(request->record, 0, sizeof(request->record));
		mad_set_field(request->record, 0, IB_SA_PR_DLID_F, (uint32_t)request->to.lid);
		mad_set_field(request->record, 0, IB_SA_PR_SLID_F,
			      1 + random_below(random, options.lids));
		mad_set_field(request->record, 0, IB_SA_PR_NPATH_F, 1);
		request->query = (struct mad_sa_query){
			.attribute = IB_SA_ATTR_PATHRECORD,
			.component_mask = 1 << 4 | 1 << 5 | 1 << 12, /* DLID, SLID, NumbPath */
			.record = request->record,
			.record_size = sizeof(request->record),
		};
	}
}

/* --- begin and end -------------------------------------------------------------- */

uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

token_t record_begin(const struct request *request)
{
	token_t token = 0;
	struct slot *slot;

	pthread_mutex_lock(&record.lock);
	if (record.open < MOST_OPEN) {
		do {
			record.next = (record.next + 1) % MOST_OPEN;
			slot = &record.slots[record.next];
		} while (slot->open);
		slot->generation++;
		slot->open = true;
		slot->kind = request->kind;
		slot->lid = request->to.lid;
		slot->nonce = request->nonce;
		slot->begun = now_ms();
		record.open++;
		record.begun++;
		token = slot->generation * MOST_OPEN + record.next;
	}
	pthread_mutex_unlock(&record.lock);
	return token;
}

static enum result result_of(int error)
{
	switch (error) {
	case 0:
		return OK;
	case -EIO:
		return STATUS;
	case -ETIMEDOUT:
		return TIMEOUT;
	case -ECANCELED:
		return CANCELLED;
	case -ENODEV:
	case -ENETDOWN: /* the port has no SM */
		return GONE;
	default:
		return OTHER;
	}
}

/* Whether a response has the data of its request. */
static void check_data(const struct slot *slot, const uint8_t *data, size_t size)
{
	uint64_t nonce, length, sum, guid;

	if (slot->kind == REQUEST_VENDOR || slot->kind == REQUEST_LONG) {
		if (size < HEADER) {
			wrong("a response of %zu bytes", size);
			return;
		}
		memcpy(&nonce, data, 8);
		memcpy(&length, data + 8, 8);
		memcpy(&sum, data + 16, 8);
		if (length < HEADER || length > size ||
		    sum != sum_of(data + HEADER, (size_t)length - HEADER))
			wrong("a response of kind %d, %zu bytes, is spoilt", slot->kind, size);
		else if (nonce != slot->nonce)
			wrong("a response belongs to another request");
	}
	if (slot->kind == REQUEST_NODE_INFO && slot->lid < MOST_LIDS) {
		guid = mad_get_field64((void *)(uintptr_t)data, 0, IB_NODE_GUID_F);
		if (!record.guids[slot->lid])
			record.guids[slot->lid] = guid;
		if (record.guids[slot->lid] != guid)
			wrong("LID %d has GUID 0x%llx instead of 0x%llx", slot->lid,
			      (unsigned long long)guid,
			      (unsigned long long)record.guids[slot->lid]);
	}
}

static void end(token_t token, int error, const uint8_t *data, size_t size, unsigned elapsed)
{
	struct slot *slot = &record.slots[token % MOST_OPEN];
	enum result result = result_of(error);

	if (!slot->open || slot->generation != token / MOST_OPEN) {
		wrong("a request of kind %d is completed twice, with %d", slot->kind, error);
		return;
	}
	slot->open = false;
	record.open--;
	record.ended++;
	record.results[result]++;
	if (result == OTHER)
		record.errors[-error & 255]++;
	/*
	 * the limit: some faults cause retransmissions of the engine, and a machine may be slow
	 */
	if (elapsed > 2 * options.timeout_ms * ATTEMPTS + 1000)
		record.late++;
	if (data)
		check_data(slot, data, size);
}

void record_end(token_t token, int error, const uint8_t *data, size_t size, unsigned elapsed)
{
	pthread_mutex_lock(&record.lock);
	end(token, error, data, size, elapsed);
	pthread_mutex_unlock(&record.lock);
}

void record_refused(token_t token, int error)
{
	record_end(token, error, NULL, 0, 0);
}

/* --- lines ---------------------------------------------------------------------- */

static long allocated(void)
{
	if (__sanitizer_get_current_allocated_bytes)
		return (long)__sanitizer_get_current_allocated_bytes();
	return (long)heap_in_use();
}

static long status_value(const char *name)
{
	FILE *file = fopen("/proc/self/status", "r");
	size_t length = strlen(name);
	char line[256];
	long value = 0;

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, length) && line[length] == ':')
			value = strtol(line + length + 1, NULL, 10);
	if (file)
		fclose(file);
	return value;
}

static unsigned open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;
	struct dirent *entry;

	if (!folder)
		return 0;
	while ((entry = readdir(folder)))
		count += entry->d_name[0] != '.';
	closedir(folder);
	return count - 1; /* without the folder's own descriptor */
}

void record_open_file(void)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s.lines", options.folder, options.name);
	record.file = fopen(path, "w");
	if (!record.file) {
		perror(path);
		exit(2);
	}
	record.start = now_ms();
}

void record_line(unsigned rest, bool at_rest)
{
	long rss = status_value("VmRSS"), anonymous = status_value("RssAnon");
	long threads = status_value("Threads");
	unsigned descriptors = open_descriptors();
	long heap = allocated();

	pthread_mutex_lock(&record.lock);
	if (at_rest && record.open)
		wrong("%u requests have not been completed", record.open);
	fprintf(record.file, "%s\t%u\t%s\t%ld\t%ld\t%ld\t%u\t%ld\t%lu\t%lu", options.name, rest,
		at_rest ? "rest" : "work", rss, anonymous, heap, descriptors, threads,
		record.begun, record.ended);
	for (int i = 0; i < RESULTS; i++)
		fprintf(record.file, "\t%lu", record.results[i]);
	fprintf(record.file, "\t%lu\t%lu\t%lu\t%lu\t%lu\t%lu\t%lu\t%lu\n", record.late,
		record.wrong, counts.restarts, counts.served, counts.notices, counts.events,
		counts.packets, counts.children);
	fflush(record.file);
	pthread_mutex_unlock(&record.lock);
}

bool record_close(void)
{
	for (int i = 0; i < 256; i++)
		if (record.errors[i])
			printf("%s: %u requests: %s\n", options.name, record.errors[i],
			       strerror(i));
	fclose(record.file);
	return !record.wrong;
}
