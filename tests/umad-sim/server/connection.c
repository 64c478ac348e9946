/* SPDX-License-Identifier: BSD-2-Clause */

/* Connections of programs: packets to and from umad handles, and who holds an issm device. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "links.h"
#include "server.h"
#include "sma.h"
#include "traps.h"

#define BATCH    64
#define MOST_FDS 8 /* descriptors with a packet, which must be closed */

static void watch(const struct connection *connection, int operation, uint32_t events)
{
	struct epoll_event event = {.events = events,
				    .data.ptr = (void *)(uintptr_t)connection};

	epoll_ctl(connection->server->epoll, operation, connection->fd, &event);
}

struct connection *connection_add(struct server *server, int fd)
{
	struct connection *connection = calloc(1, sizeof(*connection));

	if (!connection)
		return NULL;
	connection->server = server;
	connection->fd = fd;
	connection->next = server->connections;
	if (connection->next)
		connection->next->previous = connection;
	server->connections = connection;
	watch(connection, EPOLL_CTL_ADD, EPOLLIN);
	return connection;
}

/* connections_settle() looks at these only: there may be thousands of connections. */
static void make_pending(struct connection *connection)
{
	if (connection->pending)
		return;
	connection->pending = true;
	connection->pending_next = connection->server->pending;
	connection->server->pending = connection;
}

static struct connection **bucket_of(struct server *server, uint64_t key)
{
	return &server->by_key[key % KEY_BUCKETS];
}

struct connection *connection_by_key(struct server *server, uint64_t key)
{
	struct connection *connection = *bucket_of(server, key);

	while (connection && connection->key != key)
		connection = connection->key_next;
	return connection;
}

static void enter_key(struct connection *connection)
{
	struct connection **bucket;

	connection->key = ++connection->server->next_key;
	bucket = bucket_of(connection->server, connection->key);
	connection->key_next = *bucket;
	*bucket = connection;
}

static void remove_key(struct connection *connection)
{
	struct connection **link = bucket_of(connection->server, connection->key);

	while (*link != connection)
		link = &(*link)->key_next;
	*link = connection->key_next;
}

void connection_wait_for_room(struct connection *connection, bool wait)
{
	if (connection->waiting != wait)
		watch(connection, EPOLL_CTL_MOD, wait ? EPOLLIN | EPOLLOUT : EPOLLIN);
	connection->waiting = wait;
}

bool issm_is_held(const struct server *server, const struct host_port *host)
{
	if (server->fabric.sm_port == host->port)
		return true;
	for (struct connection *other = server->connections; other; other = other->next)
		if (other->kind == CONNECTION_ISSM && other->host == host && !other->waiting &&
		    !other->closed)
			return true;
	return false;
}

static void store_is_sm(struct fabric *fabric, uint32_t port, bool on)
{
	struct port *state = &fabric->ports[port];

	state->capability_mask =
		on ? state->capability_mask | IS_SM : state->capability_mask & ~(uint32_t)IS_SM;
	port_changed(fabric, port);
}

static void set_is_sm(struct fabric *fabric, uint32_t port, bool on)
{
	store_is_sm(fabric, port, on);
	trap_capability(fabric, port);
}

/* The byte after the reply stays in the program's socket, so that poll() always finds an issm
 * device ready. */
