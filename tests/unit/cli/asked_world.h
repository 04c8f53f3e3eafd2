/*
 * What is around a command line of test_cli_asked: time, which passes only while it waits; a
 * terminal; and what happens meanwhile, in the order of the script. One case per process.
 *
 *     -               nothing, until the wait ends
 *     +5000           so many milliseconds pass
 *     kill INT        a signal (INT, TERM, HUP, QUIT, TSTP, CONT)
 *     keys q\r\x1b    keys of the terminal
 *     size 40x10      its new size, with its signal
 *     put FILE text   a file has this text and its line end from now on
 *     add FILE text   a line more at its end; a text that ends with "\c" has no line end
 *     move FILE TO    it has another name; "move FILE -": it is gone
 */
#ifndef TEST_ASKED_WORLD_H
#define TEST_ASKED_WORLD_H

#include <stdbool.h>
#include <stdio.h>

#include "protocol/base/buf.h"
#include "protocol/base/msec.h"

enum { WORLD_START_MS = 1000000 };

/* The next happening of the script that is not the watch's, and takes it; NULL = it is not its
 * turn, or there is none. */
typedef const char *(*world_next_fn)(void);

/* Begins, in the child: asked gets what the command line does to its world. */
void world_begin(FILE *asked, world_next_fn next, bool is_scripted);
/* Whether the case says what happens: then waits take no time, else a little. */
bool world_is_scripted(void);
/* Waits so long: does the next happening, else time passes. */
void world_wait(uint64_t timeout_ms);
/* Milliseconds since WORLD_START_MS at the start. */
msec world_ms(void);

/* ---- the terminal ---- */

/* As "100x30 012": its size, and which streams are it. Fails the test. */
void world_terminal_open(const char *text);
/* In the child: it becomes those streams. */
void world_terminal_take(void);
/* In the parent: appends what was written to it until all have closed it. */
void world_terminal_read(struct buf *out);
#endif
