/* The text before the parser reads it, and single scalars. Shared by yaml*.c. */
#ifndef CONFIG_YAML_TEXT_H
#define CONFIG_YAML_TEXT_H

#include "protocol/base/buf.h"
#include "supervisor/config/yaml.h"

struct cJSON;

/* The place of a byte; columns count characters. */
struct yaml_place yaml_text_place(struct str text, size_t offset);
/* The offset of a place (both from 0), at most text.len. */
size_t yaml_text_offset(struct str text, size_t line, size_t column);
/* The offset of the first byte that is not UTF-8, or text.len. */
size_t yaml_text_valid(struct str text);
/* Appends the text with \U escapes in place of surrogate pairs: JSON writes characters above U+FFFF
 * as two \u escapes, which libyaml rejects. Only for text that starts with { or [. */
void yaml_text_join_surrogates(struct str text, struct buf *out);

/* The value of a scalar by the core schema of YAML 1.2. With BT_INVALID, *ret_why (static text) is
 * the reason. */
BT_MUST_CHECK enum bt_code yaml_scalar(const char *text, bool plain, struct cJSON **ret,
                                       const char **ret_why);
#endif
