/* SPDX-License-Identifier: BSD-2-Clause */

/* A request and its events: rows, whose words request_rows.h has. */

#include "request_rows.h"
#include "test.h"

#include "late_responses.h"
#include "mad/layout.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

FIXTURE(rows_setup, rows_teardown);

#define MS INT64_C(1000)

static const struct request_row rows[] = {
	/* --- a packet --------------------------------------------------------------- */
	{"the first packet has the own ID and the whole timeout",
	 "send > WRITE own ms=1000 left=0 sent=1 expects=1 holds=request class=PERF"},
	{"the kernel waits a millisecond at least", "make timeout=0; send > WRITE ms=1"},
	{"a negative timeout is half of the longest, and there are 65,535 attempts at most",
	 "make Set timeout=-1 attempts=2147483647; send > WRITE ms=1073741823; "
	 "written > SET_TIMER @100ms; timer > SET_TIMER @1073741823ms; report > QUEUE; "
	 "send > WRITE own ms=1073741823 left=65534"},
	{"a request that was not sent has no time",
	 "cancel ECANCELED > COMPLETE ECANCELED elapsed=0us sent=0"},
	{"the time of a request begins with the first packet",
	 "+5ms; $sent; late > QUEUE; +1ms; $sent; +9ms; response > COMPLETE elapsed=210ms"},

	/* --- transaction IDs -------------------------------------------------------- */
	{"an ID in flight is replaced, in the same class alone",
	 "$sent; B make class=SMP; B send > WRITE own; C make; C send > WRITE new; "
	 "response > COMPLETE"},
	{"a new ID is no ID in flight",
	 "$sent; B make tid=next; B send > WRITE own; late > QUEUE; send > WRITE new"},
	{"an ID that a caller chose rests after it was sent, also if its request has a "
	 "response",
	 "make chosen; $sent; response > COMPLETE; $another-new"},
	{"an ID that a caller chose rests after its request was cancelled",
	 "make chosen; $sent; cancel ECANCELED > COMPLETE ECANCELED; $another-new"},
	{"an ID that a caller chose rests although 100 others were chosen since then",
	 "make chosen tid=1234; $sent; cancel ECANCELED > COMPLETE ECANCELED; 100 $chosen; "
	 "B make tid=1234; B send > WRITE new"},
	{"an ID that a caller chose rests for 300 seconds",
	 "make chosen; $sent; response > COMPLETE; +298s; $another-new; +3s; $another-own"},
	{"an ID rests from its latest packet on",
	 "make chosen timeout=200000; $sent; report > NONE; +200s; late > QUEUE; "
	 "send > WRITE own left=2; written > SET_TIMER; response > COMPLETE; +200s; "
	 "$another-new"},
	{"an ID that a caller chose is not chosen again while one with its lowest bits rests",
	 "make chosen tid=1234; $sent; response > COMPLETE; B make chosen tid=11634; "
	 "B send > WRITE new"},
	{"an ID that a caller did not choose needs no rest",
	 "$sent; cancel ECANCELED > COMPLETE ECANCELED; $another-own"},
	{"between attempts an ID that a caller chose rests for others, not for its request",
	 "make chosen; $sent; report > NONE; $another-new; late > QUEUE; send > WRITE own"},
	{"after BUSY an ID that a caller chose rests",
	 "make chosen; $sent; late > QUEUE; $sent; "
	 "response BUSY > SET_TIMER PAUSED expects=0; $another-new"},
	{"an ID that another request took between attempts is replaced",
	 "$sent; report > NONE; B make; B send > WRITE own; late > QUEUE; "
	 "send > WRITE new"},

	/* --- after the attempt ------------------------------------------------------ */
	{"a packet whose attempt is over is not sent",
	 "$sent; late > QUEUE; @1001ms; send > SET_TIMER AWAITING_REPORT @1162ms sent=1"},
	{"no packet is sent after the last attempt",
	 "make attempts=1; $sent; response BUSY > SET_TIMER PAUSED; timer > QUEUE; "
	 "@1000ms; send > COMPLETE ETIMEDOUT"},

	/* --- written ---------------------------------------------------------------- */
	{"a Get is sent again after twice the time of a late response",
	 "send > WRITE window=1; written > SET_TIMER @100ms window=1 node=1; "
	 "timer > SET_TIMER @200ms window=0 node=1; timer > QUEUE @200ms"},
	{"to a node that has responded, a late Get is sent again at once",
	 "$sent; +20ms; response > COMPLETE; make; $sent; late > QUEUE +60ms; $sent; "
	 "late > QUEUE +200ms"},
	{"a response is late at the end of the attempt",
	 "make timeout=50 attempts=1; send > WRITE ms=50; written > SET_TIMER @50ms; "
	 "timer > COMPLETE ETIMEDOUT"},
	{"the SA has more time than others",
	 "make class=SA; send > WRITE; written > SET_TIMER @500ms; +1ms; "
	 "response > COMPLETE; make class=SA; send > WRITE; written > SET_TIMER +50ms"},
	{"SMPs have a time of their own",
	 "$sent; +7ms; response > COMPLETE law=21ms; B make class=SMP; B send > WRITE; "
	 "B written > SET_TIMER +100ms"},
	{"a write error completes the request", "send > WRITE; written EIO > COMPLETE EIO"},
	{"a write error of a second packet leaves the first in flight",
	 "$sent; late > QUEUE; send > WRITE; written ENOMEM > SET_TIMER @300ms expects=1; "
	 "response to=1 > COMPLETE"},
	{"a second packet that the kernel refuses leaves the first in flight",
	 "$sent; late > QUEUE; send > WRITE; written EINVAL > SET_TIMER expects=1 sent=2"},
	{"without a device, the request completes at once",
	 "$sent; late > QUEUE; send > WRITE; written ENODEV > COMPLETE ENODEV"},

	/* --- no port has the GID ---------------------------------------------------- */
	{"a destination that is not found is tried again in the next attempt",
	 "send > WRITE; +500ms; written ETIMEDOUT > SET_TIMER @1000ms expects=0 window=0; "
	 "timer > QUEUE @1000ms; send > WRITE own left=2; written > SET_TIMER; "
	 "response > COMPLETE"},
	{"a destination that is never found times out with the last attempt",
	 "send > WRITE left=0; written ETIMEDOUT > SET_TIMER; timer > QUEUE; "
	 "send > WRITE left=2; written ETIMEDOUT > SET_TIMER; timer > QUEUE; "
	 "send > WRITE left=1; written ETIMEDOUT > COMPLETE ETIMEDOUT"},
	{"a Set to a destination that is not found has all its attempts",
	 "make Set attempts=2; send > WRITE; written ETIMEDOUT > SET_TIMER @1000ms; "
	 "timer > QUEUE; send > WRITE own left=1; written > SET_TIMER expects=1"},
	{"attempts that pass while a destination is not found are over",
	 "send > WRITE; @2500ms; written ETIMEDOUT > SET_TIMER @2000ms; "
	 "timer > QUEUE @2500ms; send > WRITE left=1"},
	{"a destination that was not found is not tried within an attempt",
	 "send > WRITE; written ETIMEDOUT > SET_TIMER; timer > QUEUE; "
	 "send > WRITE left=2; written > SET_TIMER; "
	 "late > SET_TIMER AWAITING_REPORT @2162ms"},

	/* --- the kernel refuses an ID ----------------------------------------------- */
	{"a refused ID is replaced at once, and the packet was not sent",
	 "send > WRITE own sent=1; +10ms; "
	 "written EINVAL > WRITE new ms=990 sent=1 copies=0 expects=2 window=1 node=1; "
	 "written > SET_TIMER @110ms; +1ms; "
	 "response > COMPLETE told=1ms lost=0 elapsed=1ms"},
	{"an ID that is refused in a later attempt is replaced again",
	 "make Set; send > WRITE; written EINVAL > WRITE new; written > SET_TIMER; "
	 "report > QUEUE; send > WRITE tid=2 left=2; written EINVAL > WRITE new sent=2; "
	 "written > SET_TIMER expects=4"},
	{"a packet that is refused twice completes the request",
	 "send > WRITE; written EINVAL > WRITE new; written EINVAL > COMPLETE EINVAL"},
	{"a packet that the kernel refuses after the attempt is over counts as sent",
	 "send > WRITE; +1100ms; written EINVAL > QUEUE sent=1; send > WRITE new left=2 "
	 "sent=2; "
	 "written > SET_TIMER; response > COMPLETE"},
	{"a long request that is refused keeps its buffer for the new ID",
	 "make GetTable class=SA long; send > WRITE bytes=600; "
	 "written EINVAL > WRITE new bytes=600 holds=request; written > SET_TIMER"},
	{"the report for a refused packet belongs to another request",
	 "make Set attempts=1; send > WRITE own; report > NONE; "
	 "written EINVAL > WRITE new; written > SET_TIMER; response > COMPLETE"},
	{"the report for a packet that was not sent does not end the attempt",
	 "make Set; $sent; late > SET_TIMER AWAITING_REPORT; timer > QUEUE; "
	 "send > WRITE left=2; report > NONE; written ENOMEM > SET_TIMER expects=1; "
	 "response to=1 > COMPLETE"},
	{"in a later attempt, too, a response to a refused packet belongs to another request",
	 "make Set; $sent; report > QUEUE; send > WRITE own left=2; response > NONE; "
	 "written EINVAL > WRITE new; written > SET_TIMER; response > COMPLETE"},

	/* --- the timer -------------------------------------------------------------- */
	{"a late Get is sent again with a new ID",
	 "$sent; late > QUEUE expects=1 window=0; send > WRITE new left=0 expects=1,2"},
	{"the round trips of others shorten the time in which a response is late",
	 "B make; B send > WRITE; B written > SET_TIMER @100ms; send > WRITE; "
	 "written > SET_TIMER @2ms; timer > SET_TIMER @4ms window=2; +1ms; "
	 "B response > COMPLETE; timer > SET_TIMER @9ms window=1; "
	 "timer > SET_TIMER @18ms window=0; timer > QUEUE @18ms"},
	{"after a redirection, the first interval returns",
	 "law 4ms; make attempts=6; $sent; late > QUEUE +8ms; $sent; "
	 "response REDIRECT lid=77 > READDRESS; $sent; late > QUEUE +8ms; $sent; "
	 "late > QUEUE +80ms"},
	{"a destination that is slower than others has its time",
	 "10 $exchange; $sent; +50ms; response > COMPLETE; make; $sent; "
	 "late > QUEUE +150ms"},
	{"one slow node does not make all others slow",
	 "10 $exchange; $sent; +500ms; response > COMPLETE; B make > NONE law=3..6ms; "
	 "C make > NONE law=3..6ms"},
	{"intervals grow ten times up to a fifth of a second, and then double",
	 "law 4ms; make attempts=6 timeout=60000; $sent; late > QUEUE +8ms; $sent; "
	 "late > QUEUE +80ms; $sent; late > QUEUE +200ms; $sent; late > QUEUE +400ms; "
	 "$sent; late > QUEUE +800ms; $sent; late > QUEUE +1600ms; $sent; "
	 "late > SET_TIMER AWAITING_REPORT"},
	{"an interval of more than a fifth of a second is doubled",
	 "law 150ms; $sent; late > QUEUE @300ms; $sent; late > QUEUE @900ms; $sent; "
	 "late > SET_TIMER AWAITING_REPORT"},
	{"an interval of a fifth of a second at most grows to that",
	 "law 60ms; $sent; late > QUEUE @120ms; $sent; late > QUEUE @360ms"},
	{"a late response is told before the request is sent again",
	 "law 4ms; $sent; late > QUEUE @8ms; send > WRITE; "
	 "written > SET_TIMER @12ms window=1 node=1; timer > SET_TIMER @88ms window=0"},
	{"a node that does not respond to the request and three copies has places for others",
	 "law 4ms; make attempts=6; $sent; late > QUEUE node=1; $sent; late > QUEUE node=1; "
	 "$sent; late > QUEUE node=1; $sent; late > QUEUE node=0"},
	{"with a fixed limit, a late request keeps its place at the node",
	 "limit 1; $sent; late > QUEUE window=0 node=1; send > WRITE window=1 node=1; "
	 "written > SET_TIMER; @1000ms; "
	 "timer > SET_TIMER AWAITING_REPORT window=0 node=1; "
	 "report to=1 > QUEUE window=0 node=1; send > WRITE left=2 window=1 node=1; "
	 "written > SET_TIMER; response > COMPLETE window=0 node=0"},
	{"the kernel waits four intervals for the second packet",
	 "$sent; late > QUEUE @200ms; send > WRITE ms=801"},
	{"the kernel waits a tenth of a second at least for the second packet",
	 "law 4ms; $sent; late > QUEUE @8ms; send > WRITE ms=100"},
	{"the kernel waits no longer than the request takes",
	 "law 450ms; make attempts=2; $sent; @950ms; timer > QUEUE; send > WRITE ms=1050"},
	{"a response to the own ID or to the two latest others counts",
	 "law 4ms; $sent; late > QUEUE; $sent; late > QUEUE; "
	 "send > WRITE new expects=1,2,3; written > SET_TIMER; late > QUEUE; "
	 "send > WRITE new expects=1,3,4; written > SET_TIMER; response to=3 > COMPLETE"},
	{"after the reports of two packets, the third one is expected until a cancel",
	 "law 4ms; $sent; late > QUEUE; $sent; late > QUEUE; $sent; report to=1 > NONE; "
	 "report to=2 > NONE expects=3; cancel ECANCELED > COMPLETE ECANCELED"},
	{"of the earlier packets without the own ID, the oldest is given up",
	 "law 4ms; make attempts=6 timeout=3000; $sent; late > QUEUE; $sent; late > QUEUE; "
	 "$sent; late > QUEUE; $sent; late > QUEUE; $sent; late > QUEUE; $sent; @3000ms; "
	 "timer > SET_TIMER AWAITING_REPORT expects=1,5,6; report to=1 > QUEUE; "
	 "send > WRITE own left=5; written > SET_TIMER; late > QUEUE; "
	 "send > WRITE new expects=6,7,8; written > SET_TIMER; response to=6 > COMPLETE"},
	{"a late Set waits for the end of the attempt",
	 "make Set; send > WRITE; written > SET_TIMER @100ms window=1 node=1; "
	 "timer > SET_TIMER @1000ms window=0 node=0"},
	{"a Get of VENDOR may change something, and is sent once in an attempt",
	 "make class=VENDOR; $sent; late > SET_TIMER AWAITING_REPORT @1162ms"},
	{"a long request is sent once in an attempt",
	 "make class=SA long; $sent; late > SET_TIMER AWAITING_REPORT @1162ms"},
	{"a Get of an SMP is sent again", "make class=SMP; $sent; late > QUEUE @200ms"},
	{"a Get of the SA is sent again",
	 "make class=SA timeout=3000; $sent; late > QUEUE @1000ms"},
	{"a Get of congestion control is sent again", "make class=CC; $sent; late > QUEUE"},
	{"a Get with one attempt is sent once",
	 "make attempts=1; $sent; late > COMPLETE ETIMEDOUT @1000ms sent=1"},

	/* --- the end of an attempt -------------------------------------------------- */
	{"after an attempt, a request awaits the kernel's report",
	 "$sent; @1000ms; timer > SET_TIMER AWAITING_REPORT @1162ms window=0"},
	{"a report that should have come has another millisecond",
	 "$sent; @1162ms; timer > SET_TIMER AWAITING_REPORT +1ms"},
	{"with the report, the next attempt has the own ID",
	 "$sent; @1000ms; timer > SET_TIMER AWAITING_REPORT; +1ms; "
	 "report > QUEUE expects=0; send > WRITE own ms=1000 left=2; written > SET_TIMER; "
	 "late > QUEUE +200ms"},
	{"without a report, the next attempt has a new ID",
	 "$sent; @1000ms; timer > SET_TIMER AWAITING_REPORT; timer > QUEUE @1162ms; "
	 "send > WRITE new ms=1000 left=2 expects=1,2"},
	{"a second packet within the next attempt begins no attempt",
	 "$sent; report > NONE; @1000ms; timer > QUEUE; send > WRITE own left=2; "
	 "written > SET_TIMER; late > QUEUE +200ms; send > WRITE new left=0"},
	{"the next attempt awaits the report, too",
	 "$sent; @1000ms; timer > SET_TIMER AWAITING_REPORT; timer > QUEUE; "
	 "send > WRITE left=2; written > SET_TIMER; @2162ms; "
	 "timer > SET_TIMER AWAITING_REPORT @2324ms"},
	{"a Get does not wait after its last attempt",
	 "make attempts=1; $sent; @1000ms; timer > COMPLETE ETIMEDOUT"},
	{"a Get waits before its last attempt",
	 "make attempts=2; $sent; @1000ms; timer > SET_TIMER AWAITING_REPORT @1162ms"},
	{"a Set awaits the report after its last attempt",
	 "make Set attempts=1; $sent; @1000ms; "
	 "timer > SET_TIMER AWAITING_REPORT expects=1; timer > COMPLETE ETIMEDOUT @1162ms"},

	/* --- the time of all attempts ----------------------------------------------- */
	{"a request that waits too long to be sent again fails",
	 "$sent; late > QUEUE; timer > COMPLETE ETIMEDOUT @3486ms sent=1"},
	{"a request that is sent too late fails",
	 "$sent; late > QUEUE; @1000ms; send > SET_TIMER AWAITING_REPORT; timer > QUEUE; "
	 "@3486ms; send > COMPLETE ETIMEDOUT sent=1"},
	{"an attempt that begins late is shorter",
	 "make Set; $sent; @1000ms; report > QUEUE; @3000ms; send > WRITE own ms=486 left=2; "
	 "written > SET_TIMER; @3486ms; timer > COMPLETE ETIMEDOUT sent=2"},
	{"a BUSY node does not prolong the time",
	 "$sent; @1000ms; timer > SET_TIMER AWAITING_REPORT; timer > QUEUE; @3480ms; "
	 "send > WRITE ms=6 left=2; written > SET_TIMER; response BUSY > COMPLETE EIO @3480ms"},

	/* --- the kernel's report ---------------------------------------------------- */
	{"the attempt of a Set ends with the report",
	 "make Set attempts=2; $sent; @999ms; report > QUEUE window=0; "
	 "send > WRITE own left=1; written > SET_TIMER; report > COMPLETE ETIMEDOUT"},
	{"a Get goes on with its timer after a report within the attempt, and has the own ID",
	 "$sent; report > NONE expects=0; late > QUEUE @200ms; send > WRITE own ms=800"},
	{"a Get goes on at once if the report comes at the end of the attempt",
	 "$sent; @1000ms; report > QUEUE; send > WRITE left=2"},
	{"the report of the second packet changes nothing",
	 "$sent; late > QUEUE; $sent; @1001ms; report > NONE expects=1; "
	 "timer > SET_TIMER AWAITING_REPORT @1162ms"},
	{"a Set goes on after the report of an earlier attempt",
	 "make Set; $sent; late > SET_TIMER AWAITING_REPORT; timer > QUEUE; "
	 "send > WRITE new left=2 expects=1,2; written > SET_TIMER; "
	 "report to=1 > NONE expects=2; report > QUEUE; send > WRITE own left=1"},
	{"a report while the packet is written takes effect when it is written",
	 "make Set attempts=2; send > WRITE; @1000ms; report > NONE expects=0 window=1; "
	 "written > QUEUE @1000ms window=0; send > WRITE own left=1; written > SET_TIMER"},
	{"a report while the last attempt is written completes the request",
	 "make Set attempts=1; send > WRITE; report > NONE; written > COMPLETE ETIMEDOUT"},
	{"a report within the attempt of a Get that is written ends nothing",
	 "send > WRITE; report > NONE; written > SET_TIMER expects=0; late > QUEUE @200ms"},
	{"a report after the attempt of a Get that is written ends the attempt",
	 "$sent; late > QUEUE; send > WRITE; @1000ms; report to=1 > NONE; written > QUEUE"},
	{"a report does not change a request that is QUEUED",
	 "$sent; late > QUEUE; report > NONE QUEUED expects=0; send > WRITE own"},
	{"a response after a report, while a packet is written, completes the request",
	 "make Set; $sent; late > SET_TIMER AWAITING_REPORT; timer > QUEUE; "
	 "send > WRITE left=2; report > NONE; response to=1 > NONE; written > COMPLETE"},

	/* --- responses -------------------------------------------------------------- */
	{"a response completes a request",
	 "$sent; +30ms; "
	 "response > COMPLETE holds=response bytes=256 status=0 rtt=30ms told=30ms "
	 "lost=0 law=90ms window=0 node=0 expects=0 elapsed=30ms"},
	{"a round trip may take 2^32 microseconds",
	 "make Set timeout=-1; $sent; +4294s; response > COMPLETE rtt=4294s"},
	{"a longer round trip does not count from 0 again",
	 "make Set timeout=-1; $sent; +5000s; response > COMPLETE rtt=4294967295us"},
	{"zeros follow a short response",
	 "$sent; response bytes=36 > COMPLETE bytes=36 holds=response"},
	{"an allocated response is kept", "$sent; response allocated > COMPLETE taken"},
	{"a long response is kept",
	 "make GetTable class=SA; $sent; "
	 "response allocated bytes=700 > COMPLETE taken holds=response bytes=700"},
	{"a response takes the place of a long request",
	 "make GetTable class=SA long; $sent; "
	 "response > COMPLETE holds=response bytes=256"},
	{"a long response takes the place of a long request",
	 "make GetTable class=SA long; $sent; "
	 "response allocated bytes=900 > COMPLETE taken holds=response bytes=900"},
	{"an allocated BUSY response is not kept",
	 "$sent; response BUSY allocated > SET_TIMER PAUSED holds=request"},
	{"a response with a status is an error",
	 "$sent; response 0x1c > COMPLETE EIO status=1c holds=response"},
	{"the direction bit is no status",
	 "make class=DIRECT; $sent; response 0x8000 > COMPLETE status=0"},
	{"the status of a redirection is an error of an SMP",
	 "make class=SMP; $sent; response REDIRECT > COMPLETE EIO status=2"},
	{"a response to the second packet tells of a loss",
	 "$sent; late > QUEUE; $sent; response > COMPLETE lost=1"},
	{"a response to the first packet tells of no loss",
	 "$sent; late > QUEUE; $sent; response to=1 > COMPLETE lost=0"},
	{"a round trip is not known if an ID was sent twice",
	 "$sent; report > NONE; late > QUEUE; send > WRITE own; written > SET_TIMER; "
	 "+1ms; response > COMPLETE rtt=1ms told=0"},
	{"the round trip of the first packet is known after the report of the second",
	 "$sent; late > QUEUE; $sent; report > NONE; response to=1 > COMPLETE told=200ms"},
	{"a round trip is known if a new ID was sent once",
	 "make Set attempts=2; $sent; report > QUEUE; send > WRITE own left=1; "
	 "written EINVAL > WRITE new; written > SET_TIMER; +1ms; "
	 "response > COMPLETE rtt=1ms told=1ms"},
	{"a round trip within a microsecond is known", "$sent; response > COMPLETE told=1us"},
	{"a response completes a request that is QUEUED again",
	 "$sent; late > QUEUE; response > COMPLETE"},
	{"a response completes a request that awaits the report",
	 "$sent; @1000ms; timer > SET_TIMER AWAITING_REPORT; response > COMPLETE"},
	{"a response to an earlier attempt completes the request",
	 "make Set; $sent; late > SET_TIMER AWAITING_REPORT; timer > QUEUE; "
	 "send > WRITE left=2; written > SET_TIMER; response to=1 > COMPLETE"},

	/* --- while a thread writes -------------------------------------------------- */
	{"a response during a write leaves the packet alone, and completes the request after",
	 "send > WRITE; +3ms; response > NONE holds=request window=1; +4ms; "
	 "written > COMPLETE holds=response rtt=3ms elapsed=3ms"},
	{"an allocated response during a write is kept",
	 "send > WRITE; response allocated > NONE; written > COMPLETE holds=response"},
	{"the memory of a response that is kept is freed",
	 "send > WRITE; response allocated > NONE WRITING"},
	{"a long response during a write is kept",
	 "make GetTable class=SA; send > WRITE; response allocated bytes=700 > NONE; "
	 "written > COMPLETE holds=response bytes=700"},
	{"zeros follow a short response that came during a write",
	 "send > WRITE; response bytes=40 > NONE; "
	 "written > COMPLETE holds=response bytes=40"},
	{"the first of several responses during a write is kept",
	 "$sent; late > QUEUE; send > WRITE; response to=1 > NONE; "
	 "response 0x1c to=2 > NONE; written > COMPLETE lost=0"},
	{"without memory, a response during a write is lost",
	 "send > WRITE; shortage response > NONE; written > SET_TIMER expects=0; "
	 "late > QUEUE @200ms; send > WRITE own"},
	{"a response during the write of a long request takes its place after",
	 "make GetTable class=SA long; send > WRITE; "
	 "response > NONE holds=request bytes=600; "
	 "written > COMPLETE holds=response bytes=256"},
	{"a response to a refused packet belongs to another request",
	 "send > WRITE; response 0x1c > NONE; "
	 "written EINVAL > WRITE new holds=request bytes=256 status=0 expects=2"},
	{"a short response to a refused packet leaves its length",
	 "send > WRITE; response bytes=60 > NONE; written EINVAL > WRITE bytes=256"},
	{"a packet with another write error has no response",
	 "send > WRITE; response > NONE; written EIO > COMPLETE EIO holds=request"},
	{"a long request that is refused has no response, and gets a new ID",
	 "make GetTable class=SA long; send > WRITE; response > NONE; "
	 "written EINVAL > WRITE new bytes=600 holds=request"},
	{"a response to the first packet outlives a write error of the second",
	 "$sent; late > QUEUE; send > WRITE; response to=1 > NONE; "
	 "written ENOMEM > COMPLETE holds=response"},
	{"a response to the first packet outlives the end of the device",
	 "$sent; late > QUEUE; send > WRITE; response to=1 > NONE; "
	 "written ENODEV > COMPLETE"},

	/* --- BUSY ------------------------------------------------------------------- */
	{"after BUSY a request pauses, gives up its place, and has its own ID again",
	 "$sent; response BUSY > SET_TIMER PAUSED +10..15ms expects=0 window=0 node=0; "
	 "timer > QUEUE; send > WRITE own left=0 node=1"},
	{"each pause is twice as long as the one before",
	 "$sent; response BUSY > SET_TIMER PAUSED +10..15ms; timer > QUEUE; $sent; "
	 "response BUSY > SET_TIMER PAUSED +20..30ms; timer > QUEUE; $sent; "
	 "response BUSY > SET_TIMER PAUSED +40..60ms; timer > QUEUE; $sent; "
	 "response BUSY > SET_TIMER PAUSED +80..120ms"},
	{"the pauses stop growing",
	 "make timeout=-1 attempts=1; 10 $busy; $sent; "
	 "response BUSY > SET_TIMER PAUSED +10240..15360ms; timer > QUEUE; $sent; "
	 "response BUSY > SET_TIMER PAUSED +20480..30720ms; timer > QUEUE; $sent; "
	 "response BUSY > SET_TIMER PAUSED +40960..61440ms; timer > QUEUE; 10 $busy; "
	 "$sent; response BUSY > SET_TIMER PAUSED +40960..61440ms"},
	{"after each BUSY response, the first interval returns",
	 "law 4ms; make attempts=6; $sent; late > QUEUE +8ms; $sent; "
	 "response BUSY > SET_TIMER PAUSED +10..15ms; timer > QUEUE; $sent; "
	 "late > QUEUE +4ms; $sent; response BUSY > SET_TIMER PAUSED +20..30ms; "
	 "timer > QUEUE; $sent; late > QUEUE +4ms; $sent; late > QUEUE +40ms"},
	{"after BUSY for the second packet, the kernel holds the own ID",
	 "$sent; late > QUEUE; $sent; response BUSY > SET_TIMER PAUSED expects=0; "
	 "timer > QUEUE; send > WRITE new expects=3"},
	{"after BUSY no response to the second packet is expected",
	 "$sent; late > QUEUE; $sent; response BUSY to=1 > SET_TIMER PAUSED expects=0"},
	{"after BUSY a request that may be sent again once keeps its place when late",
	 "make attempts=2; $sent; late > QUEUE; $sent; response BUSY > SET_TIMER PAUSED; "
	 "timer > QUEUE; $sent; late > QUEUE node=1"},
	{"BUSY without time for a pause is an error",
	 "make attempts=1; $sent; @990ms; "
	 "response BUSY > COMPLETE EIO status=1 holds=response"},
	{"a request that may change something is repeated after BUSY, within its attempt",
	 "make Set attempts=2; $sent; response BUSY > SET_TIMER PAUSED; timer > QUEUE; "
	 "$sent; late > SET_TIMER AWAITING_REPORT @1162ms"},
	{"a pause may end with the attempt",
	 "$sent; response BUSY > SET_TIMER PAUSED; @1000ms; timer > QUEUE; "
	 "send > WRITE left=2"},
	{"a pause uses attempts up",
	 "$sent; response BUSY > SET_TIMER PAUSED; @2000ms; timer > QUEUE; "
	 "send > WRITE left=1"},
	{"a pause that uses all attempts up ends the request",
	 "$sent; response BUSY > SET_TIMER PAUSED; @3000ms; timer > COMPLETE ETIMEDOUT"},
	{"BUSY before the next attempt is followed by a pause in that attempt",
	 "$sent; late > QUEUE; $sent; @1000ms; timer > SET_TIMER AWAITING_REPORT; "
	 "@1001ms; report to=1 > QUEUE; response BUSY > SET_TIMER PAUSED +10..15ms; "
	 "timer > QUEUE; send > WRITE left=2; written > SET_TIMER; @2001ms; "
	 "timer > SET_TIMER AWAITING_REPORT @2163ms"},
	{"after BUSY a request awaits the report of the new attempt",
	 "make Set; $sent; late > SET_TIMER AWAITING_REPORT; timer > QUEUE; "
	 "response BUSY > SET_TIMER PAUSED; timer > QUEUE; send > WRITE left=2; "
	 "written > SET_TIMER; @2162ms; timer > SET_TIMER AWAITING_REPORT @2324ms"},
	{"BUSY while a request awaits the report is followed by a pause",
	 "$sent; @1000ms; timer > SET_TIMER AWAITING_REPORT; "
	 "response BUSY > SET_TIMER PAUSED @1010..1015ms; timer > QUEUE; "
	 "send > WRITE left=2"},
	{"BUSY after a report, while a packet is written, is followed by a pause",
	 "make Set; $sent; late > SET_TIMER AWAITING_REPORT; timer > QUEUE; "
	 "send > WRITE left=2; report > NONE; response BUSY to=1 > NONE; "
	 "written > SET_TIMER PAUSED +10..15ms; timer > QUEUE; send > WRITE left=0"},
	{"the pause after BUSY during a write begins with the response",
	 "send > WRITE; +1ms; response BUSY > NONE; +5ms; "
	 "written > SET_TIMER PAUSED @11..16ms holds=request node=0; timer > QUEUE"},
	{"BUSY for the first packet outlives a write error of the second",
	 "$sent; late > QUEUE; send > WRITE; response BUSY to=1 > NONE; "
	 "written ENOMEM > SET_TIMER PAUSED @210..215ms; timer > QUEUE"},
	{"a refused packet does not end a pause",
	 "law 4ms; $sent; late > QUEUE; $sent; late > QUEUE; send > WRITE; "
	 "response BUSY to=2 > NONE; written EINVAL > SET_TIMER PAUSED +10..15ms"},
	{"BUSY for a refused packet belongs to another request",
	 "make Set attempts=2; send > WRITE; response BUSY > NONE; "
	 "written EINVAL > WRITE new; written > SET_TIMER; "
	 "late > SET_TIMER AWAITING_REPORT @1162ms"},

	/* --- redirection ------------------------------------------------------------ */
	{"a redirected request goes to the other LID, with its own ID",
	 "$sent; "
	 "response REDIRECT lid=77 > READDRESS lost=0 expects=0 dport=77 holds=request "
	 "window=0 node=0; send > WRITE lid=77 own; written > SET_TIMER; "
	 "response > COMPLETE dport=77"},
	{"a request that was not redirected has its destination",
	 "$sent; response > COMPLETE dport=1"},
	{"a loss before a redirection is forgotten",
	 "$sent; late > QUEUE; $sent; response REDIRECT lid=77 > READDRESS lost=1; $sent; "
	 "response > COMPLETE lost=0"},
	{"a redirected Set has a whole attempt, however long it is queued",
	 "make Set attempts=2; $sent; @999ms; response REDIRECT lid=77 > READDRESS; "
	 "@9000ms; send > WRITE ms=1000 left=0; written > SET_TIMER; @10000ms; "
	 "timer > SET_TIMER AWAITING_REPORT @10162ms"},
	{"a redirected Get has the rest of its attempt",
	 "$sent; @400ms; response REDIRECT lid=77 > READDRESS; send > WRITE own ms=600"},
	{"a redirection after the last attempt comes too late",
	 "make attempts=1; $sent; @1000ms; response REDIRECT lid=77 > COMPLETE ETIMEDOUT"},
	{"a redirection after an attempt is followed in the next one",
	 "$sent; @2000ms; response REDIRECT lid=77 > READDRESS; "
	 "send > WRITE lid=77 left=1"},
	{"a redirection before the next attempt is followed in that attempt",
	 "$sent; late > QUEUE; $sent; @1000ms; timer > SET_TIMER AWAITING_REPORT; +1ms; "
	 "report to=1 > QUEUE; response REDIRECT lid=77 > READDRESS; "
	 "send > WRITE lid=77 left=2"},
	{"a redirected request expects no response to earlier packets; its ID is held",
	 "$sent; late > QUEUE; $sent; response REDIRECT lid=77 > READDRESS expects=0; "
	 "send > WRITE new"},
	{"a redirection during a write is followed, once, when the packet is written",
	 "send > WRITE lid=1; response REDIRECT lid=77 > NONE dport=1; "
	 "written > READDRESS dport=77; send > WRITE lid=77; written > SET_TIMER"},
	{"a redirection that is too short to name a port leads to the SA",
	 "send > WRITE; response REDIRECT bytes=36 > NONE; written > READDRESS; "
	 "send > ASK_PATH"},
	{"a redirection of the first packet outlives a write error of the second",
	 "$sent; late > QUEUE; send > WRITE; response REDIRECT lid=77 to=1 > NONE; "
	 "written ENOMEM > READDRESS; send > WRITE lid=77"},
	{"a redirection of an earlier packet outlives a refused one",
	 "law 4ms; $sent; late > QUEUE; $sent; late > QUEUE; send > WRITE; "
	 "response REDIRECT lid=77 to=2 > NONE; written EINVAL > READDRESS; "
	 "send > WRITE lid=77"},
	{"a redirection of a refused packet belongs to another request",
	 "send > WRITE; response REDIRECT lid=77 > NONE; "
	 "written EINVAL > WRITE new lid=1; written > SET_TIMER"},
	{"a cancelled request with a redirection is not sent again",
	 "send > WRITE; response REDIRECT lid=77 > NONE; cancel ECANCELED > NONE ended; "
	 "written EINVAL > COMPLETE ECANCELED"},
	{"without memory, a redirection during a write is lost",
	 "send > WRITE; shortage response REDIRECT lid=77 > NONE; "
	 "written > SET_TIMER expects=0"},
	{"without memory, a redirection completes the request",
	 "$sent; shortage response REDIRECT lid=77 > COMPLETE ENOMEM"},
	{"a long request is not redirected",
	 "make GetTable class=SA long; $sent; response REDIRECT > COMPLETE EOPNOTSUPP"},
	{"a long request that is being written is not redirected",
	 "make GetTable class=SA long; send > WRITE; response REDIRECT > NONE; "
	 "written > COMPLETE EOPNOTSUPP"},
	{"the fifth redirection is not followed", "make Set attempts=1; 4 $redirected; $sent; "
						  "response REDIRECT lid=77 > COMPLETE ELOOP"},
	{"a redirection of a request to the SA is at its place",
	 "make class=SA; $sent; response REDIRECT lid=77 > READDRESS dport=77"},

	/* --- the path of a redirection ---------------------------------------------- */
	{"the request for a path has an ID of its own, and goes to the SA",
	 "$ask; asked > WRITE new class=SA lid=9 left=0 expects=2; written > SET_TIMER"},
	{"with the path, the request is sent with its own ID",
	 "$ask; asked > WRITE; written > SET_TIMER; "
	 "response path=88 > READDRESS dport=88; "
	 "send > WRITE lid=88 own class=PERF holds=request; written > SET_TIMER; "
	 "response > COMPLETE"},
	{"a path that comes while its request is written is kept",
	 "$ask; asked > WRITE; response path=88 > NONE; written > READDRESS; "
	 "send > WRITE lid=88"},
	{"without a path, the destination is unreachable",
	 "$ask; asked > WRITE; written > SET_TIMER; "
	 "response 0x300 path=88 > COMPLETE EHOSTUNREACH"},
	{"a path without a LID is none", "$ask; asked > WRITE; written > SET_TIMER; "
					 "response path=0 > COMPLETE EHOSTUNREACH"},
	{"BUSY is no path, and the SA is asked again",
	 "$ask; asked > WRITE; written > SET_TIMER; "
	 "response BUSY path=88 > SET_TIMER PAUSED; timer > QUEUE; send > WRITE class=SA"},
	{"a late request for a path is sent again, too",
	 "$ask; asked > WRITE; written > SET_TIMER; late > QUEUE; "
	 "send > WRITE class=SA new; written > SET_TIMER; response path=88 > READDRESS; "
	 "send > WRITE own lid=88"},
	{"the request for a path has the attempts of the request",
	 "make attempts=1; $ask; asked > WRITE; written > SET_TIMER; "
	 "late > COMPLETE ETIMEDOUT @1000ms"},
	{"a Set has a whole attempt for the request for a path, and another one after that",
	 "make Set attempts=1; $sent; @900ms; response REDIRECT gid=5 > READDRESS; "
	 "send > ASK_PATH; asked > WRITE ms=1000; written > SET_TIMER; @1800ms; "
	 "response path=88 > READDRESS; send > WRITE own ms=1000 lid=88"},
	{"an error in asking completes the request",
	 "$ask; asked EHOSTUNREACH > COMPLETE EHOSTUNREACH"},
	{"a request that is cancelled in asking completes after that",
	 "$ask; timer > NONE ASKING_PATH; cancel ECANCELED > NONE ended; "
	 "asked > COMPLETE ECANCELED"},
	{"the latest cancel in asking counts, whatever the error in asking",
	 "$ask; cancel ECANCELED > NONE; cancel ENODEV > NONE; "
	 "asked EHOSTUNREACH > COMPLETE ENODEV"},
	{"an attempt may be over when the SA can be asked",
	 "$ask; @1000ms; asked > QUEUE; send > WRITE class=SA left=2"},

	/* --- cancel ----------------------------------------------------------------- */
	{"a request that was not sent is cancelled at once",
	 "cancel ECANCELED > COMPLETE ECANCELED"},
	{"a request in flight is cancelled at once",
	 "$sent; late > QUEUE; $sent; cancel ECANCELED > COMPLETE ECANCELED"},
	{"a request that pauses is cancelled at once",
	 "$sent; response BUSY > SET_TIMER PAUSED; cancel ECANCELED > COMPLETE ECANCELED"},
	{"a request that awaits the report is cancelled at once",
	 "$sent; @1000ms; timer > SET_TIMER AWAITING_REPORT; "
	 "cancel ENODEV > COMPLETE ENODEV"},
	{"a request that is written is cancelled after that",
	 "send > WRITE; cancel ECANCELED > NONE ended; timer > NONE WRITING; "
	 "written EINVAL > COMPLETE ECANCELED"},
	{"a cancel replaces a response that came during the write",
	 "send > WRITE; response > NONE; cancel ECANCELED > NONE ended; "
	 "written > COMPLETE ECANCELED holds=request"},
	{"a cancel replaces a report that came during the write",
	 "make Set; send > WRITE; report > NONE; cancel ECANCELED > NONE ended; "
	 "written > COMPLETE ECANCELED"},
	{"a response during the write does not replace a cancel",
	 "send > WRITE; cancel ECANCELED > NONE; response allocated > NONE; "
	 "written > COMPLETE ECANCELED holds=request"},
	{"a request that is complete cannot be cancelled",
	 "$sent; response > COMPLETE; cancel ECANCELED > NONE DONE holds=response"},
};

