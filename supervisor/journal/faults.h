/*
 * DIR/faults: whose input a daemon was applying when it crashed (G23). One line for each crash, of
 * at most FAULTS_MAX; the file is for people, too:
 *
 *   6F1C…-… signal 11 at 1795453200000
 *
 * It is no part of the journal: nothing depends on it but the count of faults, and what a power
 * cut takes away is not counted. Its blocks are there from its first opening on, so that a fault
 * needs no room on a full disk.
 */
#ifndef JOURNAL_FAULTS_H
#define JOURNAL_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/err.h"
#include "protocol/base/msec.h"
#include "protocol/base/str.h"
#include "protocol/base/uuid.h"

enum {
    FAULT_LINE_BYTES = 64,
    FAULTS_MAX = 64, /* a page */
    FAULTS_LIMIT = 3 /* the third fault of a plan puts it in quarantine */
};

struct faults {
    int fd; /* -1: cannot be written */
    uint32_t n;
    char lines[FAULTS_MAX * FAULT_LINE_BYTES];
};

/* Reads the file, and creates it; lines that are none are left out. On an error `ret` has what
 * could be read, and faults_add does nothing: a daemon works without. */
enum bt_code faults_open(const char *dir, struct faults *ret, struct bt_error *err);
/* Only reads, and creates nothing; no file: no faults. */
enum bt_code faults_read(const char *dir, struct faults *ret, struct bt_error *err);
void faults_close(struct faults *f);
uint32_t faults_count(const struct faults *f, struct uuid plan);
/* The plan of line i of f->n, and the line without its padding. */
struct uuid faults_plan(const struct faults *f, uint32_t i);
struct str faults_line(const struct faults *f, uint32_t i);
/* Leaves out the lines of plans that `keep` refuses. */
void faults_keep(struct faults *f, bool (*keep)(struct uuid plan, void *self), void *self);
/* Adds a line; safe in a signal handler. The oldest one makes room. */
void faults_add(struct faults *f, struct uuid plan, int sig, msec wall);
#endif
