/*
 * What a gate or a verifier answered: yes, no, or nothing that can be read as either. Pure but for
 * the buffers.
 *
 *     data (or the text, when it is JSON)   {"passed"|"sufficient"|"ok": bool,
 *                                            "diagnosis"|"reason"|"feedback": text,
 *                                            "missing": [text...]}
 *     data true or false
 *     any other text                        the first word yes, pass, passed, ok, okay, true or
 *                                            sufficient is a yes; everything else is a no, and the
 *                                            text its diagnosis
 *
 * Where several members speak, one no is a no.
 */
#ifndef DISPATCH_VERDICT_H
#define DISPATCH_VERDICT_H

#include "protocol/base/buf.h"
#include "protocol/wire/msg.h"

enum verdict { VERDICT_UNREADABLE, VERDICT_NO, VERDICT_YES };

enum { VERDICT_TEXT_MAX = 2048, VERDICT_MISSING_MAX = 16 };

/* Appends the diagnosis to *text (at most VERDICT_TEXT_MAX bytes, a longer one is cut with a mark;
 * never empty for a no; for an unreadable one what would have been right), and what is missing to
 * *missing as a msgpack array of at most VERDICT_MISSING_MAX texts, of which the last one says how
 * many more there are (nothing when nothing is missing). */
enum verdict verdict_read(const struct msg_result *result, struct buf *text, struct buf *missing);

/* The map that an answer is about: its data, or its text read as JSON into *parsed (between fences,
 * too). .ptr NULL when there is none. Valid as long as both. */
struct doc answer_map(const struct msg_result *result, struct buf *parsed);
/* True when a planner answers that no plan can reach the goal (member `impossible`, a text); *text
 * then gets "Mission impossible: " and why. */
bool answer_impossible(struct doc answer, struct buf *text);
#endif
