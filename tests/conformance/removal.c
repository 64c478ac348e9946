/* SPDX-License-Identifier: BSD-2-Clause */

/* A device that is removed while programs use it, and added again. */
#include "check.h"
#include "mads.h"

#include <fcntl.h>
#include <infiniband/umad_ext.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int fd, agent;

static void take_away(void)
{
	if (!environment_asked("remove", there.ca_name))
		cannot("no device can be removed");
}

static void bring_back(void)
{
	expect(environment_asked("add", there.ca_name));
	find_ports();
}

static void opened(void)
{
	fd = open_port(&there);
	agent = client(fd, 0);
}

static void *wait_to_poll(void *result)
{
	*(int *)result = umad_poll(fd, -1);
	return NULL;
}

static void *wait_to_receive(void *result)
{
	void *umad = new_umad(MAD);
	int length = MAD;

	*(int *)result = umad_recv(fd, umad, &length, -1);
	free(umad);
	return NULL;
}

static void whoever_waits_hears_of_it(void)
{
	pthread_t polling, receiving;
	int polled = 1, received = 1;

	opened();
	expect_equal(pthread_create(&polling, NULL, wait_to_poll, &polled), 0);
	expect_equal(pthread_create(&receiving, NULL, wait_to_receive, &received), 0);
	pause_ms(100);
	take_away();
	expect_equal(pthread_join(polling, NULL), 0);
	expect_equal(pthread_join(receiving, NULL), 0);
	expect_equal(polled, -EIO);
	expect_equal(received, -EIO);
	expect_equal(umad_close_port(fd), 0);
	bring_back();
}

static void read_blocking(void *unused)
{
	void *umad = new_umad(MAD);

	(void)unused;
	(void)!read(fd, umad, umad_size() + MAD);
}

/* Nothing wakes it: a program uses O_NONBLOCK and poll(). */
static void a_read_that_blocks_does_not_return(void)
{
	struct pollfd pollfd;
	int child;

	opened();
	expect_equal(fcntl(fd, F_SETFL, 0), 0);
	child = start_child(read_blocking, NULL);
	pause_ms(200);
	take_away();
	pollfd = (struct pollfd){.fd = fd, .events = POLLIN};
	expect_equal(poll(&pollfd, 1, 20000), 1);
	expect_equal(pollfd.revents, POLLERR);
	pause_ms(300);
	expect_equal(waitpid(child, NULL, WNOHANG), 0);
	bring_back();
	pause_ms(100);
	expect_equal(waitpid(child, NULL, WNOHANG), 0);
	expect_equal(kill(child, SIGKILL), 0);
}

static void a_descriptor_without_device_is_good_for_nothing(void)
{
	struct pollfd pollfd;
	int length = MAD;
	void *umad;

	opened();
	umad = new_umad(MAD);
	set_mad(umad, METHOD_ANY, 1);
	set_destination(umad, &here);
	take_away();
	pollfd = (struct pollfd){.fd = fd, .events = POLLIN | POLLOUT};
	expect_equal(poll(&pollfd, 1, 0), 1);
	expect_equal(pollfd.revents, POLLERR);
	expect_errno(read(fd, umad, umad_size() + MAD), EIO);
	expect_errno(write(fd, umad, umad_size() + MAD), EIO);
	expect_equal(umad_recv(fd, umad, &length, 0), -EIO);
	expect_equal(umad_send(fd, agent, umad, MAD, 0, 0), -EIO);
	expect_equal(umad_register(fd, CLASS, 1, 0, NULL), -EPERM);
	expect_equal(errno, EPIPE);
	expect_equal(umad_unregister(fd, agent), -EINVAL);
	bring_back();
	expect_errno(read(fd, umad, umad_size() + MAD), EIO); /* and stays so */
	expect_equal(umad_close_port(fd), 0);
}

