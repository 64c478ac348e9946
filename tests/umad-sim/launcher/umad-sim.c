/* SPDX-License-Identifier: BSD-2-Clause */

/* umad-sim: starts a simulated fabric and runs a program on it. The fabric is a separate
 * process that ends with this one; the program is a child with libumad-sim.so preloaded. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ask.h"
#include "check.h"
#include "fault_rules.h"
#include "folder.h"
#include "options.h"
#include "printable.h"
#include "program.h"
#include "programs.h"
#include "rules.h"
#include "topology.h"

static struct server *running;

static void __attribute__((noreturn, format(printf, 1, 2))) stop(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("umad-sim: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	exit(STATUS_FAILED);
}

/* --- the fabric's process ------------------------------------------------------- */

static void stop_serving(int signal)
{
	(void)signal;
	running->stop = true;
}

static void on_signal(int signal, void (*handler)(int signal))
{
	struct sigaction action = {.sa_handler = handler};

	sigaction(signal, &action, NULL);
}

/* If there are rules, or may be later, the default seed is random and printed. Otherwise all
 * runs are the same. */
static void choose_seed(struct options *options)
{
	bool chances =
		options->faults[0] || options->faults_file || options->mode == MODE_SERVE;

	if (options->random_seed && !chances)
		options->server.seed = 1;
	else if (options->random_seed &&
		 getrandom(&options->server.seed, sizeof(options->server.seed), 0) < 0)
		options->server.seed = (uint64_t)getpid();
	if (chances || options->server.trace)
		fprintf(stderr, "umad-sim: seed %llu\n",
			(unsigned long long)options->server.seed);
}

/* Creates the fabric and serves it. If this fails before the fabric is ready, the reason is in
 * `why`. */
static int serve(struct server *server, const struct options *options, const char *folder,
		 void (*ready)(void *context), void *context, char *why)
{
	struct topology_error wrong = {0};
	struct rules rules = {0};
	struct graph graph;
	int error;

	graph_init(&graph);
	error = topology_load(&graph, options->topology, &wrong);
	if (error) {
		snprintf(why, 256, "%s", wrong.text);
		graph_free(&graph);
		return error;
	}
	error = server_init(server, &graph, &options->server, folder, why);
	if (!error && options->mode == MODE_RUN)
		fault_hold(&server->fabric); /* until the program begins */
	if (!error) {
		error = rules_apply(&server->fabric, options, &rules);
		snprintf(why, 256, "%s", rules.why);
	}
	if (!error && options->kernel)
		error = kernel_devices_start(server, options->at, why);
	if (!error) {
		ready(context);
		error = server_run(server);
		server_disconnect(server);
		programs_end(folder);
	}
	server_free(server);
	return error;
}

/* Likewise, with a guard in case this process is killed with SIGKILL. Removes the folder. The
 * guard closes the descriptor `unused`, unless that is -1. */
static int serve_guarded(struct server *server, const struct options *options,
			 const char *folder, void (*ready)(void *context), void *context,
			 char *why, int unused)
{
	int error = guard_start(folder, unused); /* fork before this process grows */

	if (error) {
		snprintf(why, 256, "cannot start a guard process: %s", strerror(-error));
		folder_remove(folder);
		return error;
	}
	error = serve(server, options, folder, ready, context, why);
	folder_remove(folder);
	guard_release();
	return error;
}

/* The fabric ends with its launcher: with SIGKILL until it is ready, then with SIGTERM, so that
 * it removes its folder. */
static void end_with(pid_t launcher)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != launcher)
		_exit(2);
}

static void say_ready(void *context)
{
	int *pipe_end = context;
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL); /* blocked except while server_run() waits */
	on_signal(SIGTERM, stop_serving);
	prctl(PR_SET_PDEATHSIG, SIGTERM);

	if (write(*pipe_end, "", 1) != 1) /* an empty reason: the fabric is ready */
		running->stop = true;
	close(*pipe_end);
	*pipe_end = -1;
}

/* Starts the fabric's process. Returns when the fabric is ready; exits with its reason if it
 * fails. */
static pid_t start_fabric(const struct options *options, const char *folder, int lock)
{
	struct server server;
	char why[256] = "";
	int ends[2];
	pid_t child, launcher;
	ssize_t length;
	int error;

	error = pipe(ends);
	launcher = getpid();
	child = error ? -1 : fork();
	if (child < 0) {
		error = errno;
		folder_remove(folder);
		stop("cannot start the fabric's process: %s", strerror(error));
	}
	if (child == 0) {
		close(ends[0]);
		end_with(launcher);
		setsid(); /* the program gets the terminal's signals */
		running = &server;
		error = serve_guarded(&server, options, folder, say_ready, &ends[1], why,
				      ends[1]);
		if (error && ends[1] >= 0 && write(ends[1], why, strlen(why)) < 0)
			_exit(2);
		_exit(0);
	}
	close(ends[1]);
	close(lock); /* now held by the fabric's process */
	length = read(ends[0], why, sizeof(why) - 1);
	close(ends[0]);
	if (length == 1 && why[0] == '\0')
		return child;
	waitpid(child, NULL, 0);
	folder_remove(folder);
	why[length > 0 ? length : 0] = '\0';
	stop("%s", length > 0 ? why : "the fabric's process ended before it was ready");
}

