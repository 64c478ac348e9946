/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * report [--fabric] [--rate N] [--store FILE] [--names FILE] [--counters LID,PORT] [CA [PORT]]
 *
 * Prints what a port, its switch and the SA respond to Gets, and with --fabric the whole
 * fabric. --store writes the fabric as ibnetdiscover prints it, --names the descriptions of
 * its nodes. --counters prints the counters of a port alone, as the fields of
 * PortCounters. Nothing is set.
 *
 * Does nothing without the guard (guard.c) in its process.
 *
 * Exits with 0 and a report, in which lines that begin with "WRONG" describe failures; with 77
 * if there is no device, or no right to open it; with 2 if the arguments make no sense.
 */
#include "report.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <infiniband/mad_counters.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#define CANNOT       77
#define RATE_DEFAULT 200

void part(const char *title)
{
	printf("\n== %s ==\n", title);
}

static void __attribute__((format(printf, 2, 0)))
line(const char *before, const char *format, va_list arguments)
{
	printf("%s", before);
	vprintf(format, arguments);
	putchar('\n');
}

void wrong(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	line("WRONG: ", format, arguments);
	va_end(arguments);
}

void fact(const char *name, const char *format, ...)
{
	va_list arguments;
	char before[64];

	snprintf(before, sizeof(before), "%s%s%*s", name, *name ? ":" : " ",
		 strlen(name) < 26 ? (int)(26 - strlen(name)) : 1, "");
	va_start(arguments, format);
	line(before, format, arguments);
	va_end(arguments);
}

uint64_t clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* The first line of a file, or "". */
static const char *first_line(const char *path)
{
	static char text[128];
	FILE *file = fopen(path, "r");

	text[0] = '\0';
	if (file) {
		if (!fgets(text, sizeof(text), file))
			text[0] = '\0';
		fclose(file);
	}
	text[strcspn(text, "\n")] = '\0';
	return text;
}

/* If the device does not have the file, prints no line. */
static void ca_fact(const char *name, const char *ca, const char *file)
{
	char path[128];

	snprintf(path, sizeof(path), SYS_INFINIBAND "/%s/%s", ca, file);
	if (*first_line(path))
		fact(name, "%s", first_line(path));
}

static void print_driver(const char *ca)
{
	char path[128], target[256] = "";

	snprintf(path, sizeof(path), SYS_INFINIBAND "/%s/device/driver", ca);
	if (readlink(path, target, sizeof(target) - 1) > 0)
		fact("driver", "%s", strrchr(target, '/') ? strrchr(target, '/') + 1 : target);
}

/* Modules that are not part of the kernel's release have their own version. */
static void print_modules(void)
{
	static const char *const modules[] = {"ib_core",   "ib_umad", "mlx4_ib",
					      "mlx5_core", "mlx5_ib", "hfi1",
					      "qib",       "irdma",   "rdma_rxe"};
	char path[64];

	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		snprintf(path, sizeof(path), "/sys/module/%s", modules[i]);
		if (access(path, F_OK))
			continue;
		snprintf(path, sizeof(path), "/sys/module/%s/version", modules[i]);
		fact(modules[i], "%s", *first_line(path) ? first_line(path) : "the kernel's");
	}
}

static void print_system(const char *ca)
{
	struct utsname system;

	part("system");
	fact("libibumad, libibmad", "%s", PACKAGE_VERSION);
	if (!uname(&system))
		fact("kernel", "%s %s", system.release, system.machine);
	fact("processors", "%ld", sysconf(_SC_NPROCESSORS_ONLN));
	fact("umad ABI", "%s", first_line(SYS_INFINIBAND_MAD "/abi_version"));
	print_modules();
	print_driver(ca);
	ca_fact("type", ca, "hca_type");
	ca_fact("board", ca, "board_id");
	ca_fact("firmware", ca, "fw_ver");
	ca_fact("hardware", ca, "hw_rev");
	ca_fact("node type", ca, "node_type");
}

static void print_port(const umad_port_t *port, unsigned rate)
{
	part("port");
	fact("link layer", "%s", port->link_layer);
	fact("port", "%d", port->portnum);
	fact("state", "%d, physical %d", port->state, port->phys_state);
	fact("rate", "%u Gb/s", port->rate);
	fact("LID", "%u, LMC %u", port->base_lid, port->lmc);
	fact("LID of the SM", "%u, SL %u", port->sm_lid, port->sm_sl);
	fact("CapabilityMask", "0x%08x", be32toh(port->capmask));
	fact("P_Keys", "%u", port->pkeys_size);
	if (rate)
		fact("limit", "%u MADs a second leave the port", rate);
	else
		fact("limit", "none");
}

static void print_window(const char *name, const struct mad_flow_stats *flow)
{
	if (!flow->rtt_smoothed_us && !flow->queue_losses && !flow->link_losses)
		return;
	fact(name,
	     "window %u, round trip %u us shortest, %u us smoothed, %u responses a second",
	     flow->window, flow->rtt_shortest_us, flow->rtt_smoothed_us, flow->delivery_rate);
	fact("", "lost: %" PRIu64 " by queues, %" PRIu64 " by links; %u in a million late%s",
	     flow->queue_losses, flow->link_losses, flow->link_loss_ppm,
	     flow->silent ? "; silent" : "");
}