TEST_ROWS(run_row, rows);

/* --- request_init() ------------------------------------------------------------- */

static const struct request_settings settings = {
	.agent = 3, .rmpp = true, .gid_index = 7, .timeout_ms = 1000, .attempts = 3};

static int init(struct request *request, const struct request_settings *with, ib_rpc_t *rpc,
		const void *data, size_t size)
{
	ib_portid_t dport = {.lid = 1, .grh_present = 1, .gid = {0xfe, 0x80}};

	return request_init(request, with, rpc, &dport, NULL, data, size);
}

static ib_rpc_t sa_rpc(void)
{
	return (ib_rpc_t){.mgtclass = IB_SA_CLASS,
			  .method = IB_MAD_METHOD_GET,
			  .attr.id = IB_SA_ATTR_PATHRECORD,
			  .dataoffs = IB_SA_DATA_OFFS};
}

TEST(a_new_request_has_the_address_and_an_id)
{
	struct ib_user_mad *header;
	struct request request;
	ib_rpc_t rpc = sa_rpc();

	rpc.timeout = 77;
	assert_int_equal(init(&request, &settings, &rpc, NULL, 100), 0);
	header = (struct ib_user_mad *)(void *)request_buffer(&request);
	assert_int_equal(request.phase, REQUEST_QUEUED);
	assert_int_equal(header->agent_id, 3);
	assert_int_equal(header->addr.gid_index, 7);
	assert_int_equal(be16toh(header->addr.lid), 1);
	assert_int_not_equal(rpc.trid, 0);
	assert_int_equal(get32(request_mad(&request), TID_OFFS), rpc.trid);
	assert_int_equal(request.length, IB_MAD_SIZE);
	assert_int_equal(request.dataoffs, IB_SA_DATA_OFFS);
	assert_int_equal(request.timeout_ms, 77);
	/* the queue has a list for each class */
	assert_int_equal(request.transmissions.mgmt_class, IB_SA_CLASS);
	assert_true(request.account.sa);
	assert_false(request.account.smp);
	request_fini(&request);
}

