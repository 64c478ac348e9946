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
	EXIT_FAILED /* something could not be read or written */
};

struct settings {
	const char *command, *device;
	unsigned device_port; /* 0: any */
	bool json, csv, only_switches, only_hosts, svg, yes;
	const char *columns, *expect; /* or NULL */
	unsigned interval_ms;         /* 0: one reading */
	unsigned time_limit_ms;       /* 0: none */
	unsigned max_rate;            /* 0: none */
	uint64_t m_key;
	unsigned top; /* ports; 0: all */
	const char *top_counter;
	char **arguments; /* ends with NULL */
};

extern struct settings settings;

/* Prints a message and exits with EXIT_FAILED. */
void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...);
void *allocate(size_t count, size_t size); /* zeroed, or exits */
/* An array with room for one more element than used ones, for elements of this size. */
void *extend(void *array, size_t used, size_t size);
FILE *open_text(char **memory, size_t *size); /* or exits */
void close_text(FILE *text);                  /* or exits */
FILE *open_file(const char *path);            /* to read; or exits */
bool is_command(const char *name);            /* the command that runs */

int run_check(void);
int run_links(void);
int run_nodes(void);
int run_counters(void);
int run_map(void);
int run_diff(void);
int run_store(void);
int run_reset(void);

/* --- names.c: places, their names and order, selections --------------------------- */

#define NAME_SIZE  256
#define PLACE_SIZE (NAME_SIZE + 64)

struct place {
	const struct mad_fabric_node *node; /* of the port, or the node itself; or NULL */
	const struct mad_fabric_port *port; /* or NULL */
};

extern const struct place nowhere;
struct place at_port(const struct mad_fabric_port *port); /* nowhere for NULL */
struct place at_node(const struct mad_fabric_node *node);

void load_names(const char *path);                     /* NULL: the default file, if any */
bool has_own_name(const struct mad_fabric_node *node); /* from the file of names */
/* The name that is shown: printable, never empty. Returns name. */
char *node_name(const struct mad_fabric_node *node, char name[NAME_SIZE]);
/* "leaf-1 port 3 (0x0002c90300f00010)" */
char *place_text(struct place place, char text[PLACE_SIZE]);
/* "leaf-1/3" or "leaf-1" */
char *short_place(struct place place, char text[PLACE_SIZE]);
/* Switches first; then by name, in which numbers count as numbers; nowhere is first. */
int compare_places(struct place a, struct place b);
/* The nodes or ports of a fabric in this order; free() them. */
const struct mad_fabric_node **sorted_nodes(const struct mad_fabric *fabric);
const struct mad_fabric_port **sorted_ports(const struct mad_fabric *fabric);
const char *state_name(const struct mad_fabric_port *port); /* "" if not known */
/* Of the two ports of a link the one that is shown first. */
bool is_first_end(const struct mad_fabric_port *port);

bool is_selected(struct place place);
/* A link is selected if one of its ends is. */
bool is_link_selected(const struct mad_fabric_port *port);
/* Exits if an argument selects nothing in both fabrics; before may be NULL. */
void check_selection(const struct mad_fabric *fabric, const struct mad_fabric *before);

/* --- look.c: the port, the fabric, its attributes and counters --------------------- */

extern struct mad_cancel cancelled;
extern struct ibmad_port *ibmad_port; /* of discover() */

unsigned left_ms(void); /* of the time limit, at least 1; 0: no limit */
bool is_over(void);     /* a signal or the time limit ends the program */
const char *why_over(void);
const char *error_text(int error); /* of a request */
void show_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void end_progress(void);

/* The fabric, or a part of it with failures; exits if there is none. previous may be NULL. */
struct mad_fabric *discover(const struct mad_fabric *previous);

struct attribute {
	const struct mad_fabric_port *port;
	unsigned modifier;
	int error;
	uint8_t data[IB_SMP_DATA_SIZE];
};

/* Reads an attribute of SMPs at many ports. */
void read_attributes(struct attribute *attributes, size_t count, unsigned id);
/* A port that can be read has counters. */
bool has_counters(const struct mad_fabric_port *port);
/* One reading of the selected ports, or two with an interval; what failed is recorded. */
struct mad_fabric_counters *read_counters(const struct mad_fabric *fabric, uint64_t wanted);

/* --- output.c: tables as text, JSON and CSV, and what failed ----------------------- */

#define COLUMNS_MOST 64
#define COLUMN_SIZE  40

struct column {
	char name[COLUMN_SIZE];
	bool is_number; /* in JSON without quotation marks; in text to the right */
	int hidden;     /* 1: in text, 2: in each form, but not from --columns */
};

/* Each row has a cell for each column; an empty one is "not known". */
struct table {
	const char *name; /* of the rows in JSON */
	struct column columns[COLUMNS_MOST];
	unsigned column_count;
	unsigned shown[COLUMNS_MOST], shown_count;
	FILE *text; /* cells, each ends with a tab */
	char *memory;
	size_t size;
};

/* The names of the columns, separated by blanks: "#" is before a number, then "-" or "--"
 * before a column that is hidden. Exits if --columns has another name. */
