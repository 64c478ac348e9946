/* SPDX-License-Identifier: BSD-2-Clause */

/* ServiceRecords (IBA 15.2.5.14). */
#ifndef FABRIC_SA_SERVICES_H
#define FABRIC_SA_SERVICES_H

struct sa;

void services_free(struct sa *sa);

#endif
