#include "agents/calc/expr.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "agents/calc/functions.h"

struct parser {
    const char *text;
    const char *at;
    const cJSON *variables;
    int depth;
    struct bt_error *err;
};

static enum bt_code sum(struct parser *p, double *ret);

static enum bt_code fail(const struct parser *p, const char *what)
{
    return err_set(p->err, BT_INVALID, "expression, at %td ('%.12s'): %s", p->at - p->text + 1,
                   p->at, what);
}

static void skip_blanks(struct parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r') {
        p->at++;
    }
}

static bool take(struct parser *p, char c)
{
    skip_blanks(p);
    if (*p->at != c) {
        return false;
    }
    p->at++;
    return true;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static enum bt_code number(struct parser *p, double *ret)
{
    const char *end = p->at;
    char *parsed = NULL;

    while (is_digit(*end) || *end == '.') {
        end++;
    }
    if ((*end == 'e' || *end == 'E') &&
        (is_digit(end[1]) || ((end[1] == '-' || end[1] == '+') && is_digit(end[2])))) {
        end += 2;
        while (is_digit(*end)) {
            end++;
        }
    }
    *ret = strtod(p->at, &parsed);
    if (parsed != end || !isfinite(*ret)) {
        return fail(p, "not a number");
    }
    p->at = end;
    return BT_OK;
}

/* ---- names ---- */

static struct str name_at(const struct parser *p)
{
    size_t n = 0;

    while (is_letter(p->at[n]) || (n > 0 && is_digit(p->at[n]))) {
        n++;
    }
    return (struct str){p->at, n};
}

static const cJSON *variable(const struct parser *p, struct str name)
{
    const cJSON *v;

    cJSON_ArrayForEach(v, p->variables)
    {
        if (v->string != NULL && str_is(name, v->string)) {
            return v;
        }
    }
    return NULL;
}

static enum bt_code add_list(struct parser *p, const cJSON *list, struct values *args)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsNumber(item)) {
            return fail(p, "a list with something that is no number");
        }
        if (!values_add(args, item->valuedouble)) {
            return fail(p, "too many values");
        }
    }
    return BT_OK;
}

static enum bt_code argument(struct parser *p, struct values *args)
{
    struct str name;
    const cJSON *list;
    const char *after;
    double v;
    enum bt_code code;

    skip_blanks(p);
    name = name_at(p);
    list = name.len > 0 ? variable(p, name) : NULL;
    after = p->at + name.len + strspn(p->at + name.len, " \t\r\n");
    if (cJSON_IsArray(list) && (*after == ',' || *after == ')')) {
        code = add_list(p, list, args);
        p->at = after;
        return code;
    }
    code = sum(p, &v);
    if (code == BT_OK && !values_add(args, v)) {
        code = fail(p, "too many values");
    }
    return code;
}

static enum bt_code call(struct parser *p, struct str name, const char *begin, double *ret)
{
    struct values args = {0};
    enum bt_code code = BT_OK;
    const char *why = NULL;

    if (!take(p, ')')) {
        do {
            code = argument(p, &args);
        } while (code == BT_OK && take(p, ','));
        if (code == BT_OK && !take(p, ')')) {
            code = fail(p, "expected ',' or ')'");
        }
    }
    if (code == BT_OK) {
        why = function_apply(name, &args, ret);
        if (why != NULL) {
            p->at = begin;
            code = fail(p, why);
        }
    }
    values_done(&args);
    return code;
}

static enum bt_code named(struct parser *p, double *ret)
{
    const char *begin = p->at;
    struct str name = name_at(p);
    const cJSON *v = variable(p, name);

    p->at += name.len;
    if (take(p, '(')) {
        return call(p, name, begin, ret);
    }
    if (cJSON_IsNumber(v)) {
        *ret = v->valuedouble;
        return BT_OK;
    }
    if (v == NULL && str_is(name, "pi")) {
        *ret = 3.14159265358979323846;
        return BT_OK;
    }
    if (v == NULL && str_is(name, "e")) {
        *ret = 2.71828182845904523536;
        return BT_OK;
    }
    p->at = begin;
    return fail(p, v == NULL ? "no variable of this name"
                             : "this variable is no number; a list may only be an argument");
}

/* ---- operators ---- */

static enum bt_code atom(struct parser *p, double *ret)
{
    enum bt_code code;

    skip_blanks(p);
    if (take(p, '(')) {
        code = sum(p, ret);
        return code == BT_OK && !take(p, ')') ? fail(p, "expected ')'") : code;
    }
    if (is_digit(*p->at) || *p->at == '.') {
        return number(p, ret);
    }
    if (is_letter(*p->at)) {
        return named(p, ret);
    }
    return fail(p, *p->at == 0 ? "it ends too early" : "expected a number, a name or '('");
}

static enum bt_code sign(struct parser *p, double *ret)
{
    double power;
    bool negative = false;
    enum bt_code code;

    /* Every level comes here; the outermost is none. */
    if (++p->depth > EXPR_DEPTH_MAX + 1) {
        return fail(p, "nested more than 64 levels deep");
    }
    while (true) {
        if (take(p, '-')) {
            negative = !negative;
        } else if (!take(p, '+')) {
            break;
        }
    }
    code = atom(p, ret);
    if (code == BT_OK && take(p, '^')) {
        code = sign(p, &power);
        if (code == BT_OK) {
            *ret = pow(*ret, power);
        }
    }
    *ret = code == BT_OK && negative ? -*ret : *ret;
    p->depth--;
    return code;
}

static enum bt_code product(struct parser *p, double *ret)
{
    enum bt_code code = sign(p, ret);

    while (code == BT_OK) {
        char op;
        double right;
        skip_blanks(p);
        op = *p->at;
        if (op != '*' && op != '/' && op != '%') {
            break;
        }
        p->at++;
        code = sign(p, &right);
        if (code == BT_OK && op != '*' && right == 0.0) {
            code = fail(p, "division by zero");
        } else if (code == BT_OK) {
            *ret = op == '*' ? *ret * right : op == '/' ? *ret / right : fmod(*ret, right);
        }
    }
    return code;
}

static enum bt_code sum(struct parser *p, double *ret)
{
    enum bt_code code = product(p, ret);

    while (code == BT_OK) {
        bool minus;
        double right;
        skip_blanks(p);
        minus = *p->at == '-';
        if (!minus && *p->at != '+') {
            break;
        }
        p->at++;
        code = product(p, &right);
        if (code == BT_OK) {
            *ret = minus ? *ret - right : *ret + right;
        }
    }
    return code;
}

enum bt_code expr_eval(const char *text, const cJSON *variables, double *ret, struct bt_error *err)
{
    struct parser p = {.text = text, .at = text, .variables = variables, .err = err};
    double v = 0.0;
    enum bt_code code;

    if (strlen(text) > EXPR_TEXT_MAX) {
        return err_set(err, BT_LIMIT, "expression: at most %d bytes", EXPR_TEXT_MAX);
    }
    code = sum(&p, &v);
    skip_blanks(&p);
    if (code == BT_OK && *p.at != 0) {
        code = fail(&p, "expected an operator or the end");
    }
    if (code == BT_OK && !isfinite(v)) {
        code = err_set(err, BT_INVALID, "expression: the result is not a finite number");
    }
    if (code == BT_OK) {
        *ret = v;
    }
    return code;
}
