/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The part of fabric-metrics that serves a text by HTTP. The text is compressed, and in memory.
 * A response has a file of its own for the text.
 */

#define _GNU_SOURCE
#include "fabric-metrics-server.h"

#include <err.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* the latest text; by the lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int text_file = -1;
static double text_begin, text_end;

static int next_file; /* of the text that is written */

void *or_exit(void *memory)
{
	if (!memory)
		err(1, "fabric-metrics");
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
	gzFile text;

	next_file =
		is_served ? memfd_create("fabric-metrics", MFD_CLOEXEC) : dup(STDOUT_FILENO);
	text = or_exit(gzdopen(dup(next_file), is_served ? "wb1" : "wbT"));
	gzbuffer(text, 65536);
	return text;
}

void end_text(gzFile text, double begin, double end)
{
	if (gzclose(text) != Z_OK)
		or_exit(NULL);
	pthread_mutex_lock(&lock);
	close(text_file);
	text_file = next_file;
	text_begin = begin;
	text_end = end;
	pthread_mutex_unlock(&lock);
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

/* The thread of libmicrohttpd calls this for one request after the other. */
static enum MHD_Result respond(void *arg, struct MHD_Connection *connection, const char *url,
			       const char *method, const char *version, const char *upload,
			       size_t *upload_size, void **state)
{
	const char *accepted =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept-Encoding");
	bool known = !strcmp(url, "/metrics");
	double seconds = 0;
	int file = known ? open_text(&seconds) : -1;
	unsigned status = file != -1 ? MHD_HTTP_OK
			  : known    ? MHD_HTTP_SERVICE_UNAVAILABLE
				     : MHD_HTTP_NOT_FOUND;
	bool compressed = file != -1 && accepted && strstr(accepted, "gzip");
	struct MHD_Response *response;
	enum MHD_Result result;
	struct stat text;
	char age[32];

	(void)arg, (void)method, (void)version, (void)upload, (void)upload_size, (void)state;
	if (file == -1)
		file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (compressed && !fstat(file, &text))
		response = MHD_create_response_from_fd((size_t)text.st_size, file);
	else
		response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 65536, read_text,
							     or_exit(gzdopen(file, "rb")),
							     close_text);
	or_exit(response);
	sprintf(age, "%.0f", seconds);
	MHD_add_response_header(response, "Age", age);
	MHD_add_response_header(response, "Content-Type", "text/plain; version=0.0.4");
	if (compressed)
		MHD_add_response_header(response, "Content-Encoding", "gzip");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

bool start_server(const char *address, const char *port)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				       .ai_flags =
					       AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV};
	struct MHD_Daemon *daemon;
	struct addrinfo *to;

	if (getaddrinfo(address, port, &hints, &to) != 0)
		return false;
	daemon =
		or_exit(MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD |
						 (to->ai_family == AF_INET6 ? MHD_USE_IPv6 : 0),
					 0, NULL, NULL, respond, NULL, MHD_OPTION_SOCK_ADDR,
					 to->ai_addr, MHD_OPTION_CONNECTION_TIMEOUT, 60u,
					 MHD_OPTION_CONNECTION_LIMIT, 64u, MHD_OPTION_END));
	freeaddrinfo(to);
	warnx("port %u", MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
	return true;
}