TEST(rmpp_carries_a_request_that_is_long_or_is_to_be_sent_so)
{
	struct request_settings by_rmpp = settings;
	uint8_t data[1000], *mad;
	struct request request;
	ib_rpc_t rpc = sa_rpc();

	memset(data, 0x55, sizeof(data));
	by_rmpp.by_rmpp = true;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(init(&request, i ? &by_rmpp : &settings, &rpc, data,
				      i ? 20 : sizeof(data)),
				 0);
		mad = request_mad(&request);
		assert_int_equal(request.length, IB_SA_DATA_OFFS + (i ? 20 : 1000));
		assert_int_equal(mad[RMPP_VERSION_OFFS], RMPP_VERSION);
		assert_int_equal(mad[RMPP_TYPE_OFFS], IB_RMPP_TYPE_DATA);
		assert_int_equal(mad[RMPP_FLAGS_OFFS],
				 RMPP_RESP_TIME_NONE << 3 | IB_RMPP_FLAG_ACTIVE);
		assert_int_equal(mad[request.length - 1], 0x55);
		request_fini(&request);
	}
	for (size_t size = 199; size < 203; size++) {
		assert_int_equal(init(&request, &settings, &rpc, data, size), 0);
		mad = request_mad(&request);
		/* 200 bytes fit into a MAD */
		assert_int_equal(mad[RMPP_VERSION_OFFS], size > 200 ? RMPP_VERSION : 0);
		assert_int_equal(request.length,
				 size > 200 ? IB_SA_DATA_OFFS + (int)size : IB_MAD_SIZE);
		request_fini(&request);
	}
	rpc.method = IB_MAD_METHOD_GETMULTI;
	assert_true(request_is_by_rmpp(&rpc));
	rpc.mgtclass = IB_PERFORMANCE_CLASS;
	assert_false(request_is_by_rmpp(&rpc));
}

