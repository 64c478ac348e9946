/* SPDX-License-Identifier: BSD-2-Clause */

/* InformInfo, the attribute that subscribes to notices (IBA 13.4.8.3). */
#ifndef LIBIBMAD_INFORM_INFO_H
#define LIBIBMAD_INFORM_INFO_H

#include <infiniband/mad_notice.h>
#include <infiniband/mad_sa_records.h>
#include <stdbool.h>

struct inform_info {
	struct mad_sa_inform_info wire;
	uint64_t components; /* the component mask of those that it has */
};

/* 0, or -EINVAL: the filter has what InformInfo cannot say. */
int inform_info_init(struct inform_info *info, const struct mad_notice_filter *filter);
/* Whether a response of size bytes is to this request. */
bool inform_info_is_same(const struct inform_info *info, const void *response, size_t size);

#endif
