/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The part of ibfabric-exporter that serves a text by HTTP. The text is compressed, and in
 * memory. A response has a file of its own for the text.
 */

#define _GNU_SOURCE
#include "server.h"

#include <endian.h>
#include <err.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Connections in all; a quarter of them may be of one client. */
#define CLIENTS_MOST 64
/* A connection ends after this time without progress. */
#define IDLE_SECONDS 10u
/* Descriptors of the program without its clients. */
#define OWN_FILES    24

/* the latest text; by the lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int text_file = -1;
static double text_begin, text_end;

static int next_file; /* of the text that is written */

void *or_exit(void *memory)
{
	if (!memory)
		err(1, "ibfabric-exporter");
	return memory;
}

double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

gzFile begin_text(bool is_served)
{
	gzFile text = NULL;
	int file;

	next_file =
		is_served ? memfd_create("ibfabric-exporter", MFD_CLOEXEC) : dup(STDOUT_FILENO);
	file = next_file == -1 ? -1 : dup(next_file);
	if (file != -1)
		text = gzdopen(file, is_served ? "wb1" : "wbT");
	if (text) {
		gzbuffer(text, 65536);
		return text;
	}
	warn("cannot write the metrics");
	if (file != -1)
		close(file);
	if (next_file != -1)
		close(next_file);
	return NULL;
}

bool end_text(gzFile text, double begin, double end)
{
	if (gzclose(text) != Z_OK) {
		warn("cannot write the metrics");
		close(next_file);
		return false;
	}
	pthread_mutex_lock(&lock);
	close(text_file);
	text_file = next_file;
	text_begin = begin;
	text_end = end;
	pthread_mutex_unlock(&lock);
	return true;
}

/* The latest text, to be read; -1: there is none, or it is too old. */
static int open_text(double *age)
{
	char name[32];
	int file = -1;

	pthread_mutex_lock(&lock);
	*age = now() - text_begin;
	sprintf(name, "/proc/self/fd/%d", text_file);
	if (now() < text_end)
		file = open(name, O_RDONLY | O_CLOEXEC);
	pthread_mutex_unlock(&lock);
	return file;
}

static ssize_t read_text(void *text, uint64_t position, char *to, size_t most)
{
	int size = gzread(text, to, (unsigned)most);

	(void)position;
	return size > 0 ? size : MHD_CONTENT_READER_END_OF_STREAM;
}

static void close_text(void *text)
{
	gzclose(text);
}

/* Whether an element of Accept-Encoding, "gzip;q=0.5", has the name, and its weight is not 0.
 */
static bool is_accepted(const char *element, const char *name, bool *found)
{
	size_t size = strcspn(element, " \t;,");
	const char *end = element + strcspn(element, ","), *at;

	*found = size == strlen(name) && !strncasecmp(element, name, size);
	for (at = memchr(element, ';', (size_t)(end - element)); *found && at;
	     at = memchr(at, ';', (size_t)(end - at))) {
		at += 1 + strspn(at + 1, " \t");
		if ((*at == 'q' || *at == 'Q') && at[1] == '=')
			return strtod(at + 2, NULL) > 0;
	}
	return *found;
}

/* gzip itself has precedence over "*" (RFC 9110, 12.5.3). */
static bool accepts_gzip(const char *encodings)
{
	bool any = false, found;

	while (encodings && *(encodings += strspn(encodings, " \t,"))) {
		bool accepted = is_accepted(encodings, "gzip", &found);

		if (found)
			return accepted;
		any |= is_accepted(encodings, "*", &found);
		encodings += strcspn(encodings, ",");
	}
	return any;
}

/* The response with a text, whose file it closes; NULL: there is no memory. */
static struct MHD_Response *respond_with(int file, bool compressed)
{
	struct MHD_Response *response;
	uint32_t size; /* of the text: gzip stores it at the end of the file (RFC 1952) */
	struct stat text;
	gzFile reader;

