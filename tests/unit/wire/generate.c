#include "tests/unit/wire/generate.h"

#include "protocol/base/assert.h"

static const char *const characters[] = {
    "a",           "Z",    "0",    " ", "\"",       "\\",           "/",
    "\n",          "\x01", "\x7F", ".", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
    "\xEF\xBF\xBF"};

static struct str text(struct rng *rng, size_t max, char ret[100])
{
    size_t want = rng_below(rng, 24);
    size_t len = 0;

    for (size_t i = 0; i < want; i++) {
        const char *c = characters[rng_below(rng, sizeof characters / sizeof characters[0])];
        size_t n = strlen(c);
        if (len + n <= max && len + n <= 100) {
            memcpy(ret + len, c, n);
            len += n;
        }
    }
    return (struct str){ret, len};
}

static uint64_t number(struct rng *rng)
{
    return rng_next(rng) >> rng_below(rng, 64);
}

static double fraction(struct rng *rng)
{
    static const double some[] = {
        0.0, -0.0, 0.1, 1.0, -1.5, 1e300, 5e-324, 1e20, 9007199254740993.0};
    if (rng_below(rng, 2) == 0) {
        return some[rng_below(rng, sizeof some / sizeof some[0])];
    }
    return (double)(int64_t)number(rng) / 1024.0;
}

/* A head of 1 + n bytes, big-endian. */
static void put_head(struct buf *out, uint8_t first, uint64_t v, unsigned n)
{
    buf_add_byte(out, first);
    while (n-- > 0) {
        buf_add_byte(out, (uint8_t)(v >> (8 * n)));
    }
}

static void put_text(struct rng *rng, bool loose, struct buf *out)
{
    char room[100];
    struct str s = text(rng, sizeof room, room);

    if (loose && rng_below(rng, 2) == 0) {
        unsigned width = rng_below(rng, 3);
        put_head(out, (uint8_t)(0xD9u + width), s.len, 1u << width);
        buf_add_str(out, s);
    } else {
        doc_put_str(out, s);
    }
}

static void put_scalar(struct rng *rng, struct generate_options how, struct buf *out)
{
    uint64_t v = number(rng);

    switch (rng_below(rng, how.loose ? 10 : how.json ? 6 : 7)) {
    case 0:
        doc_put_nil(out);
        break;
    case 1:
        doc_put_bool(out, rng_below(rng, 2) == 0);
        break;
    case 2:
        doc_put_u64(out, v);
        break;
    case 3:
        doc_put_i64(out, -(int64_t)(v >> 1) - 1);
        break;
    case 4:
        doc_put_f64(out, fraction(rng));
        break;
    case 5:
        put_text(rng, how.loose, out);
        break;
    case 6:
        doc_put_bin(out, &v, rng_below(rng, sizeof v + 1));
        break;
    case 7:
        put_head(out, 0xCF, v & 0xFF, 8);
        break;
    case 8:
        put_head(out, 0xD3, v, 8);
        break;
    default:
        put_head(out, 0xCA, 0x3FC00000 ^ (v & 0xFFFF), 4);
        break;
    }
}

void generate_doc(struct rng *rng, struct generate_options how, struct buf *out)
{
    uint32_t shape = rng_below(rng, 4);
    uint32_t n = rng_below(rng, rng_below(rng, 8) == 0 ? 40 : 5);
    bool is_map = shape == 0;

    if (how.depth == 0 || shape > 1) {
        put_scalar(rng, how, out);
        return;
    }
    if (how.loose && rng_below(rng, 2) == 0) {
        put_head(out, is_map ? 0xDF : 0xDD, n, 4);
    } else if (is_map) {
        doc_put_map(out, n);
    } else {
        doc_put_array(out, n);
    }
    how.depth--;
    for (uint32_t i = 0; i < n; i++) {
        char key[16];
        if (is_map) {
            (void)snprintf(key, sizeof key, "%x-%u", (unsigned)rng_below(rng, 4096), (unsigned)i);
            doc_put_cstr(out, key);
        }
        generate_doc(rng, how, out);
    }
}

static struct str some_text(struct rng *rng, struct arena *arena, uint64_t max)
{
    char room[100];
    return arena_str(arena, text(rng, (size_t)max, room));
}

static struct doc some_doc(struct rng *rng, struct arena *arena, uint64_t max)
{
    struct buf bytes;
    struct doc d;

    buf_init(&bytes, 1 << 20);
    do {
        buf_clear(&bytes);
        generate_doc(rng, (struct generate_options){3, false, true}, &bytes);
    } while (bytes.len > max || doc_head(doc_from_buf(&bytes)).kind == DOC_NIL);
    d = doc_copy(arena, doc_from_buf(&bytes));
    buf_done(&bytes);
    return d;
}

