/* A text in pieces that can be cited by their lines. */
#include "agents/rag/rag.h"
#include "protocol/base/utf8.h"

/* A heading of Markdown, or an empty line: a piece may end before it. */
static bool is_break(struct str line)
{
    const struct str t = str_trimmed(line);

    return t.len == 0 || t.ptr[0] == '#';
}

static struct str next_line(struct str rest)
{
    const char *end = memchr(rest.ptr, '\n', rest.len);

    return (struct str){rest.ptr, end == NULL ? rest.len : (size_t)(end - rest.ptr) + 1};
}

static enum bt_code put(rag_put_chunk put_chunk, void *self, struct str text, uint32_t first,
                        uint32_t last, struct bt_error *err)
{
    while (text.len > RAG_CHUNK_MAX) { /* lines without an end */
        const size_t n = utf8_cut_words(text.ptr, text.len, RAG_CHUNK_MAX);
        const size_t taken = n > 0 ? n : RAG_CHUNK_MAX;
        const enum bt_code code = put_chunk(self, (struct str){text.ptr, taken}, first, last, err);
        if (code != BT_OK) {
            return code;
        }
        text = (struct str){text.ptr + taken, text.len - taken};
    }
    return str_trimmed(text).len > 0 ? put_chunk(self, text, first, last, err) : BT_OK;
}

enum bt_code rag_chunks(struct str text, rag_put_chunk put_chunk, void *self, struct bt_error *err)
{
    struct str piece = {text.ptr, 0};
    uint32_t first = 1;
    uint32_t line = 1;
    enum bt_code code = BT_OK;

    while (text.len > 0 && code == BT_OK) {
        const struct str l = next_line(text);
        const bool full =
            piece.len + l.len > RAG_CHUNK_MAX || (piece.len >= RAG_CHUNK_BYTES && is_break(l));
        if (full && piece.len > 0) {
            code = put(put_chunk, self, piece, first, line - 1, err);
            piece = (struct str){text.ptr, 0};
            first = line;
        }
        if (piece.len == 0 && str_trimmed(l).len == 0) { /* a piece begins with words */
            piece.ptr = l.ptr + l.len;
            first = line + 1;
        } else {
            piece.len += l.len;
        }
        text = (struct str){l.ptr + l.len, text.len - l.len};
        line++;
    }
    return code == BT_OK && piece.len > 0 ? put(put_chunk, self, piece, first, line - 1, err)
                                          : code;
}
