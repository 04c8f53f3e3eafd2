/* Filling in a bt_error, and the step error classes (REQUIREMENTS M040). Pure, no allocation. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "baton/error.h"

enum err_class {
#define CLASS(name, retryable, sentence) CLASS_##name,
#include "protocol/errors.def"
    CLASS_COUNT
};

/* Fills *err (may be NULL) and returns code, so that `return err_set(err, BT_INVALID, "...")` is
 * one line. */
enum bt_code err_set(struct bt_error *err, enum bt_code code, const char *fmt, ...) BT_PRINTF(3, 4);
/* Puts "prefix: " before the sentence already in *err; keeps and returns its code. */
enum bt_code err_wrap(struct bt_error *err, const char *fmt, ...) BT_PRINTF(2, 3);
/* BT_IO (or BT_NOT_FOUND, BT_NOMEM where errno says so) with strerror(errnum) appended. */
enum bt_code err_errno(struct bt_error *err, int errnum, const char *fmt, ...) BT_PRINTF(3, 4);

/* "NOT_FOUND" -> BT_NOT_FOUND; an unknown name is BT_INTERNAL. */
enum bt_code err_code_from_name(const char *name, size_t len);
/* Whether a request that got this code may be sent again as it is. */
bool err_code_retryable(enum bt_code code);
/* How long to wait before that, when the sender of the error names no other time; 0 = no wait. */
uint32_t err_code_wait_ms(enum bt_code code);

/* The wire name of a class; "NONE" for CLASS_NONE; never NULL. */
const char *err_class_name(enum err_class c);
/* An unknown name gives CLASS_UNKNOWN. */
enum err_class err_class_from_name(const char *name, size_t len);
/* Whether an attempt that failed with this class is worth another one when the agent did not say.
 */
bool err_class_retryable(enum err_class c);
#endif
