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
int64_t __real_flow_look_at(const struct flow_control *flow, const struct flow_account *account,
			    int64_t now);
int64_t __wrap_flow_look_at(const struct flow_control *flow, const struct flow_account *account,
			    int64_t now);
int64_t __real_flow_sent(struct flow_control *flow, struct flow_account *account, int64_t now);
int64_t __wrap_flow_sent(struct flow_control *flow, struct flow_account *account, int64_t now);

uint32_t __wrap_flow_late_after(const struct flow_control *flow,
				const struct flow_account *account)
{
	uint32_t us = late_after_us;

	return us ? us : __real_flow_late_after(flow, account);
}

/* The time does not become shorter. */
int64_t __wrap_flow_look_at(const struct flow_control *flow, const struct flow_account *account,
			    int64_t now)
{
	return late_after_us ? account->sent + late_after_us
			     : __real_flow_look_at(flow, account, now);
}

int64_t __wrap_flow_sent(struct flow_control *flow, struct flow_account *account, int64_t now)
{
	int64_t at = __real_flow_sent(flow, account, now);

	return late_after_us ? now + late_after_us : at;
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
