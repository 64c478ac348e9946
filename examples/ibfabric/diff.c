/* SPDX-License-Identifier: BSD-2-Clause */

/* diff and store: a fabric in a file, and what has changed since then. */

#include "ibfabric.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

int run_diff(void)
{
	struct mad_fabric *before, *after;
	bool *told;

	if (!settings.arguments[0] || (settings.arguments[1] && settings.arguments[2]))
		die("diff: give one file, or two; ibfabric diff --help tells more");
	before = load(settings.arguments[0]);
	after = settings.arguments[1] ? load(settings.arguments[1]) : discover(before);
	settings.arguments += settings.arguments[1] ? 2 : 1;
	told = allocate(after->port_count, sizeof(*told));
	check_expected(before, after, told);
	print_findings(after);
	free(told);
	return finding_count() ? EXIT_FOUND : failure_count() ? EXIT_FAILED : EXIT_CLEAN;
}

/* A file is replaced when it is complete. */
static void store_in(const struct mad_fabric *fabric, const char *path)
{
	char *name;
	FILE *file;
	int error, descriptor;

	if (asprintf(&name, "%s.XXXXXX", path) < 0)
		die("out of memory");
	descriptor = mkstemp(name);
	file = descriptor < 0 ? NULL : fdopen(descriptor, "w");
	if (!file)
		die("%s: %s", name, strerror(errno));
	error = mad_fabric_store(fabric, file, NULL);
	print_failures(file, "# not known: ");
	fchmod(descriptor, 0644);
	if (fflush(file) || fsync(descriptor) || ferror(file))
		error = error ? error : -errno;
	fclose(file);
	if (!error && rename(name, path))
		error = -errno;
	if (error)
		unlink(name);
	if (error)
		die("%s: %s", path, strerror(-error));
	free(name);
}

int run_store(void)
{
	const char *path = settings.arguments[0];
	struct mad_fabric *fabric;

	if (path && settings.arguments[1])
		die("store: give one file; ibfabric store --help tells more");
	fabric = discover(NULL);
	if (path && strcmp(path, "-") != 0) {
		store_in(fabric, path);
	} else {
		mad_fabric_store(fabric, stdout, NULL);
		print_failures(stdout, "# not known: ");
	}
	print_failures(stderr, "ibfabric: not known: ");
	return failure_count() ? EXIT_FAILED : EXIT_CLEAN;
}
