/* SPDX-License-Identifier: BSD-2-Clause */

/* Loads a topology from a word on the command line: a generator's or the name of a file. */

#include "printable.h"
#include "topology.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_LIMIT (1U << 28) /* bytes; 200,000 nodes with their cables have about half */

int topology_fail(struct topology_error *error, int ret, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error->text, sizeof(error->text), format, arguments);
	va_end(arguments);
	make_printable(error->text);
	return ret;
}

/* Reads to the end rather than the size from fstat(): the file may be a pipe. */
static int read_all(int fd, size_t limit, char **text, size_t *length)
{
	size_t room = 0;

	for (;;) {
		ssize_t got;

		if (*length == room) {
			char *grown;

			room = room ? room * 2 : 1 << 16;
			grown = realloc(*text, room + 1);
			if (!grown)
				return -ENOMEM;
			*text = grown;
		}
		got = read(fd, *text + *length, room - *length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		*length += (size_t)got;
		(*text)[*length] = '\0';
		if (!got || memchr(*text + *length - got, 0, (size_t)got))
			return 0;
		if (*length > limit)
			return -EFBIG;
	}
}

int topology_slurp(const char *file, size_t limit, char **text, size_t *length)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	int ret;

	*text = NULL;
	*length = 0;
	if (fd < 0)
		return -errno;
	ret = read_all(fd, limit, text, length);
	close(fd);
	if (ret < 0) {
		free(*text);
		*text = NULL;
	}
	return ret;
}

/* A file name that cannot be read may also be a misspelt generator. */
static int unknown(const char *spec, int why, struct topology_error *error)
{
	char words[100];

	topology_words(words, sizeof(words));
	return topology_fail(
		error, why,
		"\"%.80s\" is neither a built-in topology (%s) nor a readable file: "
		"%s",
		spec, words, strerror(-why));
}

int topology_load(struct graph *graph, const char *spec, struct topology_error *error)
{
	int ret = topology_generate(graph, spec, error);
	size_t length;
	char *text;

	if (ret != -ENOENT)
		return ret;
	ret = topology_slurp(spec, FILE_LIMIT, &text, &length);
	if (ret)
		return unknown(spec, ret, error);
	ret = topology_read(graph, text, length, spec, error);
	free(text);
	return ret;
}