static void reply_with_issm(struct connection *connection)
{
	struct reply reply = {0};

	connection_reply(connection, &reply, NULL, -1);
	send(connection->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void connection_become_issm(struct connection *connection, struct host_port *host)
{
	struct server *server = connection->server;

	connection->kind = CONNECTION_ISSM;
	connection->host = host;
	connection->order = ++server->next_key;
	connection->waiting = true;
	if (issm_is_held(server, host))
		return;
	connection->waiting = false;
	set_is_sm(&server->fabric, host->port, true);
	reply_with_issm(connection);
}

/* Gives an issm device to the connection that has waited longest. */
static void pass_issm_on(struct server *server, struct host_port *host)
{
	struct connection *first = NULL;

	for (struct connection *other = server->connections; other; other = other->next)
		if (other->kind == CONNECTION_ISSM && other->host == host && other->waiting &&
		    !other->closed && (!first || other->order < first->order))
			first = other;
	if (!first) {
		set_is_sm(&server->fabric, host->port, false);
		return;
	}
	first->waiting = false;
	reply_with_issm(first);
}

void connections_lose_issm(struct server *server, const struct host_port *host)
{
	for (struct connection *other = server->connections; other; other = other->next) {
		if (other->kind != CONNECTION_ISSM || other->host != host || other->closed)
			continue;
		other->host = NULL;
		if (other->waiting)
			reply_with_issm(other);
		other->waiting = false;
	}
	if (server->fabric.sm_port != host->port)
		store_is_sm(&server->fabric, host->port, false);
}

void connection_close(struct connection *connection)
{
	if (connection->closed)
		return;
	connection->closed = true;
	make_pending(connection);
	if (connection->kind == CONNECTION_UMAD) {
		struct shared *shared = connection->handle->shared;

		remove_key(connection);
		handle_close(connection->handle);
		munmap(shared, sizeof(*shared));
		close(connection->shared_fd);
		connection->handle = NULL;
	}
	if (connection->kind == CONNECTION_ISSM && connection->host && !connection->waiting)
		pass_issm_on(connection->server, connection->host);
	if (connection->kind == CONNECTION_OWNER)
		connection->server->stop = true;
	close(connection->fd);
	connection->fd = -1;
}

static void readable(struct handle *handle)
{
	struct connection *connection = handle->owner;

	connection->dirty = true;
	make_pending(connection);
}

/* Makes the program's poll() return and find the device removed. */
static void removed(struct handle *handle)
{
	struct connection *connection = handle->owner;

	shutdown(connection->fd, SHUT_RDWR);
}

int connection_become_umad(struct connection *connection, struct host_port *host)
{
	const struct graph_port *end;
	int fd = memfd_create("umad-sim", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct handle *handle;
	void *shared;

	if (fd < 0)
		return -errno;
	/* sealed: the program, which shares the memory, cannot shrink it */
	shared = ftruncate(fd, sizeof(struct shared)) ||
				 fcntl(fd, F_ADD_SEALS,
				       F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
			 ? MAP_FAILED
			 : mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED,
				fd, 0);
	handle = shared == MAP_FAILED ? NULL : handle_open(&connection->server->fabric, host);
	if (!handle) {
		if (shared != MAP_FAILED)
			munmap(shared, sizeof(struct shared));
		close(fd);
		return -ENOMEM;
	}
	handle->shared = shared;
	end = cable(&connection->server->fabric, host->port);
	if (hardware(&connection->server->fabric, end->node)->type != NODE_SWITCH)
		atomic_store(&handle->shared->smi_port, end->number);
	handle->owner = connection;
	handle->readable = readable;
	handle->removed = removed;
	connection->handle = handle;
	connection->kind = CONNECTION_UMAD;
	enter_key(connection);
	connection->shared_fd = fd;
	return 0;
}

/*
 * Space for more descriptors than a packet may have: the kernel closes those that do not fit.
 */
union passed_fds {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(MOST_FDS * sizeof(int))];
};

/* Takes the descriptors that came with a packet; the caller closes them. Returns how many. */
static unsigned int received_fds(struct msghdr *header, int fds[MOST_FDS])
{
	unsigned int count = 0;

	for (struct cmsghdr *control = CMSG_FIRSTHDR(header); control;
	     control = CMSG_NXTHDR(header, control)) {
		size_t passed = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS ||
		    passed > MOST_FDS - count)
			continue;
		memcpy(fds + count, CMSG_DATA(control), passed * sizeof(int));
		count += (unsigned int)passed;
	}
	return count;
}

/* Reads a long message from its memory file, which may be shorter than the packet says. */
static void write_long(struct connection *connection, int fd)
{
	struct stat status;
	uint8_t *bytes;
	size_t done = 0;

	if (fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_size <= 0 ||
	    (size_t)status.st_size > LONGEST_MESSAGE)
		return;
	bytes = malloc((size_t)status.st_size);
	while (bytes && done < (size_t)status.st_size) {
		ssize_t got =
			pread(fd, bytes + done, (size_t)status.st_size - done, (off_t)done);

		if (got <= 0)
			break;
		done += (size_t)got;
	}
	if (bytes && done == (size_t)status.st_size &&
	    check_write(connection->handle->shared, bytes, done) == 0)
		handle_write(connection->handle, bytes, done);
	free(bytes);
}

static void write_packet(struct connection *connection, uint8_t *bytes, size_t length, int fd)
{
	struct handle *handle = connection->handle;
	uint8_t class;
	uint32_t tid;
	uint32_t agent;
	size_t header;

	if (length < HEADER_BYTES + SINGLE_MAD_BYTES) /* missing bytes read as zeros */
		memset(bytes + length, 0, HEADER_BYTES + SINGLE_MAD_BYTES - length);
	if (fd >= 0) {
		write_long(connection, fd);
		return;
	}
	if (check_write(handle->shared, bytes, length) == 0 &&
	    handle_write(handle, bytes, length) == 0)
		return;
	/* the write failed: remove the program's entry for the transaction. A response has
	 * none, but its TID may be that of a request */
	header = atomic_load(&handle->shared->pkey_layout) ? HEADER_BYTES : OLD_HEADER_BYTES;
	memcpy(&agent, bytes, sizeof(agent));
	if (mad_is_response(bytes + header))
		return;
	class = bytes[header + 1];
	tid = get32(bytes + header + 12);
	transaction_leave(handle->shared, transaction_key(agent, class, tid));
}

/* Reads packets of an open device once. Returns how many; 0 at end of file; -1 if there are
 * none, or on error. */
static int read_packets(struct connection *connection)
{
	static uint8_t buffers[BATCH][LONGEST_PACKET];
	static union passed_fds controls[BATCH];
	struct mmsghdr messages[BATCH];
	struct iovec parts[BATCH];
	bool ended = false;
	int count;

	for (unsigned int i = 0; i < BATCH; i++) {
		parts[i] = (struct iovec){buffers[i], LONGEST_PACKET};
		messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i],
						      .msg_iovlen = 1,
						      .msg_control = &controls[i],
						      .msg_controllen = sizeof(controls[i])};
	}
	count = recvmmsg(connection->fd, messages, BATCH, MSG_DONTWAIT | MSG_CMSG_CLOEXEC,
			 NULL);
	for (int i = 0; i < count; i++) {
		int fds[MOST_FDS];
		unsigned int passed = received_fds(&messages[i].msg_hdr, fds);

		ended |= messages[i].msg_len == 0;
		if (!ended && passed <= 1)
			write_packet(connection, buffers[i], messages[i].msg_len,
				     passed ? fds[0] : -1);
		while (passed > 0)
			close(fds[--passed]);
	}
	return ended ? 0 : count;
}

