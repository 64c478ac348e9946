/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Parts that wait for messages or events: a server, notices, a device monitor, the packet hook;
 * and children.
 */
#include "soak.h"

#include <infiniband/mad_notice.h>
#include <infiniband/mad_server.h>
#include <infiniband/umad_ext.h>

#include <errno.h>
#include <poll.h>
#include <sys/wait.h>

#define MOST_HELD 64

static void *allocate(size_t size)
{
	void *memory = calloc(1, size);

	if (!memory)
		abort();
	return memory;
}

static void nothing(struct part *part)
{
	(void)part;
}

/* --- a server ------------------------------------------------------------------- */

struct service {
	struct ibmad_port *port;
	struct mad_async *async;
	struct mad_server *server;
	struct mad_request *held[MOST_HELD];
	unsigned held_count;
	uint64_t random;
	bool ended;
};

static void respond(struct mad_request *request)
{
	if (mad_request_respond(request, 0, request->data, request->data_size) < 0)
		mad_request_free(request);
}

/* Most requests get their data back, some later; some get a status, and some no response. */
static void serve(struct mad_server *server, struct mad_request *request, int error, void *arg)
{
	struct service *service = arg;
	unsigned die;

	(void)server;
	(void)error;
	if (!request) {
		if (service->ended)
			record_wrong("a server has ended twice");
		service->ended = true;
		return;
	}
	die = random_below(&service->random, 100);
	counts.served++;
	if (die < 2)
		mad_request_free(request);
	else if (die < 4 && !mad_request_respond(request, 0x1c, NULL, 0))
		return;
	else if (die < 20 && service->held_count < MOST_HELD)
		service->held[service->held_count++] = request;
	else
		respond(request);
}

static void respond_to_held(struct service *service)
{
	while (service->held_count)
		respond(service->held[--service->held_count]);
}

static void drop_held(struct service *service)
{
	while (service->held_count)
		mad_request_free(service->held[--service->held_count]);
}

static void close_service(struct part *part)
{
	struct service *service = part->state;
	unsigned die = random_below(&part->random, 4);

	if (die == 0 && !service->ended)
		mad_server_stop(service->server);
	if (die == 1)
		drop_held(service);
	if (die == 2)
		respond_to_held(service);
	if (die == 3) {
		mad_rpc_close_port(service->port);
		service->port = NULL;
	}
	mad_async_free(service->async);
	if (!service->ended)
		record_wrong("a server has not ended with its engine");
	mad_rpc_close_port(service->port);
	drop_held(service); /* the last held request frees the port */
	free(service);
}

static bool open_service(struct part *part)
{
	const struct mad_server_options server_options = {
		.mgmt_class = CLASS,
		.oui = OUI,
		.methods = {MAD_SERVER_METHOD(IB_MAD_METHOD_GET)},
		.rmpp_version = 1,
		.limit = 500,
	};
	struct service *service = allocate(sizeof(*service));

	part->state = service;
	service->random = random_next(&part->random);
	service->port = mad_rpc_open_port(options.device, options.device ? 1 : 0, NULL, 0);
	service->async = service->port ? mad_async_create(service->port) : NULL;
	if (service->async && !mad_server_start(service->async, &server_options, serve, service,
						&service->server))
		return true;
	mad_async_free(service->async);
	mad_rpc_close_port(service->port);
	free(service);
	return false;
}

static bool work_service(struct part *part, unsigned ms)
{
	struct service *service = part->state;
	uint64_t until = now_ms() + ms;

	while (!stopping() && now_ms() < until) {
		if (mad_async_wait(service->async, 50) != -ETIMEDOUT)
			return false; /* the server has ended */
		respond_to_held(service);
	}
	return true;
}

static void drain_service(struct part *part)
{
	struct service *service = part->state;

	respond_to_held(service);
	/* waits for RMPP transmissions, and for requests that clients send until they rest */
	for (int i = 0; i < 20; i++) {
		mad_async_wait(service->async, 50);
		respond_to_held(service);
	}
}

const struct part_kind server_part = {"server", open_service, work_service, drain_service,
				      close_service};

/* --- notices -------------------------------------------------------------------- */

struct listener {
	struct ibmad_port *port;
	struct mad_async *async;
	struct mad_notices *notices;
	bool ended;
};

static void notice_came(struct mad_notices *notices, const struct mad_notice *notice, void *arg)
{
	struct listener *listener = arg;

	(void)notices;
	counts.notices++;
	if (notice->kind != MAD_NOTICE_END)
		return;
	if (listener->ended)
		record_wrong("notices have ended twice");
	listener->ended = true;
}

static bool open_listener(struct part *part)
{
	const struct mad_notices_options notices_options = {.check_ms = 3000, .poll_ms = 500};
	struct listener *listener = allocate(sizeof(*listener));

	part->state = listener;
	listener->port = open_port();
	listener->async = listener->port ? mad_async_create(listener->port) : NULL;
	if (listener->async && !mad_notices_start(listener->async, &notices_options,
						  notice_came, listener, &listener->notices))
		return true;
	mad_async_free(listener->async);
	mad_rpc_close_port(listener->port);
	free(listener);
	return false;
}

