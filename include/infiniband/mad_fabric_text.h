/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_fabric_text.h - a fabric as text, in ibnetdiscover's format, and names of nodes.
 *
 *   struct mad_fabric *fabric;
 *   unsigned line;
 *
 *   if (mad_fabric_load(stdin, &fabric, &line) == -EBADMSG)
 *           fprintf(stderr, "line %u is wrong\n", line);
 *
 * The text has nodes, LIDs, and the width and speed of each link. It does not have states,
 * MTUs, routes and capabilities: these are 0 in a fabric that was loaded, and its images of
 * attributes are NULL.
 *
 * Memory. mad_fabric_free() frees a fabric that was loaded. mad_node_names_free() frees the
 * names of a file. Each name belongs to its struct mad_node_names, and is freed with it.
 *
 * Threads. Any number of threads may store one fabric and look up names at once.
 *
 * Calls return 0, or a negative errno.
 */
#ifndef INFINIBAND_MAD_FABRIC_TEXT_H
#define INFINIBAND_MAD_FABRIC_TEXT_H

#include <infiniband/mad_fabric.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Names of nodes by GUID. */
struct mad_node_names;

/** The node-name-map that ibnetdiscover reads by default. It need not exist. */
#define MAD_NODE_NAMES_PATH "/etc/rdma/ib-node-name-map"

/**
 * Reads a node-name-map up to the end of the file: a line for each node, a GUID and a name, for
 * example
 *
 *   0x0002c90300f00000 "leaf of rack 7"  # the text after the name is ignored
 *
 * A GUID that begins with 0x is hexadecimal, a GUID that begins with 0 is octal, and other
 * GUIDs are decimal. As in ibnetdiscover, strtoull() reads the number: a minus sign is allowed,
 * and a number beyond 64 bits becomes the largest number. The name ends before a quotation mark
 * or #, or with the line. If a GUID has several names, the first one counts. Lines that begin
 * with #, empty lines and lines without a name are skipped.
 *
 * -EBADMSG a line does not begin with a GUID, has a zero byte, or has more than 4,000 bytes. If
 *          line is not NULL, *line is its number, from 1
 * -EINVAL  file or names is NULL
 * -ENOMEM  out of memory
 * and the errors of reading. *names is NULL if the call fails.
 */
int mad_node_names_load(FILE *file, struct mad_node_names **names, unsigned *line);

/** The name of a node; NULL if it has none, or names is NULL. */
const char *mad_node_names_get(const struct mad_node_names *names, uint64_t guid);

/** Frees names; NULL is allowed. */
void mad_node_names_free(struct mad_node_names *names);

/**
 * Writes a fabric in the format of ibnetdiscover. The text is the same as that of the
 * ibnetdiscover of rdma-core 44, except for:
 *   - the second line, which has the time
 *   - speeds that ibnetdiscover does not know, such as XDR
 *   - the order of nodes behind QDR links of some vendors' devices
 *   - a comment "# NodeDescription" with two hexadecimal digits for each byte, if a description
 *     has bytes that are not printable ASCII. The line of the node has blanks for these bytes.
 *     mad_fabric_load() reads the comment, so that a stored and loaded description is the same.
 * The speeds of FDR10 links are correct if the fabric was discovered with
 * MAD_FABRIC_READ_MLNX_EXT_PORTS.
 *
 * A discovered fabric has the nodes in the order of an ibnetdiscover that runs at the same
 * port. A loaded fabric has the nodes in the order of its file, with switches first, then CAs,
 * then routers. Nodes of other types are left out.
 *
 * names replaces the descriptions of switches, and of nodes at the other ends of links, as with
 * ibnetdiscover's option --node-name-map. NULL: no name is replaced.
 *
 * -EINVAL  an argument is NULL
 * -ENOMEM  out of memory
 * and the errors of writing.
 */
int mad_fabric_store(const struct mad_fabric *fabric, FILE *file,
		     const struct mad_node_names *names);

/**
 * Reads a file of mad_fabric_store() or ibnetdiscover to its end. ibnetdiscover may be of any
 * version, and have run with --full, --grouping, --show, --max_hops or --node-name-map.
 * Speeds, LIDs and other parts of comments may be missing; text in place of a whole comment is
 * ignored. *fabric becomes a fabric, which the caller frees by mad_fabric_free(). If the call
 * fails, *fabric is NULL.
 *
 * Nodes are in the order of the file. A comment "# NodeDescription" of mad_fabric_store()
 * replaces the name of the next node. Names longer than a NodeDescription are cut. If the file
 * has a link only at one of its ends, only this port has a peer. Such links, loops, and GUIDs
 * and LIDs that occur twice are problems of the fabric (mad_fabric_get_problem()).
 *
 * -EBADMSG a line has another format, names a port that the file does not have, or describes
 *          the peer of a port again. If line is not NULL, *line is its number, from 1
 * -EBADMSG the file has no node; *line is 0
 * -EFBIG   more than 200,000 nodes or 2,000,000 ports
 * -EINVAL  file or fabric is NULL
 * -ENOMEM  out of memory
 * and the errors of reading.
 */
int mad_fabric_load(FILE *file, struct mad_fabric **fabric, unsigned *line);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_FABRIC_TEXT_H */
