/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * For the checks that run on the machine of the unit tests: the fabric, and two functions in
 * place of check.h's and environment.h's (--wrap). The fabric is in the memory of one process,
 * so a server, which is a child process elsewhere, is a thread, and what needs a process is
 * left out.
 */
#include "check.h"
#include "environment.h"
#include "machine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int __wrap_start_child(void (*run)(void *), void *argument);
bool __wrap_environment_asked(const char *verb, const char *argument);
int __real_run_checks(const struct check *checks, size_t count);
int __wrap_run_checks(const struct check *checks, size_t count);

static void __attribute__((constructor)) begin(void)
{
	machine_start("fat-tree:4,2", "host-1,host-2");
}

struct job {
	void (*run)(void *);
	int pipe;
};

static void *run_job(void *argument)
{
	struct job *job = argument;

	job->run(&job->pipe);
	return NULL;
}

/*
 * The argument of a server is a pipe, of which a child has a descriptor of its own. The child
 * process that is returned can be waited for and killed, and does nothing.
 */
int __wrap_start_child(void (*run)(void *), void *argument)
{
	struct job *job = allocate(sizeof(*job));
	pthread_t thread;
	pid_t child;

	*job = (struct job){run, argument ? dup(*(int *)argument) : -1};
	expect_equal(pthread_create(&thread, NULL, run_job, job), 0);
	child = fork();
	if (!child)
		pause();
	return child;
}

/* The rules of hook-simulated. */
bool __wrap_environment_asked(const char *verb, const char *argument)
{
	int host = atoi(argument + strcspn(argument, "_") + 1) + 1;

	if (!strcmp(verb, "remove") || !strcmp(verb, "add"))
		machine_rule("%s on host-%d", verb, host);
	else if (!strcmp(verb, "connect") || !strcmp(verb, "disconnect"))
		machine_rule("link %s on host-%d", strcmp(verb, "connect") ? "down" : "up",
			     host);
	else
		return false;
	return true;
}

#define NO_NODE  "the machine has no device nodes and no issm devices"
#define ONE      "the machine is in one process, and a handle has one descriptor"
#define NO_BLOCK "reading from the machine does not block"

static const struct {
	const char *check, *reason;
} left_out[] = {
	{"umad_nodes_are_character_devices_of_the_superuser", NO_NODE},
	{"issm_nodes_are_character_devices_of_the_superuser", NO_NODE},
	{"entries_of_the_class_are_links", NO_NODE},
	{"a_node_repeats_its_trap_until_it_is_repressed", NO_NODE},
	{"a_child_and_a_copy_have_the_same_device", ONE},
	{"a_read_that_may_block_waits_for_a_response", NO_BLOCK},
};

static const char *why_not(const char *check)
{
	for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
		if (!strcmp(left_out[i].check, check))
			return left_out[i].reason;
	return NULL;
}

int __wrap_run_checks(const struct check *checks, size_t count)
{
	struct check *kept = allocate(count * sizeof(*kept));
	size_t kept_count = 0;
	int status;

	for (size_t i = 0; i < count; i++) {
		const char *reason = why_not(checks[i].name);

		if (reason)
			printf("%s\n  not here: %s\n  LEFT OUT\n", checks[i].name, reason);
		else
			kept[kept_count++] = checks[i];
	}
	status = __real_run_checks(kept, kept_count);
	free(kept);
	return status;
}
