/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * anonymous [NAMES]: copies a report from stdin to stdout without names and GUIDs. A hash
 * replaces each of them, so that equal names stay equal. The key of the hash is random, is
 * never written, and is lost when this process ends: nobody can find names by trial.
 *
 * - "text in quotation marks" becomes name-HASH
 * - a GUID, GID, IPv6 or MAC address becomes guid-HASH: 0x and more than 8 digits, 16 digits,
 *   or groups of digits between colons
 * - in lines that begin with "|", which other programs wrote, a line of the file NAMES becomes
 *   name-HASH
 */
#include <ctype.h>
#include <err.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static uint64_t key[2];
static char **names;
static size_t name_count;

static uint64_t rotated(uint64_t word, unsigned bits)
{
	return word << bits | word >> (64 - bits);
}

static void mix(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotated(v[1], 13) ^ v[0];
	v[3] = rotated(v[3], 16) ^ v[2];
	v[0] = rotated(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotated(v[1], 17) ^ v[2];
	v[3] = rotated(v[3], 21) ^ v[0];
	v[2] = rotated(v[2], 32);
}

/* SipHash-2-4, a keyed hash. */
static uint64_t hash(const char *text, size_t size)
{
	uint64_t v[4] = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
			 key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
	size_t done = 0;

	do {
		uint64_t word = 0;
		size_t part = size - done < 8 ? size - done : 8;

		for (size_t i = 0; i < part; i++)
			word |= (uint64_t)(uint8_t)text[done + i] << 8 * i;
		done += part;
		if (part < 8)
			word |= (uint64_t)size << 56;
		v[3] ^= word;
		mix(v);
		mix(v);
		v[0] ^= word;
		if (part < 8)
			break;
	} while (true);
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		mix(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static void print_hash(const char *kind, const char *text, size_t size)
{
	printf("%s-%08x", kind, (unsigned)(hash(text, size) & 0xffffffff));
}

/* The same GUID has the same hash in every notation. */
static void print_guid(const char *text, size_t size)
{
	char digits[64];
	size_t count = 0;

	for (size_t i = 0; i < size && count < sizeof(digits); i++)
		if (isxdigit((unsigned char)text[i]) && (count || text[i] != '0'))
			digits[count++] = (char)tolower((unsigned char)text[i]);
	print_hash("guid", digits, count);
}

static size_t hex_digits(const char *text)
{
	size_t count = 0;

	while (isxdigit((unsigned char)text[count]))
		count++;
	return count;
}

/* The length of a GUID or address at the beginning of a text, or 0. */
static size_t guid_length(const char *text)
{
	size_t digits, length = 0, groups = 0;
	bool gap = false;

	if (text[0] == '0' && tolower((unsigned char)text[1]) == 'x') {
		digits = hex_digits(text + 2);
		return digits > 8 ? digits + 2 : 0;
	}
	digits = hex_digits(text);
	if (digits >= 16)
		return digits;
	while (hex_digits(text + length) <= 4 &&
	       (hex_digits(text + length) || text[length] == ':')) {
		groups += hex_digits(text + length) != 0;
		length += hex_digits(text + length);
		if (text[length] != ':')
			break;
		gap |= text[length + 1] == ':';
		length++;
	}
	/* a time of day has three groups */
	return groups >= 4 || (gap && groups >= 2) ? length : 0;
}

/* The length of a known name at the beginning of a text, or 0; the longest one. */
static size_t name_length(const char *text)
{
	size_t longest = 0;

	for (size_t i = 0; i < name_count; i++) {
		size_t length = strlen(names[i]);

		if (length > longest && !strncmp(text, names[i], length) &&
		    !isalnum((unsigned char)text[length]))
			longest = length;
	}
	return longest;
}

static void copy_line(const char *line)
{
	bool foreign = line[0] == '|', in_word = false;

	while (*line) {
		const char *end = *line == '"' ? strchr(line + 1, '"') : NULL;
		size_t length;

		if (end) {
			print_hash("name", line + 1, (size_t)(end - line - 1));
			line = end + 1;
		} else if (!in_word && foreign && (length = name_length(line))) {
			print_hash("name", line, length);
			line += length;
		} else if (!in_word && (length = guid_length(line))) {
			print_guid(line, length);
			line += length;
		} else {
			in_word = isalnum((unsigned char)*line) != 0;
			putchar(*line++);
			continue;
		}
		in_word = false;
	}
}

static char *read_line(FILE *file)
{
	static char *line;
	static size_t size;
	ssize_t length = getline(&line, &size, file);

	return length < 0 ? NULL : line;
}

static void read_names(const char *path)
{
	FILE *file = fopen(path, "r");
	char *line;

	if (!file)
		err(1, "%s", path);
	while ((line = read_line(file))) {
		line[strcspn(line, "\n")] = '\0';
		if (!*line)
			continue;
		names = realloc(names, (name_count + 1) * sizeof(*names));
		if (!names || !(names[name_count++] = strdup(line)))
			err(1, "names");
	}
	fclose(file);
}

int main(int argc, char **argv)
{
	char *line;

	if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
		err(1, "getrandom");
	if (argc > 1)
		read_names(argv[1]);
	while ((line = read_line(stdin)))
		copy_line(line);
	return ferror(stdin) || fflush(stdout) || ferror(stdout);
}