/* --- the program ---------------------------------------------------------------- */

/* Gets a view of the nodes for the program. Returns 0, or a negative errno with a reason in
 * `text`. */
static int attach(const char *folder, const char *at, uint32_t *view, char *text)
{
	struct reply reply = {0};
	int error = ask(folder, REQUEST_ATTACH, at ? at : "", &reply, text, NULL);

	make_printable(text);
	if (error)
		fprintf(stderr, "umad-sim: %s%s\n",
			text[0] ? "" : "the fabric: ", text[0] ? text : strerror(-error));
	*view = reply.view;
	return error;
}

static unsigned int random_number(void)
{
	unsigned int number;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		number = (unsigned int)time(NULL);
	return number;
}

static int run(struct options *options)
{
	char folder[FOLDER_BYTES];
	char text[LONGEST_TEXT + 1];
	char name[32];
	struct reply reply;
	uint32_t view;
	int owner = -1;
	int lock;
	int result = STATUS_FAILED;
	int status = 0;
	pid_t fabric;

	choose_seed(options);
	do {
		/* containers that share the folder may have equal process IDs */
		snprintf(name, sizeof(name), "%d-%08x", getpid(), random_number());
		lock = folder_create(name, folder, text);
	} while (lock == -EADDRINUSE);
	if (lock < 0)
		stop("%s", text);
	fabric = start_fabric(options, folder, lock);
	if (!ask(folder, REQUEST_OWN, "", &reply, text, &owner) &&
	    !attach(folder, options->at, &view, text))
		result =
			program_run(options->program, folder, view, options->without_namespace);
	if (owner >= 0)
		close(owner);
	else
		kill(fabric, SIGKILL);
	while (waitpid(fabric, &status, 0) < 0 && errno == EINTR)
		;
	folder_remove(folder);
	if (WIFSIGNALED(status) && owner >= 0)
		stop("the fabric's process was killed by signal %d", WTERMSIG(status));
	return result;
}

static void announce(void *context)
{
	const struct options *options = context;

	printf("umad-sim: the fabric \"%s\" is ready\n", options->name);
	if (fflush(stdout))
		running->stop = true; /* nobody would learn that it is ready */
}

static int run_server(struct options *options)
{
	char folder[FOLDER_BYTES];
	static const int endings[] = {SIGINT, SIGTERM, SIGHUP};
	char why[256];
	struct server server;
	sigset_t signals;
	int error;

	choose_seed(options);
	if (folder_create(options->name, folder, why) < 0)
		stop("%s", why);
	running = &server;
	sigemptyset(&signals);
	for (unsigned int i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		sigaddset(&signals, endings[i]);
	/* blocked except while server_run() waits: server_init() would lose an earlier one */
	sigprocmask(SIG_BLOCK, &signals, NULL);
	for (unsigned int i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		on_signal(endings[i], stop_serving);
	error = serve_guarded(&server, options, folder, announce, options, why, -1);
	if (error)
		stop("%s", why);
	return 0;
}

static int join(const struct options *options)
{
	char folder[FOLDER_BYTES];
	char text[LONGEST_TEXT + 1];
	uint32_t view;

	if (folder_find(options->name, folder, text))
		stop("%s", text);
	return attach(folder, options->at, &view, text)
		       ? STATUS_FAILED
		       : program_run(options->program, folder, view,
				     options->without_namespace);
}

static int print_file(int fd)
{
	FILE *file = fdopen(fd, "r");
	int character = EOF;

	if (!file)
		return STATUS_FAILED;
	rewind(file); /* the fabric's writes moved the shared offset to the end */
	while ((character = getc(file)) != EOF)
		putchar(character);
	fclose(file);
	return 0;
}

static int tell(const struct options *options)
{
	char folder[FOLDER_BYTES];
	char text[LONGEST_TEXT + 1];
	int file;
	int error;

	if (folder_find(options->name, folder, text))
		stop("%s", text);
	error = ask_command(folder, options->rule, text, &file);
	if (error)
		stop("%s", text[0] ? text : strerror(-error));
	if (text[0])
		printf("%s\n", text);
	return file >= 0 ? print_file(file) : 0;
}

static int print(const struct options *options)
{
	struct topology_error wrong = {0};
	struct graph graph;

	graph_init(&graph);
	if (topology_load(&graph, options->topology, &wrong))
		stop("%s", wrong.text);
	topology_print(&graph, stdout);
	graph_free(&graph);
	return 0;
}

int main(int argc, char **argv)
{
	struct options options;
	int status;

	child_prepare();
	on_signal(SIGXFSZ, SIG_IGN); /* at a file-size limit, write() fails instead */
	read_options(argc, argv, &options);
	switch (options.mode) {
	case MODE_SERVE:
		status = run_server(&options);
		break;
	case MODE_JOIN:
		status = join(&options);
		break;
	case MODE_TELL:
		status = tell(&options);
		break;
	case MODE_PRINT:
		status = print(&options);
		break;
	case MODE_CHECK:
		status = check(&options);
		break;
	default:
		status = run(&options);
	}
	free(options.faults);
	return finish_output() ? STATUS_FAILED : status;
}
