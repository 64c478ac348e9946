/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * hostile SEED ROUNDS: uses /dev/sim_hca as no umad-sim does. Each round makes a device with
 * wrong or random replies, wrong messages, random packets, and closes it at any time. The
 * kernel must not warn; nothing may hang. Prints the round that it is in.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hca_protocol.h"

#define MESSAGES 2048 /* the longest one */
#define MAD_AT   (8 + 12 + 8)
#define GRH      40
#define IDLE_MS  40

/* how the replies of a round are wrong: bits of a random number */
enum {
	RANDOM_DATA = 1,
	MANY_PKEYS = 2,
	NO_PKEYS = 4,
	SOME_ERRORS = 8,
	TWICE = 16,
	ALL_WAYS = 32
};

static unsigned int below(unsigned int limit)
{
	return (unsigned int)rand() % limit;
}

static void scramble(uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)below(256);
}

/* The module may refuse anything, but only with these errors. */
static void write_bytes(int fd, const void *bytes, size_t length)
{
	if (write(fd, bytes, length) < 0 && errno != EINVAL && errno != ENODEV &&
	    errno != EBUSY) {
		perror("hostile: write");
		exit(1);
	}
}

static void say(int fd, uint32_t kind, uint32_t port, uint32_t id, const void *data,
		uint32_t length)
{
	uint8_t bytes[sizeof(struct sim_hca_message) + MESSAGES];
	struct sim_hca_message message = {
		.kind = kind, .port = port, .id = id, .length = length};

	memcpy(bytes, &message, sizeof(message));
	memcpy(bytes + sizeof(message), data, length);
	write_bytes(fd, bytes, sizeof(message) + length);
}

static void reply(int fd, const struct sim_hca_message *message,
		  const struct sim_hca_command *command, unsigned int how)
{
	struct sim_hca_reply answer = {.responds = 1};
	uint8_t *data = answer.data + 64;
	uint8_t attribute = command->data[17];

	memcpy(answer.data, command->data, sizeof(answer.data));
	answer.data[3] |= 0x80;
	if (how & RANDOM_DATA)
		scramble(data, 64);
	if (attribute == 0x11 && !(how & RANDOM_DATA)) { /* NodeInfo: PartitionCap */
		memset(data + 28, how & MANY_PKEYS ? 255 : 0, 2);
		if (!(how & (MANY_PKEYS | NO_PKEYS)))
			data[29] = 128;
	}
	if (attribute == 0x15 && !(how & RANDOM_DATA)) /* PortInfo: GUIDCap */
		data[50] = how & NO_PKEYS ? 0 : 8;
	if (how & SOME_ERRORS && below(8) == 0)
		answer.status = EIO;
	for (int i = 0; i < (how & TWICE ? 2 : 1); i++)
		say(fd, SIM_HCA_REPLY, message->port, message->id, &answer, sizeof(answer));
}

/* Reads and replies until nothing comes. Returns whether the device was created. */
static bool serve(int fd, unsigned int rounds, unsigned int how)
{
	static uint8_t bytes[32768];
	bool created = false;
	int idle = 0;

	while (rounds-- > 0 && idle < 3) {
		struct pollfd pollfd = {.fd = fd, .events = POLLIN};
		ssize_t length, at = 0;

		if (poll(&pollfd, 1, IDLE_MS) <= 0) {
			if (created)
				break;
			idle++;
			continue;
		}
		length = read(fd, bytes, sizeof(bytes));
		while (at < length) {
			struct sim_hca_message message;
			struct sim_hca_command command;

			memcpy(&message, bytes + at, sizeof(message));
			if (message.kind == SIM_HCA_CREATED)
				created = message.id == 0;
			if (message.kind == SIM_HCA_COMMAND) {
				memcpy(&command, bytes + at + sizeof(message), sizeof(command));
				reply(fd, &message, &command, how);
			}
			at += (ssize_t)(sizeof(message) + message.length);
		}
	}
	return created;
}

/* A packet of random bytes; half of them have headers that lead to a queue pair. */
static uint32_t make_packet(uint8_t packet[MESSAGES])
{
	static const uint8_t classes[] = {0x01, 0x81, 0x03, 0x04, 0x07, 0x09, 0x30, 0x21};
	static const uint8_t methods[] = {0x01, 0x02, 0x81, 0x05, 0x07, 0x12, 0x92, 0x06};
	bool grh = below(2);
	uint32_t length = MAD_AT + 256 + (grh ? GRH : 0);
	uint8_t *bth = packet + 8 + (grh ? GRH : 0);
	uint8_t *mad = packet + MAD_AT + (grh ? GRH : 0);

	scramble(packet, 400);
	if (below(2))
		return below(400);
	packet[1] = (uint8_t)((packet[1] & 0xfc) | (grh ? 3 : 2));
	bth[0] = 0x64;
	memset(bth + 5, 0, 2);
	bth[7] = (uint8_t)below(2);
	if (below(4))
		memcpy(bth + 12, "\x80\x01\x00\x00", 4);
	mad[0] = 1;
	mad[1] = classes[below(sizeof(classes))];
	mad[2] = (uint8_t)(1 + below(2));
	mad[3] = methods[below(sizeof(methods))];
	if (below(2)) { /* a short directed route */
		mad[6] = (uint8_t)below(5);
		mad[7] = (uint8_t)below(5);
	}
	return length;
}

static void play(int round)
{
	int fd = open(SIM_HCA_DEVICE, O_RDWR | O_NONBLOCK);
	struct sim_hca_create create = {
		.version = SIM_HCA_VERSION, .port_count = 1 + below(3), .node_guid = 1};
	unsigned int how = below(ALL_WAYS);
	uint8_t bytes[MESSAGES];

	if (fd < 0) {
		perror("hostile: " SIM_HCA_DEVICE);
		exit(1);
	}
	scramble(bytes, sizeof(bytes));
	for (int i = 0; i < 50; i++) {
		write_bytes(fd, bytes, below(sizeof(bytes)));
		say(fd, below(9), below(4), below(9), bytes, below(512));
	}
	snprintf(create.name, sizeof(create.name), "bad%d", round);
	if (round % 5 == 4)
		create.name[0] = "%/."[below(3)];
	if (round % 5 == 3)
		memset(create.name, 'x', sizeof(create.name)); /* no end */
	for (int i = 0; i < 2; i++)
		say(fd, SIM_HCA_CREATE, 0, 0, &create, sizeof(create));
	/* else it is closed while the kernel registers it */
	if (below(4) && serve(fd, below(3) ? 5000 : below(100), how))
		for (int i = 0; i < 1500; i++) {
			uint32_t length = make_packet(bytes);

			say(fd, below(20) ? SIM_HCA_PACKET : below(9), below(4), below(9),
			    bytes, length);
			if (i % 100 == 99)
				serve(fd, 3, how);
		}
	close(fd);
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 0;

	if (argc != 3) {
		fputs("usage: hostile SEED ROUNDS\n", stderr);
		return 2;
	}
	srand((unsigned int)atoi(argv[1]));
	for (int round = 0; round < rounds; round++) {
		printf("round %d\n", round);
		fflush(stdout);
		play(round);
	}
	return 0;
}