void print_flow(struct site *site)
{
	struct mad_async_stats stats;

	if (mad_async_get_stats(site->async, &stats, sizeof(stats)))
		return;
	fact("so far",
	     "%" PRIu64 " requests, %" PRIu64 " MADs sent, %" PRIu64
	     " retransmissions, %" PRIu64 " timed out, %" PRIu64 " dropped, %" PRIu64 " busy",
	     stats.submitted, stats.sent, stats.retried, stats.timed_out, stats.dropped,
	     stats.busy);
	print_window("SMPs", &stats.smp);
	print_window("GMPs", &stats.gmp);
}

/*
 * The port, if no port was named: libibumad's choice, or the first port of the first device.
 * RoCE ports are used only if they are named.
 */
static int find_port(const char *ca, int number, umad_port_t *port)
{
	char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN];

	if (!umad_get_port(ca, number, port))
		return 0;
	if (ca || umad_get_cas_names(names, UMAD_MAX_DEVICES) < 1)
		return -1;
	return umad_get_port(names[0], 1, port);
}

static int open_site(struct site *site)
{
	bool ethernet = !strcmp(site->local->link_layer, "Ethernet");
	int all[] = {IB_SMI_DIRECT_CLASS, IB_SMI_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS};

	site->port = ethernet ? mad_rpc_open_port(site->local->ca_name, site->local->portnum,
						  &all[3], 1)
			      : mad_rpc_open_port(site->local->ca_name, site->local->portnum,
						  all, 4);
	if (!site->port)
		return -1;
	site->async = mad_async_create(site->port);
	if (!site->async)
		return -1;
	mad_port_set(site->port, MAD_PORT_RATE, site->rate);
	return 0;
}

static int print_basic_counters(struct site *site, const char *text)
{
	struct mad_counters_options options = {.basic = true};
	const struct mad_counter_info *info;
	struct mad_counters counters;
	ib_portid_t to = {0};
	unsigned number;

	if (sscanf(text, "%d,%u", &to.lid, &number) != 2 ||
	    mad_counters_read(site->port, &to, number, &options, &counters, sizeof(counters)))
		return 1;
	for (unsigned i = 0; (info = mad_counters_info(i)); i++)
		if (counters.present & MAD_COUNTER_BIT(i))
			printf("%s %" PRIu64 "\n", info->field,
			       mad_counters_value(&counters, i, NULL) / info->multiplier);
	return 0;
}

static void print_report(struct site *site, bool whole_fabric, const char *store,
			 const char *names)
{
	const umad_port_t *port = site->local;

	print_system(port->ca_name);
	print_port(port, site->rate);
	if (!strcmp(port->link_layer, "Ethernet")) {
		measure_ethernet(site);
	} else {
		measure_local(site);
		measure_peer(site);
		measure_sa(site);
		if (whole_fabric)
			measure_fabric(site, store, names);
	}
	/* for the script: the ports whose counters it compares */
	if (names)
		printf("@ %s %d %u %d %u\n", port->ca_name, port->portnum, port->base_lid,
		       site->peer_lid, site->peer_port);
}

static int usage(void)
{
	fprintf(stderr, "usage: report [--fabric] [--rate N] [--store FILE] [--names FILE] "
			"[--counters LID,PORT] [CA [PORT]]\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"fabric", no_argument, NULL, 'f'},
						{"rate", required_argument, NULL, 'r'},
						{"store", required_argument, NULL, 's'},
						{"names", required_argument, NULL, 'n'},
						{"counters", required_argument, NULL, 'c'},
						{0}};
	struct site site = {.rate = RATE_DEFAULT};
	const char *store = NULL, *names = NULL, *counters = NULL, *ca;
	int status = 0;
	bool whole_fabric = false;
	umad_port_t port;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'f':
			whole_fabric = true;
			break;
		case 'r':
			site.rate = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 's':
			store = optarg;
			break;
		case 'n':
			names = optarg;
			break;
		case 'c':
			counters = optarg;
			break;
		default:
			return usage();
		}
	}
	if (argc - optind > 2)
		return usage();
	if (!dlsym(RTLD_DEFAULT, "site_guard")) {
		fprintf(stderr, "the guard is not in this process\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	ca = argc > optind ? argv[optind] : NULL;
	if (umad_init() ||
	    find_port(ca, argc > optind + 1 ? atoi(argv[optind + 1]) : 0, &port)) {
		fprintf(stderr, "there is no such device or port\n");
		return CANNOT;
	}
	site.local = &port;
	if (open_site(&site)) {
		fprintf(stderr, "the umad device of the port cannot be opened: %s\n",
			strerror(errno));
		return CANNOT;
	}
	if (counters)
		status = print_basic_counters(&site, counters);
	else
		print_report(&site, whole_fabric, store, names);
	mad_async_free(site.async);
	mad_rpc_close_port(site.port);
	umad_release_port(&port);
	return status;
}
