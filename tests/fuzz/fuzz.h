/* SPDX-License-Identifier: BSD-2-Clause */

/* What fuzz targets share. Beyond the end of the input all bytes are zero. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <infiniband/umad_ext.h>

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct input {
	const uint8_t *data;
	size_t size;
};

static inline void take_bytes(struct input *input, void *bytes, size_t size)
{
	size_t there = size < input->size ? size : input->size;

	memset(bytes, 0, size);
	if (there)
		memcpy(bytes, input->data, there);
	input->data += there;
	input->size -= there;
}

/* A number of up to 8 bytes. */
static inline uint64_t take(struct input *input, size_t size)
{
	uint64_t number = 0;

	take_bytes(input, &number, size);
	return le64toh(number);
}

/* A condition that must hold for every input. */
static inline void check(int holds)
{
	if (!holds)
		abort();
}

/* Reads each byte: a sanitizer reports those outside of the allocation. */
static inline void read_all(const void *bytes, size_t size)
{
	for (const volatile uint8_t *at = bytes; size--; at++)
		(void)*at;
}

/* The input as a text. */
static inline char *take_text(struct input *input)
{
	char *text = malloc(input->size + 1);

	text[input->size] = '\0';
	if (input->size)
		memcpy(text, input->data, input->size);
	return text;
}

static inline void ignore_message(enum umad_log_level level, const char *text, void *user)
{
	(void)level;
	(void)text;
	(void)user;
}

/* The messages about a fuzzer's requests would only take time. */
__attribute__((constructor)) static void be_quiet(void)
{
	umad_set_log_hook(ignore_message, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
