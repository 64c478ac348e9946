/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_fields.h - the table of fields, to walk and to search: for programs that print or export
 * "all of PortCountersExtended" without a list of their own. (Version node IBMAD_EXT_1.0.)
 *
 *   const char *pc = "PortCountersExtended";
 *   for (enum MAD_FIELDS f = mad_attribute_next_field(pc, IB_NO_FIELD); f != IB_NO_FIELD;
 *        f = mad_attribute_next_field(pc, f))
 *           printf("%s: %" PRIu64 "\n", mad_field_name(f), mad_get_field64(data, 0, f));
 *
 * Where no field follows, these calls return IB_NO_FIELD, whose mad_field_name() is "".
 * mad_attribute_next_field() and mad_field_by_name() return no marker (IB_PC_LAST_F); a loop
 * over the numbers of enum MAD_FIELDS meets markers: mad_field_bits() of a marker is 0.
 *
 * All texts are constant. Any thread may call these at any time; none sets errno.
 *
 * Also here: mad_read_field() and three more calls, which read fields of constant images.
 */
#ifndef INFINIBAND_MAD_FIELDS_H
#define INFINIBAND_MAD_FIELDS_H

#include <infiniband/mad.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Finds a field by its constant's name ("IB_PORT_LID_F") or by its label ("Lid"). Labels are
 * not unique: "PortInfo.Lid" names the attribute, too, and a label alone finds the first.
 * Returns IB_NO_FIELD where there is none, or for NULL.
 */
enum MAD_FIELDS mad_field_by_name(const char *name);

/** The name of a field's constant, "IB_PORT_LID_F"; NULL for no field. */
const char *mad_field_constant(enum MAD_FIELDS field);

/** A field's width in bits; 0 for no field. */
unsigned mad_field_bits(enum MAD_FIELDS field);

/** The attribute or header that a field belongs to, as the specification names it; or NULL. */
const char *mad_field_attribute(enum MAD_FIELDS field);

/**
 * The field of an attribute that follows one of its fields, in the order in which they are
 * printed; after IB_NO_FIELD the first. IB_NO_FIELD after the last, or for no such attribute.
 */
enum MAD_FIELDS mad_attribute_next_field(const char *attribute, enum MAD_FIELDS field);

/** The attribute that follows one in the table; after NULL the first. NULL after the last. */
const char *mad_next_attribute(const char *attribute);

/* --- readers of constant images --------------------------------------------------- */

/*
 * As mad_get_field() and the other readers of mad.h, whose image is not constant because
 * rdma-core's prototypes have it so. These take the data of a struct mad_reply without a cast,
 * in C++, too:
 *
 *   uint32_t lid = mad_read_field(reply->data, 0, IB_PORT_LID_F);
 */

/** A field of up to 32 bits, in host order; 0 for no field. */
uint32_t mad_read_field(const void *buf, int base_offs, enum MAD_FIELDS field);
/** A field of up to 64 bits, in host order; 0 for no field. */
uint64_t mad_read_field64(const void *buf, int base_offs, enum MAD_FIELDS field);
/** Copies the bytes of a field, mad_field_bits() / 8 of them, as they are on the wire. */
void mad_read_array(const void *buf, int base_offs, enum MAD_FIELDS field, void *value);
/**
 * Copies a text (IB_NODE_DESC_F, IB_SA_SR_NAME_F), which ends at its first NUL or with the
 * field. text has room for size bytes and is always terminated; what does not fit is left out.
 * Bytes are copied as they are: a text may have any bytes. Returns the length of the whole
 * text without the NUL; 0 for no field.
 */
size_t mad_read_text(const void *buf, int base_offs, enum MAD_FIELDS field, char *text,
		     size_t size);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_FIELDS_H */
