/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_fabric_text.h - fabrics as text, in ibnetdiscover's format, and names of nodes.
 *
 *   struct mad_fabric *fabric;
 *   unsigned line;
 *
 *   if (mad_fabric_load(stdin, &fabric, &line) == -EBADMSG)
 *           fprintf(stderr, "line %u is wrong\n", line);
 *
 * The text has nodes, LIDs, widths and speeds. In a loaded fabric everything else, such as
 * states, MTUs, routes and attribute images, is 0 or NULL. Calls return 0 or a negative errno;
 * any number of threads may store a fabric and look up names. See mad_fabric_store(3).
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

/** ibnetdiscover's default node-name-map, which need not exist. */
#define MAD_NODE_NAMES_PATH "/etc/rdma/ib-node-name-map"

/**
 * Reads a node-name-map: lines with a GUID (0x: hexadecimal) and a name, which ends at " or #.
 *
 *   0x0002c90300f00000 "leaf of rack 7"  # ignored
 *
 * The first name of a GUID counts. -EBADMSG, with its number in *line, for a line without a
 * GUID.
 */
int mad_node_names_load(FILE *file, struct mad_node_names **names, unsigned *line);

/** Returns a name that is freed with names, or NULL. */
const char *mad_node_names_get(const struct mad_node_names *names, uint64_t guid);

/** NULL is a no-op. */
void mad_node_names_free(struct mad_node_names *names);

/**
 * Writes what ibnetdiscover of rdma-core 44 would print, except for the time, newer speeds and
 * NodeDescriptions with unprintable bytes. names (or NULL) works like its --node-name-map.
 */
int mad_fabric_store(const struct mad_fabric *fabric, FILE *file,
		     const struct mad_node_names *names);

/**
 * Reads the output of mad_fabric_store() or any ibnetdiscover, in the file's order. Free
 * *fabric (NULL on failure) with mad_fabric_free(). Contradictions in the file are problems of
 * the fabric. -EBADMSG: *line (unless NULL) is wrong, 0: no node. -EFBIG: over 200,000 nodes,
 * 2,000,000 ports.
 */
int mad_fabric_load(FILE *file, struct mad_fabric **fabric, unsigned *line);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_FABRIC_TEXT_H */
