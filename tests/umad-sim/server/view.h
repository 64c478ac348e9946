/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What a program attached to certain nodes sees: a folder view-N in the fabric's folder with
 * sys/class/infiniband, sys/class/infiniband_mad and dev/infiniband, as the kernel has them.
 * Programs on the same nodes share a view.
 */
#ifndef UMAD_SIM_VIEW_H
#define UMAD_SIM_VIEW_H

#include "settings.h"

#define GID_BYTES     16
#define COUNTER_FILES 21

struct view_port { /* an end port, and its umad<number> and issm<number> */
	uint32_t port;
	unsigned int device;        /* the index of its node in the view */
	uint16_t pkeys[PKEY_COUNT]; /* as last written */
	uint8_t gids[GUID_COUNT][GID_BYTES];
	uint64_t counters[COUNTER_FILES];
};

struct view {
	struct view *next;
	uint32_t number;
	uint32_t *nodes;
	unsigned int node_count;
	struct view_port *ports;
	unsigned int port_count;
	int error;      /* first error of writing the files that are still missing; 0: none */
	bool repairing; /* writes only missing files */
	char folder[512];
};

/*
 * Finds the view of these nodes ("NODE" or "NODE,NODE"), or creates it below the folder.
 * Returns 0; -ENOENT if there is no such node, with the reason in `why` (256 bytes); or another
 * negative errno.
 */
int view_find(struct fabric *fabric, struct view **views, const char *folder, const char *nodes,
	      struct view **view, char *why);
/* Checks that the nodes exist. Returns 0, -ENOENT (with `why` as above), or another negative
 * errno. */
int view_check_nodes(const struct fabric *fabric, const char *nodes, char *why);
struct view *view_by_number(struct view *views, uint32_t number);
void views_free(struct view *views);

/*
 * Write a port's changes, or a node's presence, to the files. A file that cannot be written,
 * for example because the disk is full, is removed, so that programs never see old values; the
 * view then has an error.
 */
void views_port_changed(struct fabric *fabric, struct view *views, uint32_t port);
void views_device_changed(struct view *views, uint32_t node, bool present);

/* Returns a view that has an error, or NULL. */
const struct view *views_incomplete(const struct view *views);
/* Retries the missing files. */
void views_repair(struct fabric *fabric, struct view *views);

/* --- view_files.c: the files. An error is stored in the view. ------------------------ */

void view_write_port(const struct fabric *fabric, struct view *view, struct view_port *port,
		     bool all);
void view_write_device(const struct fabric *fabric, struct view *view, unsigned int device);
void view_write_classes(struct view *view);

/* Writes the counters that changed, or all of them. */
void view_write_counters(struct fabric *fabric, struct view *view, bool all);

/* Adds the device's entries to the folders of the classes, or removes them. */
void view_show_device(struct view *view, unsigned int device, bool present);

#endif
