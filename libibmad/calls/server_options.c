/* SPDX-License-Identifier: BSD-2-Clause */

#include "calls/server_options.h"

#include "mad/layout.h"

#include <infiniband/umad.h>
#include <errno.h>

#define LIMIT_MAX          65536
#define METHODS            128
#define COMMON_HEADER_SIZE 24
#define DATA_OFFSET_MAX    192

static unsigned default_offset(int mgmt_class)
{
	if (mgmt_class == IB_SA_CLASS)
		return IB_SA_DATA_OFFS;
	if (mad_is_vendor_range2(mgmt_class))
		return IB_VENDOR_RANGE2_DATA_OFFS;
	if (mad_is_vendor_range1(mgmt_class))
		return IB_VENDOR_RANGE1_DATA_OFFS;
	return IB_SMP_DATA_OFFS;
}

unsigned server_data_offset(const struct mad_server_options *options)
{
	return options->data_offset ? options->data_offset
				    : default_offset(options->mgmt_class);
}

/* Classes whose MADs have an RMPP header (IBA 13.6.2), as the kernel knows them. */
static bool may_have_rmpp(int mgmt_class)
{
	return mgmt_class == IB_SA_CLASS || mgmt_class == IB_DEVICE_MGMT_CLASS ||
	       mgmt_class == 0x10 || mgmt_class == 0x12 || mad_is_vendor_range2(mgmt_class);
}

/* Behind what a response's header must have: the common header, the RMPP header, the OUI. */
static unsigned least_offset(const struct mad_server_options *options)
{
	if (mad_is_vendor_range2(options->mgmt_class))
		return IB_VENDOR_RANGE2_DATA_OFFS;
	return options->rmpp_version ? RMPP_HEADER_END : COMMON_HEADER_SIZE;
}

bool server_options_are_valid(const struct mad_server_options *options)
{
	int mgmt_class = options->mgmt_class;
	unsigned offset = options->data_offset;

	if (!is_known_class(mgmt_class) || options->limit > LIMIT_MAX ||
	    (!options->methods[0] && !options->methods[1]) ||
	    (offset && (offset < least_offset(options) || offset > DATA_OFFSET_MAX)))
		return false;
	for (unsigned i = 0; i < sizeof(options->reserved) / sizeof(*options->reserved); i++)
		if (options->reserved[i])
			return false;
	if (mad_is_vendor_range2(mgmt_class) ? !options->oui || options->oui > 0xffffff
					     : options->oui)
		return false;
	return options->rmpp_version == 0 ||
	       (options->rmpp_version == RMPP_VERSION && may_have_rmpp(mgmt_class));
}

int server_register(const struct link *link, const struct mad_server_options *options)
{
	long mask[16 / sizeof(long)] = {0};
	uint8_t oui[3] = {(uint8_t)(options->oui >> 16), (uint8_t)(options->oui >> 8),
			  (uint8_t)options->oui};
	int mgmt_class = options->mgmt_class, agent;

	for (unsigned i = 0; i < METHODS; i++)
		if (options->methods[i / 64] >> i % 64 & 1)
			mask[i / (8 * sizeof(long))] |= (long)(1UL << i % (8 * sizeof(long)));
	errno = 0;
	if (mad_is_vendor_range2(mgmt_class))
		agent = umad_register_oui(link->fd, mgmt_class, (uint8_t)options->rmpp_version,
					  oui, mask);
	else
		agent = umad_register(link->fd, mgmt_class, class_version(mgmt_class),
				      (uint8_t)options->rmpp_version, mask);
	if (agent >= 0)
		return agent;
	/* all else that the kernel calls invalid was checked */
	if (errno == EINVAL)
		return -EADDRINUSE;
	return errno == EPIPE ? -ENODEV : errno ? -errno : -EIO;
}
