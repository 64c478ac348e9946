/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * usage FILE PROGRAM [ARGUMENT ...]: runs a program, and writes to FILE its seconds, its
 * processor seconds and its largest memory in KiB. Exits with the program's status, with 128
 * and the number of the signal that ended it, or with 125 if it cannot run.
 */
#define _GNU_SOURCE /* wait4() */

#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static double seconds(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

int main(int argc, char **argv)
{
	double start = now();
	struct rusage usage;
	FILE *file;
	int status;
	pid_t child;

	if (argc < 3) {
		fprintf(stderr, "usage: usage FILE PROGRAM [ARGUMENT ...]\n");
		return 2;
	}
	child = fork();
	if (!child) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(125);
	}
	if (child < 0 || wait4(child, &status, 0, &usage) != child) {
		perror("usage");
		return 125;
	}
	file = fopen(argv[1], "w");
	if (!file ||
	    fprintf(file, "%.6f %.6f %ld\n", now() - start,
		    seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_maxrss) < 0 ||
	    fclose(file)) {
		perror(argv[1]);
		return 125;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