TEST(a_request_that_cannot_be_made_has_an_error)
{
	struct request_settings other = settings;
	uint8_t data[1000] = {0};
	struct request request;
	ib_rpc_t rpc = sa_rpc();

	assert_int_equal(request_init(&request, &settings, &rpc, NULL, NULL, NULL, 0), -EINVAL);
	rpc.dataoffs = -1;
	assert_int_equal(init(&request, &settings, &rpc, NULL, 0), -EINVAL);
	rpc.dataoffs = IB_MAD_SIZE + 1;
	assert_int_equal(init(&request, &settings, &rpc, NULL, 0), -EINVAL);
	rpc = sa_rpc();
	device_fail_malloc(1);
	assert_int_equal(init(&request, &settings, &rpc, data, sizeof(data)), -ENOMEM);
	device_fail_malloc(0);
	assert_int_equal(init(&request, &settings, &rpc, data, INT_MAX), -EMSGSIZE);
	other.rmpp = false;
	assert_int_equal(init(&request, &other, &rpc, data, sizeof(data)), -EMSGSIZE);
	other.agent = 0;
	for (rpc.dataoffs = 0; rpc.dataoffs <= IB_MAD_SIZE; rpc.dataoffs += IB_MAD_SIZE) {
		assert_int_equal(init(&request, &other, &rpc, NULL, 0), 0);
		request_fini(&request);
	}
	rpc = sa_rpc();
	other.agent = -1;
	assert_int_equal(init(&request, &other, &rpc, NULL, 0), -EPROTONOSUPPORT);
	/* a directed route that is too long; the memory of a long request is freed */
	rpc.mgtclass = IB_SMI_DIRECT_CLASS;
	assert_int_equal(request_init(&request, &settings, &rpc,
				      &(ib_portid_t){.drpath.cnt = IB_SUBNET_PATH_HOPS_MAX},
				      NULL, data, sizeof(data)),
			 -EINVAL);
}

