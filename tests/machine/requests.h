/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Requests of a test, what arrives of them at nodes, and a script of responses.
 *
 * The script has a word for each request that arrives at a node other than "sm", in order; the
 * last word applies to all further ones. With "+MS" at its end, the response is that late.
 *
 *	ok		a response with status 0 and the request's data
 *	-		none
 *	pass		the node itself responds
 *	twice		two responses
 *	HEX		a response with this status: "1" is BUSY
 *	lid:NODE	a redirection to a node by its LID, gid:NODE by its GID
 */
#ifndef TESTS_MACHINE_REQUESTS_H
#define TESTS_MACHINE_REQUESTS_H

#include "outcome.h"

#include <endian.h>
#include <infiniband/mad_errors.h>
#include <infiniband/umad.h>
#include <infiniband/umad_ext.h>
#include <pthread.h>

#define ARRIVALS_MAX 4096
#define VENDOR_1     0x0a
#define VENDOR_2     0x33

struct arrival {
	struct machine_mad mad; /* bytes, sgid and dgid: those below */
	uint8_t bytes[MACHINE_MAD], sgid[16], dgid[16];
};

static struct arrival arrivals[ARRIVALS_MAX];
static unsigned arrived;
static const char *script, *next_word;
/* The data of a response of the script, instead of the request's. */
static struct {
	const void *data;
	size_t size;
} response;

static inline size_t data_offset(uint8_t mgmt_class)
{
	return mgmt_class == IB_SA_CLASS ? IB_SA_DATA_OFFS
	       : mgmt_class == VENDOR_2  ? IB_VENDOR_RANGE2_DATA_OFFS
	       : mgmt_class == VENDOR_1  ? IB_VENDOR_RANGE1_DATA_OFFS
					 : IB_SMP_DATA_OFFS;
}

/* ClassPortInfo of a redirection. */
static inline enum machine_verdict redirect_to(struct machine_mad *mad, const char *node,
					       bool by_lid)
{
	uint8_t *info = mad->bytes + (mad->bytes[1] == IB_SA_CLASS ? 56 : 64);
	ibmad_gid_t gid = {0xfe, 0x80};

	memset(info, 0, 72);
	mad_set_field64(gid, 0, IB_GID_GUID_F, machine_guid(node));
	mad_set_array(info, 0, IB_CPI_REDIRECT_GID_F, gid);
	if (by_lid) {
		mad_set_field(info, 0, IB_CPI_REDIRECT_LID_F, machine_lid(node));
		mad_set_field(info, 0, IB_CPI_REDIRECT_QP_F, 1);
		mad_set_field(info, 0, IB_CPI_REDIRECT_QKEY_F, IB_DEFAULT_QP1_QKEY);
		mad_set_field(info, 0, IB_CPI_REDIRECT_SL_F, 6);
	}
	return machine_reply(mad, IB_MAD_STS_REDIRECT, 0, NULL, 0);
}

static inline enum machine_verdict respond(struct machine_mad *mad, const char *word)
{
	size_t offset = data_offset(mad->bytes[1]);

	if (!strcmp(word, "-"))
		return MACHINE_DROP;
	if (!strcmp(word, "pass"))
		return MACHINE_PASS;
	if (!strncmp(word, "lid:", 4) || !strncmp(word, "gid:", 4))
		return redirect_to(mad, word + 4, word[0] == 'l');
	if (!strcmp(word, "ok") || !strcmp(word, "twice"))
		return machine_reply(mad, 0, offset, response.data, response.size);
	return machine_reply(mad, (uint16_t)strtoul(word, NULL, 16), offset, response.data,
			     response.size);
}

static inline void keep_arrival(const struct machine_mad *mad)
{
	struct arrival *arrival = &arrivals[arrived++ % ARRIVALS_MAX];

	arrival->mad = *mad;
	memcpy(arrival->bytes, mad->bytes, MACHINE_MAD);
	memcpy(arrival->sgid, mad->sgid, 16);
	memcpy(arrival->dgid, mad->dgid, 16);
}

