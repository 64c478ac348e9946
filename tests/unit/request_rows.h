/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Rows of events and expectations for requests: a sentence, and a line of steps, without a
 * device and with a separate clock. A step is an event, and behind ">" the expectations:
 *
 *     send > WRITE own ms=1000; +10ms; written EINVAL > WRITE new ms=990
 *
 *   make               a request: a Get of PERF with 3 attempts of 1000 ms, unless it has the
 *                      words Set, GetTable, class=C, attempts=N, timeout=MS, long (by RMPP),
 *                      tid=HEX, tid=next (the next new ID), chosen (the caller chose the ID)
 *   send, written [ERRNO], asked [ERRNO], cancel ERRNO
 *   timer, late        the timer is due; as often as the request is WAITING after that
 *   report, response   for the latest packet, or the N-th one with to=N. A response has BUSY,
 *                      REDIRECT or a hexadecimal status as its next word; then bytes=N,
 *                      allocated, lid=N or gid=N (it redirects to), path=LID (from the SA)
 *   +5ms, @5ms         the time passes; it passes until then, from the row's beginning
 *   law 5ms, limit N   responses are late after that time; N requests may be at a node
 *   B send, shortage X the step is for another request, B to F; the first allocation fails
 *   $WORD, 10 $WORD    a line of request_rows.c, once or ten times
 *
 * The first expectation is the action, and behind COMPLETE an errno if there is an error. The
 * phase follows from the action: WAITING after SET_TIMER, unless PAUSED or AWAITING_REPORT is
 * behind it. Then, in any order:
 *
 *   +5ms, @5ms         the timer, from now or from the row's beginning; without SET_TIMER, how
 *                      long the step took, or the time
 *   own, new, tid=N    the packet's ID: the request's own, an unused one, the N-th packet's
 *   ms=N, left=N       the packet's time in the kernel, attempts left (0 if not there)
 *   lid=N, class=C     the packet's destination, and the class of the MAD
 *   expects=1,3        responses to these packets are expected, and to no others; 0: to none
 *   sent=N, holds=X    the count of transmissions; the buffer has the request or response
 *   bytes=N, status=HEX, rtt=5ms, elapsed=5ms, ended
 *   taken, dport=LID   the request has kept the message; the LID of redirect_report()
 *   window=N, node=N   requests in flight in the window and at the node
 *   copies=N, law=5ms  retransmissions, and when the next response is late, for flow control
 *   told=5ms, lost=N   the arguments of flow_response(); told=0: not known
 *
 * A time may be a range without its end: +10..15ms.
 */
#ifndef TESTS_UNIT_REQUEST_ROWS_H
#define TESTS_UNIT_REQUEST_ROWS_H

#include "fake_device.h"
#include "request/request.h"

struct request_row {
	const char *behaviour;
	const char *line;
};

void run_row(const struct request_row *row);
int rows_setup(void);
int rows_teardown(void);

/* The steps of a line, for a test that is no row. */
void run_line(const char *line);
/* The request A to F that a line made, what all of them share, and the time. */
struct request *row_request(char name);
struct requests *row_requests(void);
int64_t *row_now(void);
/* An event for the request A; for EVENT_TIMER the time passes. */
enum request_action row_event(enum request_event_kind kind, int error);

#endif
