/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Calls on the fabric with little stack: in a thread with PTHREAD_STACK_MIN bytes, and in a
 * signal handler whose stack has SPACE bytes beyond what the kernel writes there. Inaccessible
 * memory precedes each stack. The program is linked so that the loader resolves no function
 * later, which would use this stack, too.
 */
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/ib_user_mad.h>

#define UMAD  "/dev/infiniband/umad0"
#define ISSM  "/dev/infiniband/issm0"
#define FILES "/sys/class/infiniband/mlx5_0/ports/1/"

#define SPACE     2048 /* the MINSIGSTKSZ of the processors before AVX-512 */
#define FRAME     2048 /* the most the kernel writes, if it does not say */
#define AT_FRAME  51   /* AT_MINSIGSTKSZ */
#define VARIABLES 3000 /* of a large environment */

/* Returns 0, or the line of the first call that fails. */
#define TRY(condition)                   \
	do {                             \
		if (!(condition))        \
			return __LINE__; \
	} while (0)

static int open_and_look(const char *path)
{
	struct stat status;
	int fd;

	TRY(!access(path, F_OK));
	TRY(!stat(path, &status) && S_ISCHR(status.st_mode));
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	TRY(fd >= 0);
	TRY(!fstat(fd, &status) && S_ISCHR(status.st_mode));
	TRY(fcntl(fd, F_GETFL) & O_RDWR);
	TRY(!close(fd));
	return 0;
}

static int use_device(void)
{
	struct pollfd poll_fd = {.events = POLLOUT};
	uint8_t bytes[64 + 256];
	struct iovec part = {bytes, sizeof(bytes)};
	int fd = open(UMAD, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	int copy;

	memset(bytes, 0, sizeof(bytes));
	TRY(fd >= 0);
	TRY(!ioctl(fd, IB_USER_MAD_ENABLE_PKEY));
	TRY(read(fd, bytes, sizeof(bytes)) < 0 && errno == EAGAIN);
	TRY(readv(fd, &part, 1) < 0 && errno == EAGAIN);
	TRY(write(fd, bytes, sizeof(bytes)) < 0 && errno == EIO);
	TRY(writev(fd, &part, 1) < 0 && errno == EIO);
	TRY(send(fd, bytes, sizeof(bytes), 0) < 0 && errno == ENOTSOCK);
	poll_fd.fd = fd;
	TRY(poll(&poll_fd, 1, 0) == 1);
	copy = dup(fd);
	TRY(copy >= 0 && !close(copy));
	TRY(!close(fd));
	return 0;
}

/* The calls of signal-safety(7) */
static int use_fabric(void)
{
	char text[256];
	int line, fd;

	line = open_and_look(UMAD);
	line = line ? line : open_and_look(ISSM);
	line = line ? line : open_and_look("/dev/../dev//infiniband/./umad0");
	line = line ? line : use_device();
	if (line)
		return line;
	fd = open(FILES "cap_mask", O_RDONLY | O_CLOEXEC);
	TRY(fd >= 0);
	TRY(read(fd, text, sizeof(text)) > 0);
	TRY(!close(fd));
	TRY(readlink("/sys/class/infiniband/mlx5_0", text, sizeof(text)) > 0);
	TRY(open("/dev/null/infiniband", O_RDONLY) < 0 && errno == ENOTDIR);
	TRY(!chdir("/dev/infiniband"));
	TRY(!access("umad0", F_OK));
	TRY(!chdir("/"));
	return open_and_look("dev/infiniband/umad0");
}

/* In a child process, so that a signal ends only the child. */
static void ends_well(int (*run)(void))
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		int line = run();

		if (line)
			printf("%s:%d: errno %d\n", __FILE__, line, errno);
		fflush(stdout);
		_exit(line ? 1 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : 0, 0);
	assert_int_equal(status, 0);
}

/* --- signal handlers -------------------------------------------------------------- */

static volatile sig_atomic_t line_of_handler;

static void handle(int signal)
{
	(void)signal;
	line_of_handler = use_fabric();
}

/* How many bytes of a stack were written: those above the first byte other than 0xa5. */
static size_t used_bytes(const uint8_t *stack, size_t size)
{
	size_t unused = 0;

	while (unused < size && stack[unused] == 0xa5)
		unused++;
	return size - unused;
}

