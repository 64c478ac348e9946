/* SPDX-License-Identifier: BSD-2-Clause */

/* What the files of ibfabric share. Each part below names the file that has it. */
#ifndef EXAMPLES_IBFABRIC_H
#define EXAMPLES_IBFABRIC_H

#include <infiniband/mad_fabric_counters.h>
#include <infiniband/mad_fabric_text.h>
#include <infiniband/mad_fields.h>
#include <infiniband/mad_port.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- main.c: the command line --------------------------------------------------- */

enum {
	EXIT_CLEAN,
	EXIT_FOUND, /* faults, or differences */
	EXIT_FAILED /* something could not be looked at */
};

enum form {
	FORM_TEXT,
	FORM_JSON,
	FORM_CSV
};

struct settings {
	const char *command;
	const char *device;
	int device_port; /* 0: any */
	enum form form;
	char *columns; /* --columns; or NULL */
	bool only_switches, only_hosts;
	const char *expect;
	unsigned interval_ms; /* 0: one reading */
	unsigned time_limit_ms;
	unsigned max_rate;
	uint64_t m_key;
	unsigned top;            /* 0: all ports */
	const char *top_counter; /* of --top */
	bool fec, svg, yes, all;
	char **arguments; /* ends with NULL */
};

extern struct settings settings;

/* Prints a message and exits with EXIT_FAILED. */
void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...);
void *allocate(size_t count, size_t size); /* zeroed, or exits */

int run_check(void);
int run_links(void);
int run_nodes(void);
int run_counters(void);
int run_map(void);
int run_diff(void);
int run_store(void);
int run_reset(void);

/* --- look.c: the port, the fabric, its counters, selections ----------------------- */

extern struct mad_cancel cancelled;
extern struct ibmad_port *ibmad_port; /* of discover() */

unsigned left_ms(void);            /* of the time limit, at least 1; 0: no limit */
const char *error_text(int error); /* of a request */
void show_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void end_progress(void);

/* A file of store or ibnetdiscover; exits if it cannot be read. */
struct mad_fabric *load(const char *path);
/* The fabric, or a part of it with failures; exits if there is none. previous may be NULL. */
struct mad_fabric *discover(const struct mad_fabric *previous);
/* One reading of the selected ports, or two with an interval; what failed is recorded. */
struct mad_fabric_counters *read_counters(const struct mad_fabric *fabric, uint64_t wanted,
					  bool basic);

/* Exits if an argument selects nothing in both fabrics; before may be NULL. */
void check_selection(const struct mad_fabric *fabric, const struct mad_fabric *before);
bool is_selected(const struct mad_fabric_port *port);
bool is_node_selected(const struct mad_fabric_node *node);
/* A link is selected if one of its ends is. */
bool is_link_selected(const struct mad_fabric_port *port);
/* Of the two ports of a link the one that is shown first: the switch, the lower name. */
bool is_first_end(const struct mad_fabric_port *port);

/* --- names.c ---------------------------------------------------------------------- */

#define NAME_SIZE  256
#define PLACE_SIZE (NAME_SIZE + 64)

void load_names(const char *path); /* NULL: the default file, if it is there */
bool has_own_name(const struct mad_fabric_node *node); /* from the file of names */
/* The name that is shown: printable, never empty. Returns name. */
char *node_name(const struct mad_fabric_node *node, char name[NAME_SIZE]);
const char *type_name(const struct mad_fabric_node *node);
/* "leaf-1 port 3 (0x0002c90300f00010)" */
char *place_of_port(const struct mad_fabric_port *port, char place[PLACE_SIZE]);
char *place_of_node(const struct mad_fabric_node *node, char place[PLACE_SIZE]);
/* The same without the GUID: "leaf-1/3". */
char *short_place(const struct mad_fabric_port *port, char place[PLACE_SIZE]);
int compare_nodes(const struct mad_fabric_node *a, const struct mad_fabric_node *b);
int compare_ports(const struct mad_fabric_port *a, const struct mad_fabric_port *b);
/* The nodes or ports of a fabric in the order of compare_*(); free() them. */
const struct mad_fabric_node **sorted_nodes(const struct mad_fabric *fabric);
const struct mad_fabric_port **sorted_ports(const struct mad_fabric *fabric);

/* --- output.c: tables as text, JSON and CSV, and what failed ----------------------- */

#define COLUMNS_MOST 64

struct column {
	const char *name;
	bool is_number; /* in JSON without quotes; in text to the right */
	bool is_hidden; /* in text only with --columns */
};

