/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_fields.h - the table of fields: search and iterate, for programs that print or export
 * whole attributes; fields that rdma-core does not have; readers of const images and texts.
 *
 *   const char *pc = "PortCountersExtended";
 *   for (enum MAD_FIELDS f = mad_field_next(pc, IB_NO_FIELD); f != IB_NO_FIELD;
 *        f = mad_field_next(pc, f))
 *           printf("%s: %" PRIu64 "\n", mad_field_info(f)->label, mad_read_field(data, 0, f));
 *
 * All texts are constant. Any number of threads may call these; errno is not set. IB_NO_FIELD
 * and markers such as IB_PC_LAST_F are not fields.
 */
#ifndef INFINIBAND_MAD_FIELDS_H
#define INFINIBAND_MAD_FIELDS_H

#include <infiniband/mad.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Finds a field by "IB_PORT_LID_F", "PortInfo.Lid" or "Lid" (the first). Or IB_NO_FIELD. */
enum MAD_FIELDS mad_field_by_name(const char *name);

/** Members may be added at the end. */
struct mad_field {
	const char *constant;
	const char *label;     /**< "Lid", as printed */
	const char *attribute; /**< or header, as in the specification */
	unsigned bits;
};

/** Returns what is known of a field; NULL if it is not one. */
const struct mad_field *mad_field_info(enum MAD_FIELDS field);

/** Iterates over an attribute's fields (NULL: all): IB_NO_FIELD is both start and end. */
enum MAD_FIELDS mad_field_next(const char *attribute, enum MAD_FIELDS field);

/*
 * The numbers 896 to 1023 are this project's, the others rdma-core's. A released number never
 * changes. All calls accept these fields, but printers of attributes such as
 * mad_dump_portinfo() skip them.
 */
#define MAD_OWN_FIELD_FIRST 896

/* PathRecord (IBA 15.2.5.16) */
#define MAD_SA_PR_PKEY_F     ((enum MAD_FIELDS)896)
#define MAD_SA_PR_MTU_F      ((enum MAD_FIELDS)897) /**< 1 to 5: 256 to 4,096 bytes */
#define MAD_SA_PR_RATE_F     ((enum MAD_FIELDS)898) /**< mad_sa_rate_gbps() */
#define MAD_SA_PR_LIFETIME_F ((enum MAD_FIELDS)899) /**< mad_sa_lifetime_us() */

/* The readers of mad.h for const images, such as the data of a struct mad_reply. */

/** Reads a field of up to 64 bits, in host order; 0 if it is not a field. */
uint64_t mad_read_field(const void *buf, int base_offs, enum MAD_FIELDS field);
/** Copies a field's bytes, mad_field:bits / 8 of them. */
void mad_read_array(const void *buf, int base_offs, enum MAD_FIELDS field, void *value);
/** Copies a text such as IB_NODE_DESC_F, NUL-terminated. Returns its whole length. */
size_t mad_read_text(const void *buf, int base_offs, enum MAD_FIELDS field, char *text,
		     size_t size);

/**
 * Copies a text that may have any bytes (NULL: "") as UTF-8 that is safe for terminals and
 * logs: control, separator and direction characters and invalid bytes become "?". Always
 * NUL-terminated, never longer than text, truncated to size; buf may be text. Returns buf.
 */
char *mad_printable_text(const char *text, char *buf, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_FIELDS_H */
