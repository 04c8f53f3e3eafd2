#include <msgpack/pack.h>

#include "protocol/wire/doc.h"

/* buf keeps its first failure, so the packer may continue. The caller checks the buf once, at the
 * end. */
static int write_to_buf(void *data, const char *bytes, size_t n)
{
    buf_add(data, bytes, n);
    return 0;
}

static msgpack_packer packer(struct buf *out)
{
    msgpack_packer p;
    msgpack_packer_init(&p, out, write_to_buf);
    return p;
}

void doc_put_nil(struct buf *out)
{
    msgpack_packer p = packer(out);
    (void)msgpack_pack_nil(&p);
}

void doc_put_bool(struct buf *out, bool v)
{
    msgpack_packer p = packer(out);
    (void)(v ? msgpack_pack_true(&p) : msgpack_pack_false(&p));
}

void doc_put_u64(struct buf *out, uint64_t v)
{
    msgpack_packer p = packer(out);
    (void)msgpack_pack_uint64(&p, v);
}

void doc_put_i64(struct buf *out, int64_t v)
{
    msgpack_packer p = packer(out);
    (void)msgpack_pack_int64(&p, v);
}

void doc_put_f64(struct buf *out, double v)
{
    msgpack_packer p = packer(out);
    (void)msgpack_pack_double(&p, v);
}

void doc_put_str_head(struct buf *out, size_t n)
{
    msgpack_packer p = packer(out);
    (void)msgpack_pack_str(&p, n);
}

void doc_put_str(struct buf *out, struct str v)
{
    doc_put_str_head(out, v.len);
    buf_add_str(out, v);
}

void doc_put_cstr(struct buf *out, const char *v)
{
    doc_put_str(out, str_from(v));
}

void doc_put_bin(struct buf *out, const void *bytes, size_t n)
{
    msgpack_packer p = packer(out);
    (void)msgpack_pack_bin(&p, n);
    buf_add(out, bytes, n);
}

void doc_put_array(struct buf *out, uint32_t n)
{
    msgpack_packer p = packer(out);
    (void)msgpack_pack_array(&p, n);
}

void doc_put_map(struct buf *out, uint32_t n)
{
    msgpack_packer p = packer(out);
    (void)msgpack_pack_map(&p, n);
}

void doc_put_doc(struct buf *out, struct doc d)
{
    if (d.ptr == NULL) {
        doc_put_nil(out);
        return;
    }
    buf_add(out, d.ptr, d.len);
}
