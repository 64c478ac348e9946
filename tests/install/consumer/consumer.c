/* SPDX-License-Identifier: BSD-2-Clause */

/* A user's program, built with the installed files. */

#include <infiniband/mad_fields.h>
#include <infiniband/umad.h>
#include <infiniband/umad_ext.h>
#include <infiniband/umad_str.h>

#include <stdio.h>

int main(void)
{
	umad_set_log_hook(NULL, NULL);
	return puts(umad_class_str(4)) < 0 || !mad_field_by_name("PortInfo.Lid") ||
	       umad_size() > sizeof(struct ib_user_mad);
}