/* --- redirection: addresses ----------------------------------------------------- */

static void answer(uint8_t *mad, uint32_t lid, uint32_t qp, uint8_t sl, uint8_t gid)
{
	uint8_t *info = mad + IB_PC_DATA_OFFS, gids[16] = {gid};

	memset(mad, 0, IB_MAD_SIZE);
	mad[1] = IB_PERFORMANCE_CLASS;
	mad_set_field(info, 0, IB_CPI_REDIRECT_LID_F, lid);
	mad_set_field(info, 0, IB_CPI_REDIRECT_QP_F, qp);
	mad_set_field(info, 0, IB_CPI_REDIRECT_QKEY_F, qp ? 0x1234567 : 0);
	mad_set_field(info, 0, IB_CPI_REDIRECT_SL_F, sl);
	mad_set_array(info, 0, IB_CPI_REDIRECT_GID_F, gids);
}

TEST(a_redirection_has_a_whole_address)
{
	struct ib_mad_addr *address;
	struct redirect_state *redirected = NULL;
	ib_portid_t dport = {.lid = 1}, reported = dport;
	ib_rpc_t rpc = {.mgtclass = IB_PERFORMANCE_CLASS, .method = IB_MAD_METHOD_GET};
	uint8_t packet[PACKET_SIZE] = {0}, mad[IB_MAD_SIZE];
	uint32_t tid = 5;

	for (uint32_t grh = 0; grh < 2; grh++) {
		dport.grh_present = (uint8_t)grh;
		assert_true(mad_build_pkt(packet, &rpc, &dport, NULL, NULL) > 0);
		address = umad_get_mad_addr(packet);
		address->gid_index = 4;
		answer(mad, 99, 0x123, 5, 0xfe);
		assert_int_equal(redirect(&redirected, packet, &tid, mad, IB_MAD_SIZE), 0);
		assert_int_equal(be16toh(address->lid), 99);
		assert_int_equal(be32toh(address->qpn), 0x123);
		assert_int_equal(be32toh(address->qkey), 0x1234567);
		assert_int_equal(address->sl, 5);
		/* a request that went through a router does so again */
		assert_int_equal(address->grh_present, grh);
		if (grh)
			assert_int_equal(address->gid_index, 4);
		redirect_report(redirected, &reported);
		assert_int_equal(reported.lid, 99);
		assert_int_equal(reported.qp, 0x123);
		assert_int_equal(reported.qkey, 0x1234567);
		assert_int_equal(reported.sl, 5);
		assert_int_equal(reported.grh_present, grh);
		assert_int_equal(reported.gid[0], grh ? 0xfe : 0);
		assert_int_equal(tid, 5);
	}
	/* no GID to go through a router to */
	answer(mad, 99, 0, 0, 0);
	assert_int_equal(redirect(&redirected, packet, &tid, mad, IB_MAD_SIZE), 0);
	assert_int_equal(address->grh_present, 0);
	assert_int_equal(be32toh(address->qpn), 1);
	assert_int_equal(be32toh(address->qkey), IB_DEFAULT_QP1_QKEY);
	free(redirected);
}

