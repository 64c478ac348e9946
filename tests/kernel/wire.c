/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * wire DEVICE FILE: writes the RoCE v2 packets of a network device to FILE, with libpcap, until
 * SIGTERM. Prints "ready" when the capture has begun. Fails if libpcap lost a packet.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <pcap/pcap.h>

#define BUFFER_BYTES (16 << 20)

static pcap_t *device;

static void stop(int signal)
{
	(void)signal;
	pcap_breakloop(device);
}

static void __attribute__((noreturn)) fail(const char *what)
{
	fprintf(stderr, "wire: %s: %s\n", what, pcap_geterr(device));
	exit(1);
}

static void open_wire(const char *name)
{
	char why[PCAP_ERRBUF_SIZE];
	struct bpf_program filter;

	device = pcap_create(name, why);
	if (!device) {
		fprintf(stderr, "wire: %s: %s\n", name, why);
		exit(1);
	}
	pcap_set_snaplen(device, 4096);
	pcap_set_buffer_size(device, BUFFER_BYTES);
	/* libpcap must not wait for a full block: the last packets would be missing */
	pcap_set_immediate_mode(device, 1);
	if (pcap_activate(device) < 0)
		fail(name);
	if (pcap_compile(device, &filter, "udp port 4791", 1, PCAP_NETMASK_UNKNOWN) ||
	    pcap_setfilter(device, &filter))
		fail("the filter");
	pcap_freecode(&filter);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = stop};
	char why[PCAP_ERRBUF_SIZE];
	struct pcap_stat lost;
	pcap_dumper_t *file;

	if (argc != 3) {
		fputs("usage: wire DEVICE FILE\n", stderr);
		return 2;
	}
	open_wire(argv[1]);
	file = pcap_dump_open(device, argv[2]);
	if (!file)
		fail(argv[2]);
	sigaction(SIGTERM, &action, NULL);
	puts("ready");
	fflush(stdout);
	if (pcap_loop(device, -1, pcap_dump, (u_char *)file) != PCAP_ERROR_BREAK)
		fail(argv[1]);
	/* packets that arrived before the signal */
	if (pcap_setnonblock(device, 1, why) ||
	    pcap_dispatch(device, -1, pcap_dump, (u_char *)file) < 0 ||
	    pcap_stats(device, &lost))
		fail(argv[1]);
	pcap_dump_close(file);
	pcap_close(device);
	if (lost.ps_drop)
		fprintf(stderr, "wire: %u packets were lost\n", lost.ps_drop);
	return lost.ps_drop ? 1 : 0;
}