/* The kernel looks at the arguments first. */
static void wrong_arguments_stay_wrong_without_device(void)
{
	uint32_t id = 32;
	struct stat status;
	uint8_t *umad;
	int other;

	opened();
	other = open_device(&there, "umad", O_RDWR | O_NONBLOCK);
	umad = new_umad(MAD);
	set_mad(umad, METHOD_ANY, 1);
	take_away();
	expect_errno(read(fd, umad, umad_size() - 1), EINVAL);
	expect_errno(write(fd, umad, umad_size() + 35), EINVAL);
	memcpy(umad, &id, sizeof(id));
	expect_errno(write(fd, umad, umad_size() + MAD), EINVAL);
	expect_errno(ioctl(fd, _IO(IB_IOCTL_MAGIC, 99)), ENOTTY);
	expect_errno(ioctl(fd, IB_USER_MAD_ENABLE_PKEY), EINVAL); /* it had an agent */
	expect_equal(ioctl(other, IB_USER_MAD_ENABLE_PKEY), 0);
	expect_errno(lseek(fd, 0, SEEK_CUR), ESPIPE);
	expect_equal(fstat(fd, &status), 0);
	expect(S_ISCHR(status.st_mode));
	expect_equal(umad_close_port(fd), 0);
	bring_back();
}

static void what_was_not_read_is_lost(void)
{
	int to, responder_agent, length = MAD;
	void *umad;

	opened();
	to = open_port(&here);
	responder_agent = server(to, METHOD_ANY, 0);
	umad = new_umad(MAD);
	set_mad(umad, METHOD_ANY, 1);
	set_destination(umad, &here);
	send_mad(fd, agent, umad, MAD, 20000, 0);
	expect_equal(receive_mad(to, umad, MAD, responder_agent), MAD);
	make_response(umad);
	send_mad(to, responder_agent, umad, MAD, 0, 0);
	expect_equal(umad_poll(fd, 20000), 0);
	take_away();
	expect_equal(umad_poll(fd, 0), -EIO);
	expect_equal(umad_recv(fd, umad, &length, 0), -EIO);
	bring_back();
}

static void without_it_nothing_is_listed_or_opened(void)
{
	umad_ca_t ca;
	char path[64];

	opened();
	device_path(&there, "umad", path);
	take_away();
	expect_equal(umad_get_ca(there.ca_name, &ca), -ENODEV);
	expect_equal(umad_open_port(there.ca_name, there.portnum), -ENODEV);
	expect_errno(open(path, O_RDWR), ENOENT);
	bring_back();
}

static void when_it_is_back_all_is_as_before(void)
{
	char path[64], path_now[64];
	int old;

	opened();
	old = fd;
	device_path(&there, "umad", path);
	take_away();
	bring_back();
	device_path(&there, "umad", path_now);
	expect(!strcmp(path, path_now)); /* even while the old descriptor is open */
	opened();
	expect_equal(agent, 0);
	expect_equal(umad_poll(fd, 0), -ETIMEDOUT);
	expect_equal(umad_poll(old, 0), -EIO);
}

static void who_holds_issm_does_not_hinder_it(void)
{
	int before, issm;

	needs_issm();
	before = open_device(&there, "issm", O_RDONLY);
	expect(before >= 0);
	take_away();
	bring_back();
	issm = open_device(&there, "issm", O_RDONLY | O_NONBLOCK);
	expect(issm >= 0);
	expect_equal(close(before), 0);
	expect_errno(open_device(&there, "issm", O_RDONLY | O_NONBLOCK), EAGAIN);
}

/* A wait in the kernel would end the program, and the kernel would warn. */
static void wait_for_issm(void *unused)
{
	(void)unused;
	expect_equal(umad_open_issm(there.ca_name, there.portnum, 0), -ENODEV);
}

static void whoever_waits_for_issm_hears_of_it(void)
{
	int child, issm;

	needs_issm();
	issm = umad_open_issm(there.ca_name, there.portnum, 0);
	expect(issm >= 0);
	child = start_child(wait_for_issm, NULL);
	pause_ms(300);
	expect_equal(waitpid(child, NULL, WNOHANG), 0);
	take_away();
	expect_child(child);
	expect_equal(umad_close_issm(issm), 0);
	bring_back();
}

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		CHECK(whoever_waits_hears_of_it),
		CHECK(a_read_that_blocks_does_not_return),
		CHECK(a_descriptor_without_device_is_good_for_nothing),
		CHECK(wrong_arguments_stay_wrong_without_device),
		CHECK(what_was_not_read_is_lost),
		CHECK(without_it_nothing_is_listed_or_opened),
		CHECK(when_it_is_back_all_is_as_before),
		CHECK(who_holds_issm_does_not_hinder_it),
		CHECK(whoever_waits_for_issm_hears_of_it),
	};

	set_environment(argc, argv);
	find_ports();
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