static bool read_request(struct connection *connection)
{
	static uint64_t bytes[(sizeof(struct request) + LONGEST_TEXT) / 8 + 1];
	ssize_t length = recv(connection->fd, bytes, sizeof(bytes) - 8, MSG_DONTWAIT);

	if (length < 0)
		return errno == EAGAIN || errno == EINTR;
	if (length > 0)
		server_request(connection, bytes, (size_t)length);
	return length > 0;
}

bool connection_read(struct connection *connection)
{
	char byte;
	ssize_t length;
	int count;

	switch (connection->kind) {
	case CONNECTION_NEW:
		return read_request(connection);
	case CONNECTION_KERNEL:
		return kernel_device_read(connection);
	case CONNECTION_UMAD:
		do {
			server_tell_time(
				connection->server); /* later packets were written later */
			count = read_packets(connection);
		} while (count == BATCH);
		return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
	default:
		length = recv(connection->fd, &byte, 1, MSG_DONTWAIT);
		if (length == 1)
			connection->member = byte == UEVENTS_JOIN;
		return length > 0 || (length < 0 && (errno == EAGAIN || errno == EINTR));
	}
}

/* Writes a long message to a memory file; -1 on OOM. */
static int memory_file(const struct message *message, size_t header_bytes)
{
	int fd = memfd_create("umad-sim", MFD_CLOEXEC);

	if (fd < 0)
		return -1;
	if (pwrite(fd, &message->header, header_bytes, 0) == (ssize_t)header_bytes &&
	    pwrite(fd, message->data, message->length, (off_t)header_bytes) ==
		    (ssize_t)message->length)
		return fd;
	close(fd);
	return -1;
}