TEST(a_path_is_asked_for_with_both_gids_and_leads_through_a_router)
{
	struct path_source source = {
		.sa = {.lid = 8, .qp = 1}, .gid = {0xfd, 1}, .agent = 5, .sa_key = 0x77};
	struct redirect_state *redirected = NULL;
	ib_rpc_t rpc = {.mgtclass = IB_PERFORMANCE_CLASS,
			.method = IB_MAD_METHOD_SET,
			.mkey = UINT64_MAX};
	uint8_t packet[PACKET_SIZE] = {0}, request[PACKET_SIZE], mad[IB_MAD_SIZE], gid[16];
	uint8_t *asked = umad_get_mad(packet), *record = asked + IB_SA_DATA_OFFS;
	static const uint8_t no_service[8];
	uint32_t tid = 5;

	assert_true(mad_build_pkt(packet, &rpc, &(ib_portid_t){.lid = 1}, NULL, NULL) > 0);
	memcpy(request, packet, sizeof(request));
	answer(mad, 0, 0, 0, 0xfe);
	assert_int_equal(redirect(&redirected, packet, &tid, mad, IB_MAD_SIZE), 0);
	assert_true(redirect_needs_path(redirected));
	assert_false(redirect_awaits_path(redirected));
	assert_int_equal(tid, 0);

	redirect_ask_path(redirected, packet, &source);
	assert_false(redirect_needs_path(redirected));
	assert_true(redirect_awaits_path(redirected));
	assert_int_equal(((struct ib_user_mad *)(void *)packet)->agent_id, 5);
	assert_int_equal(be16toh(umad_get_mad_addr(packet)->lid), 8);
	assert_int_equal(get32(asked, RMPP_VERSION_OFFS), 0);
	assert_int_equal(mad_get_field64(asked, 0, IB_SA_MKEY_F), 0x77);
	assert_memory_equal(record, no_service, sizeof(no_service));
	mad_get_array(record, 0, IB_SA_PR_DGID_F, gid);
	assert_int_equal(gid[0], 0xfe);
	mad_get_array(record, 0, IB_SA_PR_SGID_F, gid);
	assert_memory_equal(gid, source.gid, 16);
	assert_int_equal(mad_get_field(record, 0, IB_SA_PR_NPATH_F), 1);

	memset(mad, 0, sizeof(mad));
	mad_set_field(mad + IB_SA_DATA_OFFS, 0, IB_SA_PR_DLID_F, 33);
	mad_set_field(mad + IB_SA_DATA_OFFS, 0, IB_SA_PR_SL_F, 6);
	assert_int_equal(redirect(&redirected, packet, &tid, mad, IB_MAD_SIZE), 0);
	assert_int_equal(tid, 5);
	assert_memory_equal(umad_get_mad(packet), umad_get_mad(request), IB_MAD_SIZE);
	assert_int_equal(be16toh(umad_get_mad_addr(packet)->lid), 33);
	assert_int_equal(umad_get_mad_addr(packet)->sl, 6);
	assert_int_equal(umad_get_mad_addr(packet)->grh_present, 1);
	assert_int_equal(umad_get_mad_addr(packet)->gid[0], 0xfe);
	free(redirected);
}