/* Cells are added row by row, one for each column. */
struct table {
	const char *name; /* of the rows in JSON */
	const struct column *columns;
	unsigned column_count;
	FILE *cells;
	char *memory;
	size_t size, row_count;
};

void table_begin(struct table *table, const char *name, const struct column *columns,
		 unsigned column_count);
void add(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void add_nothing(struct table *table, unsigned cells);
void add_guid(struct table *table, uint64_t guid);
void add_node(struct table *table, const struct mad_fabric_node *node); /* name, GUID */
void add_port(struct table *table, const struct mad_fabric_port *port); /* and the number */
void add_port_number(struct table *table, const struct mad_fabric_port *port);
/* Whether --columns, or the default of a text, has the column. */
bool is_column_shown(const struct table *table, const char *name);
/* Prints the table and the failures in the form of the settings; frees the table. fabric adds
 * the numbers of nodes and links; or NULL. */
void table_print(struct table *table, const struct mad_fabric *fabric);
void print_json_text(const char *text);
bool wants_colour(void);

/* What could not be looked at. Node and port may be NULL. */
void record_failure(const struct mad_fabric_node *node, const struct mad_fabric_port *port,
		    const char *format, ...) __attribute__((format(printf, 3, 4)));
size_t failure_count(void);
/* Lines that begin with a prefix. */
void print_failures(FILE *file, const char *prefix);
/* Flushes; EXIT_FAILED if the output could not be written. */
int end_output(int status);

/* --- thresholds.c ------------------------------------------------------------------ */

/* Counters with the same cause. */
enum group {
	GROUP_DOWNED,
	GROUP_PHYSICAL,
	GROUP_DISCARDS,
	GROUP_REMOTE,
	GROUP_ROUTING,
	GROUP_PARTITION,
	GROUP_BUFFERS,
	GROUP_MADS,
	GROUP_COUNT
};

struct threshold {
	unsigned counter; /* enum mad_counter */
	enum group group;
	uint64_t total; /* more since the last clear is a fault */
	uint64_t rise;  /* more between two readings is a fault */
};

#define THRESHOLD_COUNT 14
extern struct threshold thresholds[THRESHOLD_COUNT];

void load_thresholds(const char *path);
/* A counter by the name of the library or the specification, or the beginning of its name if
 * it is the only one; MAD_COUNTER_COUNT: none. */
unsigned find_counter(const char *name, size_t length);

/* --- findings.c: what check has found ---------------------------------------------- */

/* The worst first. */
enum kind {
	KIND_NO_SM,
	KIND_TWO_MASTERS,
	KIND_DUPLICATE_GUID,
	KIND_DUPLICATE_LID,
	KIND_NO_ANSWER,
	KIND_BAD_ANSWER,
	KIND_NODE_MISSING,
	KIND_LINK_MISSING,
	KIND_LINK_MOVED,
	KIND_CONTRADICTION,
	KIND_LOOP,
	KIND_RESTARTED,
	KIND_FLAPPING,
	KIND_LINK_ERRORS,
	KIND_SLOW_LINK,
	KIND_NOT_ACTIVE,
	KIND_LINK_MISMATCH,
	KIND_OTHER_SM,
	KIND_DISCARDS,
	KIND_BUFFERS,
	KIND_ROUTING,
	KIND_PARTITION,
	KIND_DROPPED_MADS,
	KIND_REMOTE_ERRORS,
	KIND_DUPLICATE_NAME,
	KIND_FACTORY_NAME,
	KIND_NODE_REPLACED,
	KIND_NODE_NEW,
	KIND_NODE_CHANGED,
	KIND_LINK_NEW,
	KIND_LINK_CHANGED,
	KIND_PORT_CHANGED,
	KIND_COUNT
};

struct place {
	const struct mad_fabric_node *node; /* of the port, or the node itself; or NULL */
	const struct mad_fabric_port *port; /* or NULL */
};

struct place at_port(const struct mad_fabric_port *port);
struct place at_node(const struct mad_fabric_node *node);
extern const struct place nowhere;
/* Adds a finding, unless the selection excludes both places. */
void found(enum kind kind, struct place place, struct place peer, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
size_t finding_count(void);
bool has_finding(enum kind kind);
void print_findings(const struct mad_fabric *fabric);

/* --- counters-check.c, expect.c: parts of check -------------------------------------- */

void check_counters(struct mad_fabric_counters *counters, const struct mad_fabric *fabric);
/* told: by the index of a port, links that have a finding of their state or rate */
void check_expected(const struct mad_fabric *before, const struct mad_fabric *fabric,
		    const bool *told);

#endif