static void attach_fd(struct msghdr *header, union passed_fd *control, int fd)
{
	header->msg_control = control;
	header->msg_controllen = sizeof(*control);
	memset(control, 0, sizeof(*control));
	control->header.cmsg_level = SOL_SOCKET;
	control->header.cmsg_type = SCM_RIGHTS;
	control->header.cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(&control->header), &fd, sizeof(fd));
}

static void put_back(struct handle *handle, struct message *message)
{
	message->next = handle->queue;
	handle->queued++;
	if (!handle->queue)
		handle->queue_end = &message->next;
	handle->queue = message;
}

/* Sends the first messages of a queue, up to a long one. False if the socket is full. */
static bool send_messages(struct connection *connection)
{
	struct handle *handle = connection->handle;
	struct message *messages[BATCH];
	struct iovec parts[BATCH][2];
	struct mmsghdr headers[BATCH];
	union passed_fd control;
	size_t header_bytes;
	int sent, count = 0, fd = -1;
	bool full;

	while (count < BATCH && fd < 0 &&
	       (messages[count] = handle_take(handle, &header_bytes))) {
		struct message *message = messages[count];
		bool is_long = message->length > SINGLE_MAD_BYTES;

		parts[count][0] = (struct iovec){&message->header, header_bytes};
		parts[count][1] = (struct iovec){message->data,
						 is_long ? SINGLE_MAD_BYTES : message->length};
		headers[count].msg_hdr =
			(struct msghdr){.msg_iov = parts[count], .msg_iovlen = 2};
		if (is_long && (fd = memory_file(message, header_bytes)) < 0) {
			free(message); /* lost, as in a kernel on OOM */
			continue;
		}
		if (is_long)
			attach_fd(&headers[count].msg_hdr, &control, fd);
		count++;
	}
	sent = sendmmsg(connection->fd, headers, (unsigned int)count,
			MSG_DONTWAIT | MSG_NOSIGNAL);
	full = sent < 0 && (errno == EAGAIN || errno == ENOBUFS);
	if (fd >= 0)
		close(fd);
	if (sent < 0)
		sent = full ? 0 : 1; /* another error: the first message is lost */
	while (count-- > 0)
		if (count < sent)
			free(messages[count]);
		else
			put_back(handle, messages[count]);
	return !full;
}

void connection_flush(struct connection *connection)
{
	while (connection->handle->queue)
		if (!send_messages(connection)) {
			connection_wait_for_room(connection, true);
			return;
		}
	connection_wait_for_room(connection, false);
	connection->dirty = false;
}

static void drop(struct connection *connection)
{
	if (connection->previous)
		connection->previous->next = connection->next;
	else
		connection->server->connections = connection->next;
	if (connection->next)
		connection->next->previous = connection->previous;
	free(connection);
}

void connections_settle(struct server *server)
{
	while (server->pending) {
		struct connection *connection = server->pending;

		server->pending = connection->pending_next;
		connection->pending = false;
		if (connection->dirty && !connection->waiting && !connection->closed)
			connection_flush(connection);
		if (connection->closed)
			drop(connection);
	}
}

void connection_reply(struct connection *connection, const struct reply *reply,
		      const char *text, int fd)
{
	union passed_fd control;
	struct iovec parts[2] = {
		{(void *)(uintptr_t)reply, sizeof(*reply)},
		{(void *)(uintptr_t)text, text ? strlen(text) : 0},
	};
	struct msghdr header = {.msg_iov = parts, .msg_iovlen = text ? 2 : 1};

	if (fd >= 0)
		attach_fd(&header, &control, fd);
	sendmsg(connection->fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
}