static bool work_listener(struct part *part, unsigned ms)
{
	struct listener *listener = part->state;
	uint64_t until = now_ms() + ms;

	while (!listener->ended && !stopping() && now_ms() < until)
		mad_async_wait(listener->async, 100);
	return !listener->ended;
}

static void close_listener(struct part *part)
{
	struct listener *listener = part->state;

	if (!listener->ended && random_below(&part->random, 2)) {
		mad_notices_stop(listener->notices);
		mad_async_wait(listener->async, 500);
	}
	mad_async_free(listener->async);
	mad_rpc_close_port(listener->port);
	if (!listener->ended)
		record_wrong("notices have not ended with their engine");
	free(listener);
}

const struct part_kind notices_part = {"notices", open_listener, work_listener, nothing,
				       close_listener};

/* --- a device monitor ------------------------------------------------------------ */

static bool open_monitor(struct part *part)
{
	struct umad_monitor *monitor;

	if (umad_monitor_open(&monitor, 0) < 0)
		return false;
	part->state = monitor;
	return true;
}

/* Lists the devices and their ports, as a program does after an event. */
static void list_devices(void)
{
	char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN];
	int count = umad_get_cas_names(names, UMAD_MAX_DEVICES);
	umad_ca_t ca;

	for (int i = 0; i < count; i++)
		if (!umad_get_ca(names[i], &ca))
			umad_release_ca(&ca);
}

static bool work_monitor(struct part *part, unsigned ms)
{
	struct umad_monitor *monitor = part->state;
	struct pollfd pollfd = {.fd = umad_monitor_get_fd(monitor), .events = POLLIN};
	uint64_t until = now_ms() + ms;
	struct umad_event event;

	while (!stopping() && now_ms() < until) {
		if (poll(&pollfd, 1, 0) > 0)
			while (!umad_monitor_next_event(monitor, &event, sizeof(event)))
				counts.events++;
		list_devices();
		sleep_ms(250);
	}
	return true;
}

static void close_monitor(struct part *part)
{
	umad_monitor_free(part->state);
}

const struct part_kind monitor_part = {"monitor", open_monitor, work_monitor, nothing,
				       close_monitor};

/* --- the packet hook ------------------------------------------------------------ */

static void count_packet(const struct umad_packet_info *packet, void *user)
{
	(void)user;
	counts.packets += packet->length > 0;
}

static bool open_hook(struct part *part)
{
	(void)part;
	umad_set_packet_hook(count_packet, NULL);
	return true;
}

static bool work_hook(struct part *part, unsigned ms)
{
	(void)part;
	sleep_ms(ms);
	return true;
}

static void close_hook(struct part *part)
{
	(void)part;
	umad_set_packet_hook(NULL, NULL);
}

const struct part_kind hook_part = {"hook", open_hook, work_hook, nothing, close_hook};

/* --- children ------------------------------------------------------------------- */

/*
 * AddressSanitizer of GCC 12 does not take the locks of its allocator before a fork: if another
 * thread allocates at that moment, a child waits for ever. With AddressSanitizer there are no
 * children.
 */
#ifdef __SANITIZE_ADDRESS__
#define MAY_FORK false
#else
#define MAY_FORK true
#endif

/* A child of a process with threads opens its own port. */
static void be_child(void)
{
	ib_rpc_t rpc = {.mgtclass = CLASS,
			.method = IB_MAD_METHOD_GET,
			.attr.id = 0x10,
			.oui = OUI,
			.dataoffs = DATA,
			.datasz = IB_VENDOR_RANGE2_DATA_SIZE,
			.timeout = 50};
	ib_portid_t to = options.servers[0];
	uint8_t data[IB_MAD_SIZE] = {0};
	struct ibmad_port *port;

	alarm(120); /* a child that takes longer waits for a lock that no thread holds */
	port = open_port();
	if (port)
		mad_rpc(port, &rpc, &to, data, data);
	mad_rpc_close_port(port);
	_exit(0);
}

static bool open_forks(struct part *part)
{
	(void)part;
	return true;
}

static bool work_forks(struct part *part, unsigned ms)
{
	uint64_t until = now_ms() + ms;
	int status;
	pid_t child;

	if (!MAY_FORK) {
		sleep_ms(ms);
		return true;
	}
	while (!stopping() && now_ms() < until) {
		child = fork();
		if (!child)
			be_child();
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			record_wrong("a child has ended with 0x%x", child < 0 ? 0 : status);
		counts.children++;
		sleep_ms(1000 + random_below(&part->random, 4000));
	}
	return true;
}

const struct part_kind forks_part = {"forks", open_forks, work_forks, nothing, nothing};