/* --- many transmissions --------------------------------------------------------- */

/*
 * The number of transmissions if no response ever comes, with the kernel's reports or without.
 */
static unsigned transmissions_to_nobody(int attempts, uint32_t late_us, bool reports)
{
	enum request_action action = ACTION_QUEUE;
	struct request_event report = {.kind = EVENT_REPORT};
	struct request *request = row_request('A');
	char line[40];
	unsigned count;

	rows_setup();
	snprintf(line, sizeof(line), "make attempts=%d", attempts);
	run_line(line);
	set_late_after(late_us);
	while (action != ACTION_COMPLETE)
		if (action == ACTION_QUEUE) {
			assert_int_equal(row_event(EVENT_SEND, 0), ACTION_WRITE);
			action = row_event(EVENT_WRITTEN, 0);
		} else if (reports && request->phase == REQUEST_AWAITING_REPORT) {
			report.now = *row_now();
			report.transmission = &request->transmissions.live[0];
			action = request_handle(row_requests(), request, &report);
		} else {
			action = row_event(EVENT_TIMER, 0);
		}
	assert_int_equal(request->error, ETIMEDOUT);
	count = request->transmissions.count;
	rows_teardown();
	return count;
}

/* 0: as flow control says. */
static const uint32_t times_us[] = {1, 4 * MS, 0, 400 * MS, 2000 * MS};

TEST(attempts_are_twice_as_many_transmissions_at_most_and_one_is_one)
{
	rows_teardown();
	for (int attempts = 1; attempts < 12; attempts++)
		for (unsigned i = 0; i < sizeof(times_us) / sizeof(times_us[0]); i++)
			for (int reports = 0; reports < 2; reports++)
				assert_in_range(
					transmissions_to_nobody(attempts, times_us[i], reports),
					attempts, attempts > 1 ? 2 * attempts : 1);
	/* within attempts, all are used up where nodes respond quickly */
	assert_int_equal(transmissions_to_nobody(3, 4 * MS, false), 6);
	assert_int_equal(transmissions_to_nobody(3, 2000 * MS, false), 3);
	rows_setup();
}

TEST(the_interval_stops_growing_before_it_overflows)
{
	int64_t sent, interval = 0;

	run_line("make attempts=40 timeout=1073741823");
	for (unsigned i = 0; i < 40; i++) {
		run_line("$sent");
		sent = *row_now();
		run_line("late > QUEUE");
		assert_true(*row_now() - sent >= interval);
		interval = *row_now() - sent;
	}
	assert_in_range(interval, UINT32_MAX / 4, UINT32_MAX);
}

TEST(the_count_of_transmissions_does_not_overflow)
{
	struct request *request = row_request('A');
	struct request_event event = {.kind = EVENT_RESPONSE, .length = IB_MAD_SIZE};
	uint8_t umad[PACKET_SIZE] = {0}, *mad = umad_get_mad(umad);

	run_line("make Set attempts=65535 timeout=1073741823");
	mad[1] = IB_PERFORMANCE_CLASS;
	put16(mad, STATUS_OFFS, IB_MAD_STS_BUSY);
	for (unsigned i = 0; i < UINT16_MAX + 10; i++) {
		assert_int_equal(row_event(EVENT_SEND, 0), ACTION_WRITE);
		assert_int_equal(row_event(EVENT_WRITTEN, 0), ACTION_SET_TIMER);
		event.umad = umad;
		event.now = *row_now();
		event.transmission = &request->transmissions.live[0];
		assert_int_equal(request_handle(row_requests(), request, &event),
				 ACTION_SET_TIMER);
		assert_int_equal(row_event(EVENT_TIMER, 0), ACTION_QUEUE);
	}
	assert_int_equal(request->transmissions.count, UINT16_MAX);
}

