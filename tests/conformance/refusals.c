/* SPDX-License-Identifier: BSD-2-Clause */

/* What write() does not accept. */
#include "check.h"
#include "mads.h"

#include <string.h>
#include <unistd.h>

#define UNUSED_GID_INDEX 7 /* an empty entry of the GID table */

static int fd, agent;
static uint8_t *umad;

static void opened(uint8_t rmpp_version)
{
	fd = open_port(&here);
	agent = client(fd, rmpp_version);
	umad = new_umad(4 * MAD);
	set_mad(umad, METHOD_ANY, 1);
	set_destination(umad, &there);
	memcpy(umad, &agent, sizeof(agent));
}

static void expect_refused(size_t mad_bytes, int error)
{
	expect_errno(write(fd, umad, umad_size() + mad_bytes), error);
}

static void expect_taken(size_t mad_bytes)
{
	expect_equal(write(fd, umad, umad_size() + mad_bytes), (umad_size() + mad_bytes));
}

static void what_has_no_room_for_an_rmpp_header(void)
{
	opened(0);
	expect_refused(0, EINVAL);
	expect_refused(35, EINVAL);
	set_mad_of(umad, 0x08, METHOD_ANY, 1); /* the offset of the data is smaller */
	expect_taken(36);
}

static void what_ends_before_its_classs_data(void)
{
	opened(1);
	expect_refused(DATA - 1, EINVAL);
	expect_taken(DATA);
	set_mad_of(umad, 0x03, METHOD_ANY, 1);
	expect_refused(55, EINVAL);
	expect_taken(56);
}

static void what_is_longer_than_a_mad_without_rmpp(void)
{
	opened(0);
	expect_refused(MAD + 1, EINVAL);
	expect_taken(MAD);
	set_rmpp(umad); /* an agent without RMPP */
	expect_refused(MAD + 1, EINVAL);
	opened(1);
	expect_refused(MAD + 1, EINVAL); /* the RMPP flag is not set */
	set_rmpp(umad);
	expect_taken(MAD + 1);
}

static void what_comes_from_no_agent(void)
{
	uint32_t id = 5;

	opened(0);
	memcpy(umad, &id, sizeof(id));
	expect_refused(MAD, EIO);
	id = 32;
	memcpy(umad, &id, sizeof(id));
	expect_refused(MAD, EINVAL);
	expect_equal(umad_unregister(fd, agent), 0);
	memcpy(umad, &agent, sizeof(agent));
	expect_refused(MAD, EIO);
}

static void the_library_passes_the_reason_on(void)
{
	opened(0);
	expect_equal(umad_send(fd, 5, umad, MAD, 0, 0), -EIO);
	expect_equal(errno, EIO);
	expect_equal(umad_send(fd, agent, umad, MAD + 1, 0, 0), -EIO);
	expect_equal(errno, EINVAL);
	expect_equal(umad_send(fd, agent, umad, 20, 0, 0), -EIO);
	expect_equal(errno, EINVAL);
}

static void roce_without_grh(void)
{
	opened(0);
	if (!here.ethernet)
		cannot("the link layer is InfiniBand");
	umad_set_grh(umad, NULL);
	expect_refused(MAD, EINVAL);
}

static void roce_from_an_empty_gid_index(void)
{
	opened(0);
	if (!here.ethernet)
		cannot("the link layer is InfiniBand");
	umad_get_mad_addr(umad)->gid_index = UNUSED_GID_INDEX;
	expect_refused(MAD, ENODATA);
}

static void roce_to_where_nobody_is(void)
{
	opened(0);
	if (!here.ethernet)
		cannot("the link layer is InfiniBand");
	umad_get_mad_addr(umad)->gid[15] ^= 0x55;
	expect_refused(MAD, ETIMEDOUT);
}

static void a_refused_transaction_can_be_begun(void)
{
	opened(0);
	expect_refused(MAD + 1, EINVAL);
	expect_taken(MAD);
	if (here.ethernet) {
		set_mad(umad, METHOD_ANY, 2);
		umad_set_grh(umad, NULL);
		expect_refused(MAD, EINVAL);
		set_destination(umad, &there);
		expect_taken(MAD);
	}
}

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		CHECK(what_has_no_room_for_an_rmpp_header),
		CHECK(what_ends_before_its_classs_data),
		CHECK(what_is_longer_than_a_mad_without_rmpp),
		CHECK(what_comes_from_no_agent),
		CHECK(the_library_passes_the_reason_on),
		CHECK(roce_without_grh),
		CHECK(roce_from_an_empty_gid_index),
		CHECK(roce_to_where_nobody_is),
		CHECK(a_refused_transaction_can_be_begun),
	};

	set_environment(argc, argv);
	find_ports();
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
