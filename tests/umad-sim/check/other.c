/* SPDX-License-Identifier: BSD-2-Clause */

/* A 32-bit program without a C library, for a 64-bit machine: looks for a device of the machine
 * that the script "namespace" makes. */
static int call(int number, int first, const void *second, int third)
{
	int result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(number), "b"(first), "c"(second), "d"(third)
			 : "memory");
	return result;
}

static void print(const char *text)
{
	int length = 0;

	while (text[length])
		length++;
	call(4, 1, text, length);
}

void _start(void);

void _start(void)
{
	static const char node[] = "/dev/infiniband/umad9";

	if (call(5, (int)node, 0, 0) >= 0)
		print("machine: open\n");
	print("looked\n");
	call(1, 0, 0, 0);
}