/* Requests that got BUSY at the same time do not come back at the same time. */
TEST(the_pause_is_up_to_half_as_long_again)
{
	int64_t pause, shortest = INT64_MAX, longest = 0;

	for (unsigned i = 0; i < 16; i++) {
		run_line("make; $sent; response BUSY > SET_TIMER PAUSED");
		pause = row_request('A')->timer_at - *row_now();
		shortest = pause < shortest ? pause : shortest;
		longest = pause > longest ? pause : longest;
	}
	assert_int_equal(shortest, 10 * MS);
	assert_int_equal(longest, 10 * MS + 10 * MS * 15 / 32);
}

TEST(a_pause_ends_before_the_last_attempt)
{
	for (unsigned i = 0; i < 2; i++) {
		int64_t pause, end = *row_now() + 1000 * MS;

		run_line("make attempts=1; $sent");
		pause = 10 * MS + 10 * MS * (int64_t)((mad_trid() + 1) % 16) / 32;
		*row_now() = end - pause - i;
		run_line(i ? "response BUSY > SET_TIMER PAUSED"
			   : "response BUSY > COMPLETE EIO");
	}
}

/* --- the table of transaction IDs ----------------------------------------------- */

#define MANY 1000

static struct tids tids;
static struct transmissions many[MANY];

static struct transmission *begin(unsigned i, uint32_t tid, uint8_t mgmt_class)
{
	uint8_t mad[IB_MAD_SIZE] = {0, mgmt_class};

	many[i] = (struct transmissions){0};
	transmissions_init(&many[i], tid, mgmt_class);
	return transmission_begin(&tids, &many[i], mad, 1);
}

TEST(each_of_many_ids_is_found_with_its_class_alone)
{
	tids_init(&tids);
	for (uint32_t i = 0; i < MANY; i++) {
		tids_reserve(&tids, tids.count + 1);
		/* the same IDs in two classes */
		assert_int_equal(
			begin(i, 1 + i / 2 * 7, i & 1 ? IB_SA_CLASS : IB_SMI_CLASS)->tid,
			1 + i / 2 * 7);
	}
	for (uint32_t i = 0; i < MANY; i++)
		assert_ptr_equal(
			tids_find(&tids, 1 + i / 2 * 7, i & 1 ? IB_SA_CLASS : IB_SMI_CLASS),
			&many[i].live[0]);
	assert_null(tids_find(&tids, 1, IB_PERFORMANCE_CLASS));
	assert_null(tids_find(&tids, 2, IB_SMI_CLASS));
	for (uint32_t i = 0; i < MANY; i += 2)
		transmissions_forget(&tids, &many[i]);
	transmission_forget(&tids, &many[0].live[0]); /* again */
	assert_int_equal(tids.count, MANY / 2);
	for (uint32_t i = 0; i < MANY; i++)
		assert_ptr_equal(
			tids_find(&tids, 1 + i / 2 * 7, i & 1 ? IB_SA_CLASS : IB_SMI_CLASS),
			i & 1 ? &many[i].live[0] : NULL);
	tids_free(&tids);
}

TEST(all_transmissions_are_in_the_buckets)
{
	struct transmission *transmission;
	unsigned count = 0;

	tids_init(&tids);
	for (unsigned i = 0; i < 100; i++)
		begin(i, 77 + i, IB_SMI_CLASS);
	for (unsigned i = 0; i < tids.bucket_count; i++)
		while ((transmission = tids.buckets[i])) {
			transmission_forget(&tids, transmission);
			count++;
		}
	assert_int_equal(count, 100);
	assert_int_equal(tids.count, 0);
	tids_free(&tids);
}

TEST(the_table_grows_to_a_power_of_two_if_it_is_too_small)
{
	unsigned allocations = device_allocations();

	tids_init(&tids);
	tids_reserve(&tids, TIDS_FIRST_BUCKETS);
	assert_int_equal(tids.bucket_count, TIDS_FIRST_BUCKETS);
	assert_int_equal(device_allocations(), allocations);
	tids_reserve(&tids, TIDS_FIRST_BUCKETS + 1);
	assert_int_equal(tids.bucket_count, 2 * TIDS_FIRST_BUCKETS);
	tids_reserve(&tids, 5 * TIDS_FIRST_BUCKETS);
	assert_int_equal(tids.bucket_count, 8 * TIDS_FIRST_BUCKETS);
	assert_int_equal(device_allocations(), allocations + 2);
	/* after it was freed it is as new */
	tids_free(&tids);
	assert_int_equal(tids.bucket_count, TIDS_FIRST_BUCKETS);
	begin(0, TIDS_FIRST_BUCKETS - 1, IB_SMI_CLASS);
	assert_ptr_equal(tids.buckets[TIDS_FIRST_BUCKETS - 1], &many[0].live[0]);
}

TEST(without_memory_the_table_has_longer_chains)
{
	tids_init(&tids);
	for (uint32_t i = 0; i < 100; i++) {
		device_fail_malloc(1);
		tids_reserve(&tids, tids.count + 1);
		begin(i, 1 + i, IB_SMI_CLASS);
	}
	device_fail_malloc(0);
	assert_int_equal(tids.bucket_count, TIDS_FIRST_BUCKETS);
	for (uint32_t i = 0; i < 100; i++)
		assert_ptr_equal(tids_find(&tids, 1 + i, IB_SMI_CLASS), &many[i].live[0]);
	tids_free(&tids);
}

/* --- phases and events that change nothing -------------------------------------- */

#define EVENT(kind) (1u << (kind))

/* How a request comes into each phase, and the events that have an effect there. */
static const struct {
	const char *line;
	unsigned events;
} cells[REQUEST_PHASES] = {
	[REQUEST_QUEUED] = {"$sent; late > QUEUE",
			    EVENT(EVENT_SEND) | EVENT(EVENT_TIMER) | EVENT(EVENT_RESPONSE) |
				    EVENT(EVENT_REPORT) | EVENT(EVENT_CANCEL)},
	[REQUEST_WRITING] = {"send > WRITE", EVENT(EVENT_WRITTEN) | EVENT(EVENT_RESPONSE) |
						     EVENT(EVENT_REPORT) | EVENT(EVENT_CANCEL)},
	[REQUEST_WAITING] = {"$sent", EVENT(EVENT_TIMER) | EVENT(EVENT_RESPONSE) |
					      EVENT(EVENT_REPORT) | EVENT(EVENT_CANCEL)},
	[REQUEST_PAUSED] = {"$sent; response BUSY > SET_TIMER PAUSED",
			    EVENT(EVENT_TIMER) | EVENT(EVENT_CANCEL)},
	[REQUEST_AWAITING_REPORT] =
		{"$sent; late > QUEUE; @1001ms; send > SET_TIMER AWAITING_REPORT",
		 EVENT(EVENT_TIMER) | EVENT(EVENT_RESPONSE) | EVENT(EVENT_REPORT) |
			 EVENT(EVENT_CANCEL)},
	[REQUEST_ASKING_PATH] = {"$ask", EVENT(EVENT_ASKED) | EVENT(EVENT_CANCEL)},
	[REQUEST_DONE] = {"$sent; response > COMPLETE", 0},
};

TEST(all_other_events_change_nothing)
{
	static struct requests before_all;
	static struct request before;
	uint8_t umad[PACKET_SIZE] = {0};
	struct request *request = row_request('A');
	unsigned count = 0;

	for (unsigned phase = 0; phase < REQUEST_PHASES; phase++) {
		rows_teardown();
		rows_setup();
		run_line(cells[phase].line);
		assert_int_equal(request->phase, phase);
		before = *request;
		before_all = *row_requests();
		for (unsigned kind = EVENT_NONE; kind < REQUEST_EVENTS; kind++) {
			struct request_event event = {
				.kind = (enum request_event_kind)kind,
				.error = kind == EVENT_CANCEL ? ECANCELED : 0,
				.now = *row_now() + 100000 * MS,
				.transmission = &request->transmissions.live[0],
				.umad = umad,
				.length = IB_MAD_SIZE,
			};

			if (cells[phase].events & EVENT(kind))
				continue;
			assert_int_equal(request_handle(row_requests(), request, &event),
					 ACTION_NONE);
			assert_memory_equal(request, &before, sizeof(before));
			assert_memory_equal(row_requests(), &before_all, sizeof(before_all));
			count++;
		}
	}
	assert_int_equal(count, REQUEST_PHASES * REQUEST_EVENTS - 21);
}
