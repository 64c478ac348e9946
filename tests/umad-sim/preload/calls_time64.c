/* SPDX-License-Identifier: BSD-2-Clause */

/* Calls of programs with 64-bit time on machines whose time has 32 bits by default: the C
 * library has them under separate names. */
#undef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#define _TIME_BITS        64
#include <features.h>

#include "calls.h"

#if __WORDSIZE == 32 && defined(__USE_TIME_BITS64)

int __stat64_time64(const char *path, struct stat *status);
int __lstat64_time64(const char *path, struct stat *status);
int __fstat64_time64(int fd, struct stat *status);
int __fstatat64_time64(int folder, const char *path, struct stat *status, int flags);
int __fcntl_time64(int fd, int command, ...);
int __ioctl_time64(int fd, unsigned long code, ...);
int __ppoll64(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
	      const sigset_t *signals);
int __ppoll64_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		  const sigset_t *signals, size_t size);

STAT(__stat64_time64, (const char *path, struct stat *status), instead, status)
STAT(__lstat64_time64, (const char *path, struct stat *status), instead, status)
STAT_AT(__fstatat64_time64, (int folder, const char *path, struct stat *status, int flags),
	folder, instead, status, flags)
FSTAT(__fstat64_time64, (int fd, struct stat *status), fd, status)
FCNTL(__fcntl_time64)
IOCTL(__ioctl_time64)

POLL(__ppoll64,
     (struct pollfd * fds, nfds_t count, const struct timespec *timeout,
      const sigset_t *signals),
     fds, count, timeout, signals)
POLL(__ppoll64_chk,
     (struct pollfd * fds, nfds_t count, const struct timespec *timeout,
      const sigset_t *signals, size_t size),
     fds, count, timeout, signals, size)

#endif