static int on_signal_stack(void)
{
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t frame = getauxval(AT_FRAME) ? getauxval(AT_FRAME) : FRAME;
	size_t size = frame + SPACE, pages = (size + page - 1) / page * page;
	uint8_t *memory =
		mmap(NULL, page + pages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = {.ss_sp = memory + page, .ss_size = size};

	TRY(memory != MAP_FAILED);
	TRY(!mprotect(memory + page, pages, PROT_READ | PROT_WRITE));
	memset(memory + page, 0xa5, pages);
	TRY(!sigaltstack(&stack, NULL));
	TRY(!sigaction(SIGUSR1, &action, NULL));
	TRY(!raise(SIGUSR1));
	printf("%zu bytes of the stack are used, of which the kernel has up to %zu\n",
	       used_bytes(memory + page, size), frame);
	return line_of_handler;
}

TEST(a_handler_on_a_small_signal_stack_uses_the_fabric)
{
	ends_well(on_signal_stack);
}

/* --- threads ---------------------------------------------------------------------- */

static void *run_in_thread(void *argument)
{
	int (*run)(void);

	memcpy(&run, argument, sizeof(run));
	return (void *)(intptr_t)run();
}

/* Returns the line of the first call that fails. */
static int in_small_thread(int (*run)(void))
{
	pthread_attr_t attributes;
	pthread_t thread;
	void *line;

	TRY(!pthread_attr_init(&attributes));
	TRY(!pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN));
	TRY(!pthread_create(&thread, &attributes, run_in_thread, &run));
	TRY(!pthread_join(thread, &line));
	return (int)(intptr_t)line;
}

static int use_all_in_thread(void)
{
	return in_small_thread(use_fabric);
}

TEST(a_thread_with_the_smallest_stack_uses_the_fabric)
{
	ends_well(use_all_in_thread);
}

static int use_folders(void)
{
	struct dirent *entry;
	DIR *folder = opendir("/dev/infiniband");
	FILE *file = fopen(FILES "lid", "r");
	char text[64];

	TRY(folder && file);
	while ((entry = readdir(folder)))
		TRY(strncmp(entry->d_name, "umad", 4) != 0 || entry->d_type == DT_CHR);
	TRY(!closedir(folder));
	TRY(fgets(text, sizeof(text), file));
	TRY(!fclose(file));
	return 0;
}

static int use_folders_in_thread(void)
{
	return in_small_thread(use_folders);
}

TEST(a_thread_with_the_smallest_stack_reads_folders_and_files)
{
	ends_well(use_folders_in_thread);
}

/* Runs test(1), a separate program, which must be on the fabric, too. */
static int spawn(char *const environment[])
{
	char *arguments[] = {(char *)(uintptr_t) "test", (char *)(uintptr_t) "-e",
			     (char *)(uintptr_t)UMAD, NULL};
	pid_t child;
	int status;

	TRY(!posix_spawnp(&child, "test", NULL, NULL, arguments, environment));
	TRY(waitpid(child, &status, 0) == child);
	TRY(WIFEXITED(status) && !WEXITSTATUS(status));
	return 0;
}

static char **of_program;

static int spawn_here(void)
{
	return spawn(of_program);
}

static int spawn_in_thread(void)
{
	return in_small_thread(spawn_here);
}

static int run_shell(void)
{
	TRY(!system("test -e " UMAD));
	return 0;
}

static int run_shell_in_thread(void)
{
	return in_small_thread(run_shell);
}

TEST(a_thread_with_the_smallest_stack_starts_programs)
{
	of_program = environ;
	ends_well(spawn_in_thread);
	ends_well(run_shell_in_thread);
}

TEST(a_thread_with_the_smallest_stack_starts_programs_with_an_empty_environment)
{
	char *nothing[] = {NULL};
	char *with_library[] = {(char *)(uintptr_t) "LD_PRELOAD=libm.so.6", NULL};

	of_program = nothing;
	ends_well(spawn_in_thread);
	of_program = with_library;
	ends_well(spawn_in_thread);
}

TEST(a_thread_with_the_smallest_stack_starts_programs_with_many_variables)
{
	static char *many[VARIABLES + 1];
	int handles[50];

	for (size_t i = 0; i < VARIABLES; i++)
		many[i] = (char *)(uintptr_t) "VARIABLE=value";
	of_program = many;
	ends_well(spawn_in_thread);
	for (size_t i = 0; i < 50; i++) {
		handles[i] = open(UMAD, O_RDWR); /* inherited */
		assert_true(handles[i] >= 0);
	}
	ends_well(spawn_in_thread);
	of_program = environ;
	ends_well(spawn_in_thread);
	for (size_t i = 0; i < 50; i++)
		close(handles[i]);
}
