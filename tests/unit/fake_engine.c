/* SPDX-License-Identifier: BSD-2-Clause */

/* The machine of libibmad's tests. */

#include "fake_device_state.h"

int device_setup(void)
{
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
