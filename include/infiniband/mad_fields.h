/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_fields.h - the table of fields: search and iteration, for programs that print or export
 * all fields of an attribute; fields that rdma-core does not have; readers of const images.
 *
 *   const char *pc = "PortCountersExtended";
 *   for (enum MAD_FIELDS f = mad_field_next(pc, IB_NO_FIELD); f != IB_NO_FIELD;
 *        f = mad_field_next(pc, f))
 *           printf("%s: %" PRIu64 "\n", mad_field_info(f)->label, mad_read_field(data, 0, f));
 *
 * IB_NO_FIELD and the markers of enum MAD_FIELDS, such as IB_PC_LAST_F, are no fields: no call
 * returns a marker, and mad_field_info() of them is NULL.
 *
 * Memory. All texts and each struct mad_field are constant.
 *
 * Threads. Any number of threads may call these functions at once. They do not set errno. Two
 * threads must not write to one image at the same time.
 */
#ifndef INFINIBAND_MAD_FIELDS_H
#define INFINIBAND_MAD_FIELDS_H

#include <infiniband/mad.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Finds a field by the name of its constant ("IB_PORT_LID_F") or by its label ("Lid"). Several
 * fields may have the same label: a label alone finds the first of them. "PortInfo.Lid" finds
 * the field with this label in this attribute. Returns IB_NO_FIELD if no field matches, and for
 * NULL.
 */
enum MAD_FIELDS mad_field_by_name(const char *name);

/** What the table knows of a field. Members may be added at the end. */
struct mad_field {
	const char *constant; /**< the name of its constant, "IB_PORT_LID_F" */
	const char *label;    /**< as the printers write it, "Lid" */
	const char
		*attribute; /**< or header that it belongs to, as the specification names it */
	unsigned bits;      /**< its width */
};

/** What is known of a field; NULL if the number is no field. */
const struct mad_field *mad_field_info(enum MAD_FIELDS field);

/**
 * Iterates over the fields of an attribute, or with NULL over all fields, in the order of the
 * constants: pass IB_NO_FIELD to start; returns IB_NO_FIELD at the end.
 */
enum MAD_FIELDS mad_field_next(const char *attribute, enum MAD_FIELDS field);

/* --- fields that rdma-core does not have ------------------------------------------ */

/*
 * The numbers below IB_FIELD_LAST_, and those up to 895, are rdma-core's. This project's fields
 * have the numbers 896 to 1023, in the order in which they were added. Their names begin with
 * MAD_. A released number does not change, also if rdma-core adds the same field. All calls for
 * fields accept these numbers. The printers of attributes, such as mad_dump_portinfo(), print
 * the fields of rdma-core alone.
 */
#define MAD_OWN_FIELD_FIRST 896

/* PathRecord (IBA 15.2.5.16) */
#define MAD_SA_PR_PKEY_F     ((enum MAD_FIELDS)896)
#define MAD_SA_PR_MTU_F      ((enum MAD_FIELDS)897) /**< 1 to 5: 256 to 4,096 bytes */
#define MAD_SA_PR_RATE_F     ((enum MAD_FIELDS)898) /**< mad_sa_rate_gbps() */
#define MAD_SA_PR_LIFETIME_F ((enum MAD_FIELDS)899) /**< mad_sa_lifetime_us() */

/* --- readers of constant images --------------------------------------------------- */

/*
 * As mad_get_field64() and the other readers of mad.h, but of a const image, such as the data
 * of a struct mad_reply.
 */

/** A field of up to 64 bits, in host order; 0 if the number is not a field. */
uint64_t mad_read_field(const void *buf, int base_offs, enum MAD_FIELDS field);
/** Copies the bytes of a field, mad_field:bits / 8 of them, as they are on the wire. */
void mad_read_array(const void *buf, int base_offs, enum MAD_FIELDS field, void *value);
/**
 * Copies a text (IB_NODE_DESC_F, IB_SA_SR_NAME_F), which ends at its first NUL byte or with the
 * field. text has size bytes. The copy always ends with a NUL byte, and is cut if it does not
 * fit. Bytes are copied without conversion: a text may have any bytes. Returns the length of
 * the whole text without the NUL byte; 0 if the number is not a field.
 */
size_t mad_read_text(const void *buf, int base_offs, enum MAD_FIELDS field, char *text,
		     size_t size);

/**
 * Copies a text of a fabric, such as a NodeDescription, so that a terminal or a log may show
 * it. A NodeDescription may have any bytes, also those that control a terminal. text ends with
 * a NUL byte; NULL is "". The copy is UTF-8. Each of these becomes "?":
 *   - a control character (U+0000 to U+001F, U+007F to U+009F), also a tab and a new line
 *   - a character that separates lines or sets the direction of the text
 *   - each byte that is not UTF-8
 * buf has size bytes. The copy always ends with a NUL byte, unless size is 0, and is cut
 * between two characters if it does not fit. It is never longer than the text. buf may be text
 * itself. Returns buf. Any number of threads may call it at once.
 */
char *mad_printable_text(const char *text, char *buf, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_FIELDS_H */
