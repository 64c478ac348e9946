/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * One change at the SA, for the checks in this folder:
 *
 *   member join|leave MGID JOIN-STATE        of a multicast group that exists
 *   member set|delete LID BLOCK [INDEX=GUID ...]
 *                                            GUIDs of a port; 0 has the SA choose one
 *
 * Prints what the SA responds. Exits with 0, with 1 if the SA refused, with 2 for wrong
 * arguments.
 */
#include <infiniband/mad_errors.h>
#include <infiniband/mad_sa.h>

#include <err.h>
#include <inttypes.h>

static int change_membership(struct ibmad_port *port, char **arguments)
{
	struct umad_sa_mcmember_record member = {.qkey = 0};
	struct mad_sa_query query = {.timeout_ms = 5000};
	unsigned int state = (unsigned int)atoi(arguments[2]);
	struct mad_sa_table *table;
	int error;

	if (inet_pton(AF_INET6, arguments[1], member.mgid) != 1)
		errx(2, "no MGID: %s", arguments[1]);
	mad_sa_member_query(&query,
			    strcmp(arguments[0], "join") == 0 ? IB_MAD_METHOD_SET
							      : IB_MAD_METHOD_DELETE,
			    &member, state);
	error = mad_sa_request(port, &query, &table);
	if (!error)
		memcpy(&member, mad_sa_table_record(table, 0), sizeof(member));
	mad_sa_table_free(table);
	printf("%s: status 0x%04x, MLID 0x%04x\n", error ? "failed" : "done",
	       error ? mad_last_failure()->status : 0, be16toh(member.mlid));
	return error != 0;
}

static int change_guids(struct ibmad_port *port, int count, char **arguments)
{
	struct mad_sa_guid_info_record record = {.lid = 0};
	const struct mad_sa_guid_info_record *got;
	struct mad_sa_table *table;
	struct mad_sa_query query = {
		.method = strcmp(arguments[0], "set") == 0 ? IB_MAD_METHOD_SET
							   : IB_MAD_METHOD_DELETE,
		.attribute = IB_SA_ATTR_GUIDINFORECORD,
		.component_mask = MAD_SA_GUID_INFO_LID | MAD_SA_GUID_INFO_BLOCK,
		.record = &record,
		.record_size = sizeof(record),
		.timeout_ms = 5000,
	};
	int error;

	record.lid = htobe16((uint16_t)atoi(arguments[1]));
	record.block = (uint8_t)atoi(arguments[2]);
	for (int i = 3; i < count; i++) {
		unsigned int index;
		uint64_t guid;

		if (sscanf(arguments[i], "%u=%" SCNi64, &index, (int64_t *)&guid) != 2 ||
		    index > 7)
			errx(2, "no INDEX=GUID: %s", arguments[i]);
		record.guids[index] = htobe64(guid);
		query.component_mask |= MAD_SA_GUID_INFO_GUID(index);
	}
	error = mad_sa_request(port, &query, &table);
	got = mad_sa_table_record(table, 0);
	printf("%s: status 0x%04x", error ? "failed" : "done",
	       error ? mad_last_failure()->status : 0);
	for (unsigned int i = 0; i < 8 && got; i++)
		printf(" %" PRIx64, be64toh(got->guids[i]));
	printf("\n");
	mad_sa_table_free(table);
	return error != 0;
}

int main(int argc, char **argv)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_SA_CLASS};
	struct ibmad_port *port;
	int status;

	if (argc < 4)
		errx(2, "usage: member join|leave MGID STATE, set|delete LID BLOCK [INDEX=GUID "
			"...]");
	port = mad_rpc_open_port(NULL, 0, classes, 3);
	if (!port)
		err(1, "mad_rpc_open_port");
	if (strcmp(argv[1], "join") == 0 || strcmp(argv[1], "leave") == 0)
		status = change_membership(port, argv + 1);
	else
		status = change_guids(port, argc - 1, argv + 1);
	mad_rpc_close_port(port);
	return status;
}
