#include "supervisor/cli/chat/line.h"

enum { CTRL_D = 4, CTRL_H = 8, CTRL_U = 21, CTRL_W = 23, ESCAPE = 27, DELETE = 127 };
enum { PASTE_BEGINS = 200, PASTE_ENDS = 201, NUMBER_MAX = 1000 };
enum { OUTSIDE, BEGUN, WITHIN, ONE_MORE }; /* of an escape sequence */

/* Whether it is the second or a later byte of a character. */
static bool goes_on(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

void chat_line_clear(struct chat_line *l)
{
    l->len = 0;
    l->text[0] = 0;
    l->escape = OUTSIDE;
    l->cut = l->pasting = false;
}

void chat_line_add(struct chat_line *l, unsigned char byte)
{
    if (l->len == CHAT_LINE_MAX) {
        l->cut = true;
        return;
    }
    l->text[l->len++] = (char)byte;
    l->text[l->len] = 0;
}

static void cut(struct chat_line *l, size_t len)
{
    l->cut = l->cut && len > 0; /* the lost part stays lost, unless the line is typed again */
    l->len = len;
    l->text[len] = 0;
}

static void erase_character(struct chat_line *l)
{
    size_t n = l->len;

    while (n > 0 && goes_on(l->text[n - 1])) {
        n--;
    }
    cut(l, n > 0 ? n - 1 : 0);
}

static void erase_word(struct chat_line *l)
{
    size_t n = l->len;

    while (n > 0 && l->text[n - 1] == ' ') {
        n--;
    }
    while (n > 0 && l->text[n - 1] != ' ') {
        n--;
    }
    cut(l, n);
}

/* Keys such as arrows: "ESC [ ... letter", "ESC O letter", "ESC letter". True when the byte belongs
 * to one. */
static bool escaped(struct chat_line *l, unsigned char byte)
{
    switch (l->escape) {
    case OUTSIDE:
        l->escape = byte == ESCAPE ? BEGUN : OUTSIDE;
        return byte == ESCAPE;
    case BEGUN:
        l->number = 0;
        l->escape = byte == '[' ? WITHIN : byte == 'O' ? ONE_MORE : OUTSIDE;
        return byte != '\r' && byte != '\n';
    case WITHIN:
        if (byte >= '0' && byte <= '9' && l->number < NUMBER_MAX) {
            l->number = (uint16_t)(l->number * 10 + (byte - '0'));
        } else if (byte == '~' && (l->number == PASTE_BEGINS || l->number == PASTE_ENDS)) {
            l->pasting = l->number == PASTE_BEGINS;
        }
        l->escape = byte >= 0x40 && byte < 0x7F ? OUTSIDE : WITHIN;
        return true;
    default:
        l->escape = OUTSIDE;
        return true;
    }
}

/* Terminals send \r as the end of a line; a pasted file may have \r\n. */
static void pasted(struct chat_line *l, unsigned char byte)
{
    if (byte == '\r' || (byte == '\n' && (l->len == 0 || l->text[l->len - 1] != '\n'))) {
        chat_line_add(l, '\n');
    } else if (byte == '\t' || (byte >= 0x20 && byte != DELETE)) {
        chat_line_add(l, byte);
    }
}

enum chat_key chat_line_key(struct chat_line *l, unsigned char byte)
{
    if (escaped(l, byte)) {
        return CHAT_KEY_MORE;
    }
    if (l->pasting) {
        pasted(l, byte);
        return CHAT_KEY_MORE;
    }
    if (byte == '\r' || byte == '\n') {
        return CHAT_KEY_DONE;
    }
    if (byte == CTRL_D && l->len == 0) {
        return CHAT_KEY_END;
    }
    if (byte == DELETE || byte == CTRL_H) {
        erase_character(l);
    } else if (byte == CTRL_U) {
        cut(l, 0);
    } else if (byte == CTRL_W) {
        erase_word(l);
    } else if (byte >= 0x20 || byte == '\t') {
        chat_line_add(l, byte == '\t' ? ' ' : byte);
    }
    return CHAT_KEY_MORE;
}

/* Characters from U+1100 on may be two columns wide; too many is better than too few. */
static size_t width_of(unsigned char first)
{
    return first >= 0xE1 ? 2 : 1;
}

const char *chat_line_tail(const struct chat_line *l, size_t columns)
{
    size_t at = l->len;
    size_t wide = 0;

    while (at > 0) {
        size_t before = at - 1;
        while (before > 0 && goes_on(l->text[before])) {
            before--;
        }
        wide += width_of((unsigned char)l->text[before]);
        if (wide > columns) {
            break;
        }
        at = before;
    }
    return l->text + at;
}
