/* SPDX-License-Identifier: BSD-2-Clause */

/* The machine of libibmad's tests. */

#include "fake_device_state.h"
#include "flow/flow.h"
#include "late_responses.h"

#include <stdatomic.h>

static atomic_uint late_after_us;

uint32_t __real_flow_late_after(const struct flow_control *flow,
				const struct flow_account *account);
uint32_t __wrap_flow_late_after(const struct flow_control *flow,
				const struct flow_account *account);
bool __real_flow_looks_again(const struct flow_control *flow,
			     const struct flow_account *account);
bool __wrap_flow_looks_again(const struct flow_control *flow,
			     const struct flow_account *account);

uint32_t __wrap_flow_late_after(const struct flow_control *flow,
				const struct flow_account *account)
{
	uint32_t us = late_after_us;

	return us ? us : __real_flow_late_after(flow, account);
}

/* The time does not become shorter. */
bool __wrap_flow_looks_again(const struct flow_control *flow,
			     const struct flow_account *account)
{
	return !late_after_us && __real_flow_looks_again(flow, account);
}

void set_late_after(uint32_t microseconds)
{
	late_after_us = microseconds;
}

int device_setup(void)
{
	set_late_after(0);
	if (begin_machine(false))
		return -1;
	if (fake.pristine) {
		fake_device("umad0");
		fake_device("issm0");
		return 0;
	}
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 0x00a00b11);
	fake_umad(0, "mlx5_0", 1);
	fake.pristine = true;
	return 0;
}

int device_teardown(void)
{
	return fake_teardown();
}

void device_file(const char *path, const char *text)
{
	if (text)
		fake_file(path, "%s", text);
	else
		fake_remove(path);
}