static void fill_list(struct rng *rng, struct arena *arena, const struct msg_field *f,
                      enum generate_fields fields, uint8_t *body)
{
    uint32_t n = rng_below(rng, f->list_max < 3 ? f->list_max + 1 : 4);
    size_t size = f->kind == FIELD_STRS ? sizeof(struct str) : msg_table[f->part].size;
    uint8_t *items = arena_alloc(arena, n * size);

    ASSERT(items != NULL);
    for (uint32_t i = 0; i < n; i++) {
        if (f->kind == FIELD_LIST) {
            generate_msg(rng, arena, f->part, fields, items + i * size);
        } else {
            struct str s = some_text(rng, arena, f->max);
            memcpy(items + i * size, &s, sizeof s);
        }
    }
    memcpy(body + f->at, &items, sizeof items);
    memcpy(body + f->n_at, &n, sizeof n);
}

static void fill_field(struct rng *rng, struct arena *arena, const struct msg_field *f,
                       enum generate_fields fields, uint8_t *body)
{
    void *to = body + f->at;

    switch (f->kind) {
    case FIELD_STR:
        *(struct str *)to = some_text(rng, arena, f->max);
        break;
    case FIELD_U64:
        *(uint64_t *)to = f->max == UINT64_MAX ? number(rng) : number(rng) % (f->max + 1);
        break;
    case FIELD_I64:
        *(int64_t *)to = (int64_t)rng_next(rng) >> rng_below(rng, 63);
        break;
    case FIELD_F64:
        *(double *)to = fraction(rng);
        break;
    case FIELD_BOOL:
        *(bool *)to = rng_below(rng, 2) == 0;
        break;
    case FIELD_DOC:
        *(struct doc *)to = some_doc(rng, arena, f->max);
        break;
    case FIELD_SUB:
        generate_msg(rng, arena, f->part, fields, to);
        break;
    case FIELD_LIST:
    case FIELD_STRS:
        fill_list(rng, arena, f, fields, body);
        break;
    case FIELD_KIND_COUNT:
        break;
    }
}

void generate_msg(struct rng *rng, struct arena *arena, enum msg_type type,
                  enum generate_fields fields, void *ret_body)
{
    const struct msg_desc *desc = &msg_table[type];
    uint64_t has = 0;

    memset(ret_body, 0, desc->size);
    for (uint32_t i = 0; i < desc->n; i++) {
        if (desc->fields[i].required || fields == FIELDS_ALL ||
            (fields == FIELDS_RANDOM && rng_below(rng, 2) == 0)) {
            fill_field(rng, arena, &desc->fields[i], fields, ret_body);
            has |= UINT64_C(1) << i;
        }
    }
    memcpy(ret_body, &has, sizeof has);
}

static bool doc_equal(struct doc a, struct doc b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static bool list_equal(const struct msg_field *f, const uint8_t *a, const uint8_t *b)
{
    size_t size = f->kind == FIELD_STRS ? sizeof(struct str) : msg_table[f->part].size;
    const uint8_t *items[2];
    uint32_t n[2];

    memcpy(&items[0], a + f->at, sizeof items[0]);
    memcpy(&items[1], b + f->at, sizeof items[1]);
    memcpy(&n[0], a + f->n_at, sizeof n[0]);
    memcpy(&n[1], b + f->n_at, sizeof n[1]);
    for (uint32_t i = 0; n[0] == n[1] && i < n[0]; i++) {
        const void *left = items[0] + size * i;
        const void *right = items[1] + size * i;
        bool same = f->kind == FIELD_STRS
                        ? str_eq(*(const struct str *)left, *(const struct str *)right)
                        : generate_equal(f->part, left, right);
        if (!same) {
            return false;
        }
    }
    return n[0] == n[1];
}

static bool field_equal(const struct msg_field *f, const uint8_t *a, const uint8_t *b)
{
    const void *left = a + f->at;
    const void *right = b + f->at;

    switch (f->kind) {
    case FIELD_STR:
        return str_eq(*(const struct str *)left, *(const struct str *)right);
    case FIELD_U64:
    case FIELD_I64:
    case FIELD_F64:
        return memcmp(left, right, 8) == 0;
    case FIELD_BOOL:
        return *(const bool *)left == *(const bool *)right;
    case FIELD_DOC:
        return doc_equal(*(const struct doc *)left, *(const struct doc *)right);
    case FIELD_SUB:
        return generate_equal(f->part, left, right);
    case FIELD_LIST:
    case FIELD_STRS:
        return list_equal(f, a, b);
    case FIELD_KIND_COUNT:
        break;
    }
    return false;
}

bool generate_equal(enum msg_type type, const void *a, const void *b)
{
    const struct msg_desc *desc = &msg_table[type];

    if (memcmp(a, b, sizeof(uint32_t)) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < desc->n; i++) {
        if (!field_equal(&desc->fields[i], a, b)) {
            (void)fprintf(stderr, "%s.%.*s differs\n", desc->name, STR_ARG(desc->fields[i].name));
            return false;
        }
    }
    return true;
}