static inline enum machine_verdict play(struct machine_mad *mad, void *arg)
{
	char word[32], *late;
	enum machine_verdict verdict;
	long late_ms = 0;
	size_t length;

	(void)arg;
	if (mad->at_host)
		return MACHINE_PASS;
	keep_arrival(mad);
	if (!strcmp(mad->node, "sm"))
		return MACHINE_PASS;
	next_word += strspn(next_word, " ");
	length = strcspn(next_word, " ");
	snprintf(word, sizeof(word), "%.*s", (int)length, next_word);
	if (next_word[length])
		next_word += length;
	late = strchr(word, '+');
	if (late) {
		late_ms = strtol(late, NULL, 10);
		*late = '\0';
	}
	verdict = respond(mad, word);
	if (verdict != MACHINE_REPLY)
		return verdict;
	if (!strcmp(word, "twice"))
		machine_send(mad->node, mad->bytes, 1);
	if (!late)
		return verdict;
	machine_send(mad->node, mad->bytes, late_ms * 1000);
	return MACHINE_DROP;
}

static inline void use_script(const char *words)
{
	machine_on_arrival(NULL, NULL);
	script = next_word = words;
	arrived = 0;
	machine_on_arrival(play, NULL);
}

static char heard[4096]; /* lines of the log */

static inline void hear(enum umad_log_level level, const char *line, void *arg)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	size_t length;

	(void)level;
	(void)arg;
	pthread_mutex_lock(&lock);
	length = strlen(heard);
	if (length < sizeof(heard) - 256)
		snprintf(heard + length, sizeof(heard) - length, "%s\n", line);
	pthread_mutex_unlock(&lock);
	errno = EXDEV; /* a hook may do so */
}

/* Agents have these numbers. */
static inline int requests_setup(void)
{
	int classes[] = {
		IB_SMI_CLASS,        IB_SMI_DIRECT_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS,
		IB_BOARD_MGMT_CLASS, IB_CC_CLASS,         VENDOR_1};

	memset(&response, 0, sizeof(response));
	heard[0] = '\0';
	umad_set_log_hook(hear, NULL);
	machine_setup();
	port = mad_rpc_open_port(NULL, 0, classes, 7);
	if (!port || mad_register_client_via(VENDOR_2, 0, port))
		return -1;
	use_script("ok");
	heard[0] = '\0';
	return 0;
}

static inline int requests_teardown(void)
{
	mad_rpc_close_port(port);
	umad_set_log_hook(NULL, NULL);
	return machine_teardown();
}

static inline ib_portid_t to_node(const char *node)
{
	return (ib_portid_t){.lid = machine_lid(node), .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};
}

static inline ib_rpc_t make_rpc(int mgmt_class, int method, unsigned attribute)
{
	ib_rpc_t rpc = {.mgtclass = mgmt_class,
			.method = method,
			.attr.id = attribute,
			.dataoffs = (int)data_offset((uint8_t)mgmt_class)};

	rpc.datasz = mgmt_class == IB_SMI_CLASS ? IB_SMP_DATA_SIZE : IB_MAD_SIZE - rpc.dataoffs;
	return rpc;
}

static inline ib_rpc_t get_request(void)
{
	return make_rpc(IB_SMI_CLASS, IB_MAD_METHOD_GET, IB_ATTR_NODE_INFO);
}

/* Retransmitted at the end of an attempt. */
static inline ib_rpc_t set_request(void)
{
	return make_rpc(IB_PERFORMANCE_CLASS, IB_MAD_METHOD_SET, IB_GSI_PORT_COUNTERS);
}

/* The SA's response has several segments. */
static inline ib_rpc_t table_request(void)
{
	return make_rpc(IB_SA_CLASS, IB_MAD_METHOD_GET_TABLE, IB_SA_ATTR_NODERECORD);
}

/* 0, or the errno. */
static inline int ask(ib_rpc_t rpc, const char *node)
{
	ib_portid_t to = to_node(node);
	uint8_t data[IB_MAD_SIZE] = {0x5a};

	if (!mad_rpc(port, &rpc, &to, data, data))
		return errno;
	assert_int_equal(data[0], response.data ? *(const uint8_t *)response.data : 0x5a);
	return 0;
}

static inline uint32_t tid_of(const struct arrival *arrival)
{
	uint32_t tid;

	memcpy(&tid, arrival->bytes + 12, sizeof(tid));
	return be32toh(tid);
}

static inline void submit(struct mad_async *async, ib_rpc_t rpc, const char *node,
			  struct outcome *outcome, uint64_t *id)
{
	ib_portid_t to = to_node(node);

	assert_int_equal(mad_async_submit(async, &rpc, &to, NULL, 0, note, outcome, id), 0);
}

#endif
