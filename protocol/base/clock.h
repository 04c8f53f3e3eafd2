/*
 * The only reader of time. Deadlines use clock_mono_ms (CLOCK_MONOTONIC, never set back);
 * timestamps use clock_wall_ms. The core and the registry never call this; they get the time as a
 * parameter. Thread-safe.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

#include "protocol/base/msec.h"

msec clock_mono_ms(void);
uint64_t clock_mono_ns(void);
/* The same, and it goes on while the machine sleeps (CLOCK_BOOTTIME): for a lease that others
 * count. */
msec clock_boot_ms(void);
/* The processor time of the calling thread: what others take is not in it. */
uint64_t clock_thread_ns(void);
/* Milliseconds since 1970-01-01 UTC. */
msec clock_wall_ms(void);

enum { CLOCK_ISO_LEN = 24 };
/* Writes "2026-11-21T03:53:00.123Z" and a terminating zero into ret (CLOCK_ISO_LEN + 1 bytes). */
void clock_iso(msec wall_ms, char *ret);
#endif
