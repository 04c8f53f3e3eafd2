/* Arithmetic in a goal: one pass over operands and operators. Pure. */
#include <strings.h>

#include "supervisor/keyword/keyword_internal.h"

enum { DEPTH_MAX = 32, NAME_MAX_BYTES = 12 };

struct reader {
    struct str text;
    size_t at;
    struct buf *out;
    bool calculates;   /* an operator or a function was there */
    const char *joins; /* more words for the operator `sign`: "and" after "add" */
    char sign;
};

static char peek(const struct reader *r, size_t ahead)
{
    return r->at + ahead < r->text.len ? r->text.ptr[r->at + ahead] : '\0';
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads the first of "times|multiplied by|x" that stands here; its place in the list, from 1. */
static unsigned read_any(struct reader *r, const char *list)
{
    const size_t from = r->at;
    while (peek(r, 0) == ' ') {
        r->at++;
    }
    for (unsigned nth = 1; *list != '\0'; nth++) {
        const size_t n = strcspn(list, "|");
        const bool word = list[0] >= 'a' && list[0] <= 'z';
        if (n <= r->text.len - r->at && strncasecmp(r->text.ptr + r->at, list, n) == 0 &&
            !(word && text_in_word(peek(r, n)))) {
            r->at += n;
            return nth;
        }
        list += n + (list[n] == '|');
    }
    r->at = from;
    return 0;
}

static bool read_number(struct reader *r)
{
    static const char names[] =
        "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve";
    const unsigned name = read_any(r, names);
    while (name == 0 && peek(r, 0) == ' ') {
        r->at++;
    }
    const size_t from = r->at;
    while (digit(peek(r, 0)) || (r->at > from && peek(r, 0) == '.' && digit(peek(r, 1)))) {
        r->at++;
    }
    if (name > 0) {
        buf_printf(r->out, "%u", name - 1);
    }
    buf_add(r->out, r->text.ptr + from, r->at - from);
    return name > 0 || r->at > from;
}

/* A number, or what opens a group; *io_after is added after the next number. */
static bool read_operand(struct reader *r, bool *ret_opened, const char **io_after)
{
    while (peek(r, 0) == ' ' ||
           ((peek(r, 0) == '-' || peek(r, 0) == '+') && (digit(peek(r, 1)) || peek(r, 1) == '('))) {
        buf_add(r->out, r->text.ptr + r->at, peek(r, 0) != ' ');
        r->at++;
    }
    *ret_opened = false;
    if (read_any(r, "the square root of|square root of") > 0) {
        buf_add_cstr(r->out, "sqrt(");
        *io_after = ")";
        r->calculates = true;
    }
    if (read_number(r)) {
        if (**io_after == '\0' && read_any(r, "% of|percent of|per cent of") > 0) {
            buf_add_cstr(r->out, " * ");
            *io_after = " / 100";
            r->calculates = true;
            return read_operand(r, ret_opened, io_after) && !*ret_opened;
        }
        buf_add_cstr(r->out, *io_after);
        *io_after = "";
        return true;
    }
    size_t n = 0; /* "(" or "sqrt(" */
    while (n < NAME_MAX_BYTES && text_in_word(peek(r, n))) {
        n++;
    }
    *ret_opened = peek(r, n) == '(' && **io_after == '\0';
    buf_add(r->out, r->text.ptr + r->at, *ret_opened ? n + 1 : 0);
    r->at += *ret_opened ? n + 1 : 0;
    r->calculates = r->calculates || *ret_opened;
    return *ret_opened;
}

/* '\0' = none comes next. */
static char read_operator(struct reader *r)
{
    static const struct {
        char sign;
        const char *words;
    } operators[] = {{'+', "+|plus"},
                     {'-', "-|minus"},
                     {'^', "**|^|to the power of"},
                     {'*', "*|\xc3\x97|times|multiplied by|x"},
                     {'/', "/|\xc3\xb7|divided by"},
                     {'%', "%|modulo|mod"}};
    if (read_any(r, r->joins) > 0) {
        return r->sign;
    }
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        if (read_any(r, operators[i].words) > 0) {
            return operators[i].sign;
        }
    }
    return '\0';
}

/* Operands and operators in the order of the text: the agent knows which bind first. */
static bool read_terms(struct reader *r)
{
    const char *after = "";
    unsigned depth = 0;
    bool opened = false;
    for (;;) {
        if (!read_operand(r, &opened, &after)) {
            return false;
        }
        depth += opened;
        if (opened && depth < DEPTH_MAX) {
            continue;
        }
        for (; depth > 0 && read_any(r, ")") > 0; depth--) {
            buf_add_byte(r->out, ')');
        }
        const bool comma = depth > 0 && read_any(r, ",") > 0;
        const char sign = comma ? ',' : read_operator(r);
        if (sign == '\0') {
            return depth == 0;
        }
        r->calculates = true;
        buf_printf(r->out, comma ? "%c " : " %c ", sign);
    }
}

static bool ends(const struct reader *r)
{
    const char c = peek(r, 0);
    return c == '\0' || text_is_one_of(c, BLANKS) ||
           (text_is_one_of(c, ",;.?!:)=") && !text_in_word(peek(r, 1)));
}

size_t expression_read(struct str text, size_t from, size_t *io_failed, struct buf *out)
{
    static const struct {
        const char *verb, *joins;
        char sign;
        const char *before;
    } commands[] = {{"add up|add|sum up|sum", ", and|,|and|plus|to", '+', ""},
                    {"multiply|the product of", "by|and|with", '*', ""},
                    {"divide", "by", '/', ""},
                    {"subtract", "from", '+', "-"}};
    struct reader r = {.text = text, .at = from, .out = out, .joins = ""};
    const size_t len = out->len;
    const bool date = text.len - from >= 10 && text_is_number((struct str){text.ptr + from, 10}) &&
                      text.ptr[from + 4] == '-' && text.ptr[from + 7] == '-';
    for (size_t i = 0; i < sizeof commands / sizeof commands[0] && r.at == from; i++) {
        if (read_any(&r, commands[i].verb) > 0) {
            r.joins = commands[i].joins;
            r.sign = commands[i].sign;
            buf_add_cstr(out, commands[i].before);
        }
    }
    const bool ok = from >= *io_failed && !date && read_terms(&r) && r.calculates && ends(&r);
    if (ok && out->bad == BT_OK) {
        return r.at;
    }
    *io_failed = r.calculates && r.at > *io_failed ? r.at : *io_failed;
    buf_truncate(out, out->bad == BT_OK ? len : out->len);
    return from;
}
