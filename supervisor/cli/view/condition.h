/* Conditions of steps in words, for people. */
#ifndef CLI_VIEW_CONDITION_H
#define CLI_VIEW_CONDITION_H

struct buf;
struct cJSON;

/*
 * Appends a condition as plans have it, {results.read.bytes: {gt: 4096}}: "read.bytes > 4096". NULL
 * appends nothing. The text is for one line; values of agents in it are not made safe.
 */
void condition_words(const struct cJSON *when, struct buf *out);
#endif