void table_begin(struct table *table, const char *name, const char *columns);
/* Adds a cell, or several with tabs between them. */
/* A cell that is empty unless the value is known. */
void add_if(struct table *table, bool is_known, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
#define add(table, ...) add_if(table, true, __VA_ARGS__)
void add_place(struct table *table, struct place place); /* name, GUID, port */
/* Prints the table and the failures in the wanted form; frees the table. Returns the status of
 * a command without findings. */
int table_print(struct table *table, const struct mad_fabric *fabric);

/* What could not be read. */
void record_failure(struct place place, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
size_t failure_count(void);
/* Lines that begin with a prefix. */
void print_failures(FILE *file, const char *prefix);
/* Flushes; EXIT_FAILED if the output could not be written. */
int end_output(int status);

/* --- output.c: what check and diff have found ------------------------------------- */

#define CABLE    "reseat or clean the cable, then replace it"
#define INTENDED "if this is intended, store the fabric again"

/* The worst first: constant, severity, name, what to do. */
#define KINDS(KIND)                                                                            \
	KIND(NO_SM, CRITICAL, "no-sm", "start a subnet manager")                               \
	KIND(TWO_MASTERS, CRITICAL, "two-masters",                                             \
	     "stop one subnet manager; give both the same SM_Key")                             \
	KIND(DUPLICATE_GUID, CRITICAL, "duplicate-guid",                                       \
	     "burn the GUIDs on its label into one of the two")                                \
	KIND(DUPLICATE_LID, CRITICAL, "duplicate-lid",                                         \
	     "restart the subnet manager, so that it assigns LIDs again")                      \
	KIND(NO_RESPONSE, ERROR, "no-response",                                                \
	     "check its power, firmware and M_Key; restart it")                                \
	KIND(BAD_RESPONSE, ERROR, "bad-response", "update its firmware")                       \
	KIND(NODE_MISSING, ERROR, "node-missing", "check its power and its cables")            \
	KIND(LINK_MISSING, ERROR, "link-missing", "check the cable and both ports")            \
	KIND(LINK_MOVED, ERROR, "link-moved", "put the cable back, or store the fabric again") \
	KIND(CONTRADICTION, ERROR, "contradiction",                                            \
	     "repeat the check; was a cable just moved?")                                      \
	KIND(LOOP, ERROR, "loop", "remove the cable, or connect its other end")                \
	KIND(RESTARTED, ERROR, "restarted", "check its power and its log")                     \
	KIND(FLAPPING, ERROR, "flapping", CABLE)                                               \
	KIND(LINK_ERRORS, ERROR, "link-errors", CABLE)                                         \
	KIND(SLOW_LINK, ERROR, "slow-link", CABLE)                                             \
	KIND(FEC_MISMATCH, ERROR, "fec-mismatch", "set both ports to the same FEC modes")      \
	KIND(NOT_ACTIVE, ERROR, "not-active", "read the log of the subnet manager")            \
	KIND(LINK_MISMATCH, ERROR, "link-mismatch",                                            \
	     "repeat the check; then reset one of the ports")                                  \
	KIND(OTHER_SM, ERROR, "other-sm", "restart the subnet manager")                        \
	KIND(DISCARDS, WARNING, "discards",                                                    \
	     "look for congestion: ibfabric counters --top 20 xmit_wait")                      \
	KIND(BUFFERS, WARNING, "buffer-overruns",                                              \
	     "check the buffers and the length of the cable")                                  \
	KIND(ROUTING, WARNING, "relay-errors", "check the routes and multicast groups")        \
	KIND(PARTITION, WARNING, "partition-errors",                                           \
	     "check the partitions (P_Keys) of the two ends")                                  \
	KIND(DROPPED_MADS, WARNING, "dropped-mads", "look for programs that send many MADs")   \
	KIND(REMOTE_ERRORS, WARNING, "remote-errors",                                          \
	     "the fault is at another link: look for link-errors")                             \
	KIND(DUPLICATE_NAME, WARNING, "duplicate-name", "give one of them another name")       \
	KIND(FACTORY_NAME, WARNING, "factory-name", "give it a name")                          \
	KIND(NODE_REPLACED, WARNING, "node-replaced", INTENDED)                                \
	KIND(NODE_NEW, WARNING, "node-new", INTENDED)                                          \
	KIND(NODE_CHANGED, WARNING, "node-changed", INTENDED)                                  \
	KIND(LINK_NEW, WARNING, "link-new", INTENDED)                                          \
	KIND(LINK_CHANGED, WARNING, "link-changed", INTENDED)                                  \
	KIND(PORT_CHANGED, WARNING, "port-changed", INTENDED)

#define KIND_CONSTANT(constant, severity, name, action) KIND_##constant,
enum kind {
	KINDS(KIND_CONSTANT) KIND_COUNT
};

/* Adds a finding, unless the selection excludes both places. Findings of a kind with the same
 * identity, which is not 0, are printed as one. */
void found_of(uint64_t identity, enum kind kind, struct place place, struct place peer,
	      const char *format, ...) __attribute__((format(printf, 5, 6)));
#define found(...) found_of(0, __VA_ARGS__)
bool has_finding(enum kind kind);
/* Prints all findings, and returns the exit status. */
int print_findings(const struct mad_fabric *fabric);

/* --- counters.c: counters that are faults -------------------------------------------- */

void load_thresholds(const char *path);
/* Reads the counters and finds out which of them are faults. */
void judge_counters(const struct mad_fabric *fabric);
/* Of the kinds, a mask of 1 << enum kind, what is wrong at both ends of a link; "": nothing.
 * free() it. */
char *describe_faults(const struct mad_fabric_port *port, uint64_t kinds);
void check_counters(const struct mad_fabric *fabric);

/* --- stored.c: fabrics in files ------------------------------------------------------ */

struct mad_fabric *load(const char *path); /* or exits */
/* told: by the index of a port, links that have a finding of their state or rate */
void report_differences(const struct mad_fabric *before, const struct mad_fabric *fabric,
			const bool *told);

#endif
