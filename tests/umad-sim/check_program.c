/* SPDX-License-Identifier: BSD-2-Clause */

/* Whether the loader will preload the library into a program (protocol.h). */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "protocol.h"

/* An interpreter may itself be a script; Linux limits the depth (BINPRM_MAX_RECURSION). */
#define MOST_INTERPRETERS 5

#if UINTPTR_MAX > UINT32_MAX
typedef Elf64_Ehdr elf_header;
typedef Elf64_Phdr elf_segment;
#define OWN_CLASS ELFCLASS64
#else
typedef Elf32_Ehdr elf_header;
typedef Elf32_Phdr elf_segment;
#define OWN_CLASS ELFCLASS32
#endif

/* What the file of a program tells about how it is loaded. */
struct program {
	elf_header header;
	char beginning[256];   /* of a script: its first line */
	char loader[PATH_MAX]; /* of an ELF program; "": it is linked statically */
	bool is_elf, is_script;
};

static int read_loader(int fd, struct program *program)
{
	const elf_header *header = &program->header;
	elf_segment segment;
	size_t length;

	for (unsigned int i = 0; i < header->e_phnum; i++) {
		off_t at = (off_t)header->e_phoff + (off_t)i * header->e_phentsize;

		if (pread(fd, &segment, sizeof(segment), at) != (ssize_t)sizeof(segment))
			return -ENOEXEC;
		if (segment.p_type != PT_INTERP)
			continue;
		length = (size_t)segment.p_filesz;
		if (length < 2 || length > sizeof(program->loader) ||
		    pread(fd, program->loader, length, (off_t)segment.p_offset) !=
			    (ssize_t)length ||
		    program->loader[length - 1])
			return -ENOEXEC;
	}
	return 0;
}

static int read_program(const char *path, struct program *program)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t length;
	int error = 0;

	memset(program, 0, sizeof(*program));
	if (fd < 0)
		return -errno;
	length = pread(fd, program->beginning, sizeof(program->beginning) - 1, 0);
	if (length < 0)
		error = -errno;
	program->is_script = length > 2 && !strncmp(program->beginning, "#!", 2);
	program->is_elf = length > SELFMAG && !memcmp(program->beginning, ELFMAG, SELFMAG);
	if (program->is_elf && program->beginning[EI_CLASS] == OWN_CLASS &&
	    pread(fd, &program->header, sizeof(program->header), 0) ==
		    (ssize_t)sizeof(program->header))
		error = read_loader(fd, program);
	close(fd);
	return error;
}

static bool same_file(const char *a, const char *b)
{
	struct stat first, second;

	return !stat(a, &first) && !stat(b, &second) && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

/* A file with set-ID bits or capabilities: its program ignores LD_PRELOAD (ld.so(8)). */
static bool is_privileged(const char *path)
{
	struct stat status;

	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 || stat(path, &status))
		return false;
	if (status.st_mode & S_ISUID && status.st_uid != getuid())
		return true;
	if (status.st_mode & S_ISGID && status.st_mode & S_IXGRP && status.st_gid != getgid())
		return true;
	return getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
}

/* Cuts a script's first line to the interpreter's path. */
static const char *interpreter(char *line)
{
	char *path = line + 2 + strspn(line + 2, " \t");

	path[strcspn(path, " \t\r\n")] = '\0';
	return path;
}

/* The ELF header of the file that this code is linked into. */
extern const elf_header __ehdr_start __attribute__((visibility("hidden")));

/* The loader of the running program, from the segments in memory: /proc may not be mounted. */
static const char *own_loader(void)
{
	const elf_segment *segments = (const elf_segment *)(uintptr_t)getauxval(
		AT_PHDR); // NOLINT(performance-no-int-to-ptr)
	unsigned long count = getauxval(AT_PHNUM);
	uintptr_t base = 0;

	for (unsigned long i = 0; segments && i < count; i++)
		if (segments[i].p_type == PT_PHDR)
			base = (uintptr_t)segments - (uintptr_t)segments[i].p_vaddr;
	for (unsigned long i = 0; segments && i < count; i++)
		if (segments[i].p_type == PT_INTERP)
			return (const char *)(base + (uintptr_t)segments[i].p_vaddr); // NOLINT
	return "";
}

const char *check_program(const char *path, char interpreted_by[PATH_MAX])
{
	const char *loader = own_loader();
	struct program program;

	strcpy(interpreted_by, "");
	if (strlen(path) >= PATH_MAX)
		return NULL; /* exec reports the error */
	for (int depth = 0; depth < MOST_INTERPRETERS; depth++) {
		if (read_program(path, &program) == -EACCES)
			return "cannot be read: how it is linked is unknown";
		if (!program.is_script)
			break;
		strcpy(interpreted_by, interpreter(program.beginning));
		path = interpreted_by;
	}
	if (!program.is_elf)
		return NULL; /* exec reports why it is no program */
	if (geteuid() != getuid() || getegid() != getgid())
		return "would start with effective ids that are not the real ones, with which "
		       "nothing is preloaded";
	if (is_privileged(path))
		return "has set-ID bits or capabilities, with which nothing is preloaded";
	if (program.beginning[EI_CLASS] != OWN_CLASS ||
	    program.header.e_machine != __ehdr_start.e_machine)
		return "is a program for another kind of processor";
	if (!program.loader[0] && same_file(path, loader))
		return NULL; /* an explicit loader: it preloads the library into the program
			      * that it runs */
	if (!program.loader[0])
		return "is linked statically";
	if (strcmp(program.loader, loader) != 0 && !same_file(program.loader, loader))
		return "is a program of another C library";
	return NULL;
}

const char *find_program(const char *name, char buffer[PATH_MAX])
{
	const char *folder = getenv("PATH");

	if (strchr(name, '/'))
		return name;
	if (!folder)
		folder = "/bin:/usr/bin";
	for (;;) {
		int length = (int)strcspn(folder, ":");

		if (snprintf(buffer, PATH_MAX, "%.*s%s%s", length, folder, length ? "/" : "",
			     name) < PATH_MAX &&
		    !access(buffer, X_OK))
			return buffer;
		if (!folder[length])
			return name;
		folder += length + 1;
	}
}
