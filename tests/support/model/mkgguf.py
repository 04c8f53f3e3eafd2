"""Writes a language model with random weights: half a megabyte in llama.cpp's format, bytes as tokens, nothing learnt. What it
says is noise; held to a grammar, it is every document that the grammar allows. Standard library only.
usage: mkgguf.py FILE [SEED]
"""
import array
import random
import struct
import sys

WIDTH, LAYERS, INNER, HEADS, CONTEXT = 64, 2, 128, 4, 8192
U32, F32, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5
CHARS = ["\u2581"] + [chr(c) for c in range(33, 127)]
# Unknown, begin, end; every byte; and the printable characters, so that most texts are one token a character.
TOKENS = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % i for i in range(256)] + CHARS
KINDS = [2, 3, 3] + [6] * 256 + [1] * len(CHARS)
SCORES = [0.0] * (3 + 256) + [-1.0 * i for i in range(len(CHARS))]


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def member(name, kind, value):
    out = text(name) + struct.pack("<I", kind)
    if kind == STRING:
        return out + text(value)
    if kind == ARRAY:
        of, values = value
        out += struct.pack("<IQ", of, len(values))
        if of == STRING:
            return out + b"".join(map(text, values))
        return out + struct.pack("<%d%s" % (len(values), "f" if of == F32 else "i"), *values)
    return out + struct.pack({U32: "<I", F32: "<f", BOOL: "<B"}[kind], value)


def header(name, sizes, tensors):
    """sizes: {of llama.*: number}; tensors: [(name, dimensions, bytes)]; the whole file."""
    members = [member("general.architecture", STRING, "llama"), member("general.name", STRING, name), member("general.file_type", U32, 0)]
    members += [member("llama." + k, F32 if isinstance(v, float) else U32, v) for k, v in sizes.items()]
    members += [member("tokenizer.ggml.model", STRING, "llama"), member("tokenizer.ggml.tokens", ARRAY, (STRING, TOKENS)),
                member("tokenizer.ggml.scores", ARRAY, (F32, SCORES)), member("tokenizer.ggml.token_type", ARRAY, (I32, KINDS)),
                member("tokenizer.ggml.bos_token_id", U32, 1), member("tokenizer.ggml.eos_token_id", U32, 2),
                member("tokenizer.ggml.unknown_token_id", U32, 0), member("tokenizer.ggml.add_bos_token", BOOL, 1),
                member("tokenizer.ggml.add_space_prefix", BOOL, 0)]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(members)) + b"".join(members)
    data, at = [], 0
    for tensor, dims, raw in tensors:
        head += text(tensor) + struct.pack("<I%dQIQ" % len(dims), len(dims), *dims, 0, at)
        raw += bytes(-len(raw) % 32)
        data.append(raw)
        at += len(raw)
    return head + bytes(-len(head) % 32) + b"".join(data)


def shapes(width, layers, inner):
    """The tensors of a llama, in their order, with their dimensions as the format counts them."""
    found = [("token_embd.weight", (width, len(TOKENS))), ("output_norm.weight", (width,)), ("output.weight", (width, len(TOKENS)))]
    for i in range(layers):
        found += [("blk.%d.%s.weight" % (i, n), d) for n, d in (
            ("attn_norm", (width,)), ("attn_q", (width, width)), ("attn_k", (width, width)), ("attn_v", (width, width)),
            ("attn_output", (width, width)), ("ffn_norm", (width,)), ("ffn_gate", (width, inner)), ("ffn_up", (width, inner)),
            ("ffn_down", (inner, width)))]
    return found


def sizes(context, width, layers, inner, heads):
    return {"context_length": context, "embedding_length": width, "block_count": layers, "feed_forward_length": inner,
            "attention.head_count": heads, "attention.head_count_kv": heads, "attention.layer_norm_rms_epsilon": 1e-5,
            "rope.dimension_count": width // heads, "rope.freq_base": 10000.0, "vocab_size": len(TOKENS)}


def noise(seed=1):
    chance = random.Random(seed)
    tensors = []
    for name, dims in shapes(WIDTH, LAYERS, INNER):
        count = dims[0] * (dims[1] if len(dims) > 1 else 1)
        values = [1.0] * count if "norm" in name else [chance.gauss(0, 0.05) for _ in range(count)]
        tensors.append((name, dims, array.array("f", values).tobytes()))
    return header("noise", sizes(CONTEXT, WIDTH, LAYERS, INNER, HEADS), tensors)


def main():
    with open(sys.argv[1], "wb") as f:
        f.write(noise(int(sys.argv[2]) if len(sys.argv) > 2 else 1))


if __name__ == "__main__":
    main()