	if (fstat(file, &text) == -1 || pread(file, &size, 4, text.st_size - 4) != 4) {
		close(file);
		return NULL;
	}
	if (compressed)
		return MHD_create_response_from_fd((size_t)text.st_size, file);
	reader = gzdopen(file, "rb");
	if (!reader) {
		close(file);
		return NULL;
	}
	response = MHD_create_response_from_callback(le32toh(size), 65536, read_text, reader,
						     close_text);
	if (!response)
		gzclose(reader);
	return response;
}

/* The thread of libmicrohttpd calls this for one request after the other. */
static enum MHD_Result respond(void *arg, struct MHD_Connection *connection, const char *url,
			       const char *method, const char *version, const char *upload,
			       size_t *upload_size, void **state)
{
	bool allowed =
		!strcmp(method, MHD_HTTP_METHOD_GET) || !strcmp(method, MHD_HTTP_METHOD_HEAD);
	bool known = !strcmp(url, "/metrics");
	bool compressed = accepts_gzip(
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept-Encoding"));
	double seconds = 0;
	int file = known && allowed ? open_text(&seconds) : -1;
	struct MHD_Response *response = file != -1 ? respond_with(file, compressed) : NULL;
	unsigned status = response   ? MHD_HTTP_OK
			  : !known   ? MHD_HTTP_NOT_FOUND
			  : !allowed ? MHD_HTTP_METHOD_NOT_ALLOWED
				     : MHD_HTTP_SERVICE_UNAVAILABLE;
	enum MHD_Result result;
	char age[32];

	(void)arg, (void)version, (void)upload, (void)upload_size, (void)state;
	if (response) {
		sprintf(age, "%.0f", seconds);
		MHD_add_response_header(response, "Age", age);
		MHD_add_response_header(response, "Vary", "Accept-Encoding");
		if (compressed)
			MHD_add_response_header(response, "Content-Encoding", "gzip");
	} else {
		response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
		if (!response)
			return MHD_NO;
		if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
			MHD_add_response_header(response, "Allow", "GET, HEAD");
	}
	MHD_add_response_header(response, "Content-Type", "text/plain; version=0.0.4");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

/* A client has a descriptor for its connection, and one for the text. */
static unsigned clients_most(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= OWN_FILES + 2 * CLIENTS_MOST)
		return CLIENTS_MOST;
	return files.rlim_cur <= OWN_FILES + 2 ? 1 : (unsigned)(files.rlim_cur - OWN_FILES) / 2;
}

static struct MHD_Daemon *start_daemon(unsigned flags, const struct sockaddr *address)
{
	unsigned most = clients_most(), of_one = most < 4 ? 1 : most / 4;

	return MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | flags, 0, NULL, NULL, respond,
				NULL, MHD_OPTION_SOCK_ADDR, address,
				MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS,
				MHD_OPTION_CONNECTION_LIMIT, most,
				MHD_OPTION_PER_IP_CONNECTION_LIMIT, of_one, MHD_OPTION_END);
}

bool start_server(const char *address, const char *port)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				       .ai_flags =
					       AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV};
	struct MHD_Daemon *daemon = NULL;
	struct addrinfo *to;

	/* without an address, IPv6 and IPv4, or IPv4 if the machine has no IPv6 */
	if (!address && !getaddrinfo("::", port, &hints, &to)) {
		daemon = start_daemon(MHD_USE_DUAL_STACK, to->ai_addr);
		freeaddrinfo(to);
	}
	if (!daemon) {
		if (getaddrinfo(address ? address : "0.0.0.0", port, &hints, &to) != 0)
			return false;
		daemon = or_exit(start_daemon(to->ai_family == AF_INET6 ? MHD_USE_IPv6 : 0,
					      to->ai_addr));
		freeaddrinfo(to);
	}
	warnx("listening on port %u",
	      MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
	return true;
}
