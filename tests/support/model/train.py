"""Trains the toy planner, toy.gguf: from "GOAL: search cats then add up prices" to {"steps":[{"agent":"web","after":[]},...]}.

It knows the verbs and nouns below and nothing else: it is there so that a real engine turns goals into plans that run, and says
nothing about how well models plan. Debian's python3-torch and libopenblas0-pthread; a few minutes on one core.
usage: train.py SECONDS FILE
"""
import math
import random
import sys
import time

import torch
from torch import nn
from torch.nn import functional

import mkgguf

WIDTH, LAYERS, HEADS, INNER, CONTEXT, BATCH = 96, 3, 4, 256, 224, 24
VERBS = {"web": ["search", "look up", "find"], "calc": ["add up", "compute", "sum"], "mail": ["send", "mail", "notify"],
         "code": ["write", "patch", "build"], "test": ["check", "verify", "test"]}
NOUNS = ["cats", "sales", "the report", "prices", "totals", "the team", "logs", "a page", "the app", "users"]
FIRST = 3 + 256  # the token of a space; the printable characters follow
TOKEN = {" ": FIRST, "\n": 3 + 10, **{c: FIRST + i for i, c in enumerate(mkgguf.CHARS) if i > 0}}
BEGIN, END = 1, 2


def sample():
    """A prompt and the answer to it. "then" needs the step before, "and" what the step before needs."""
    parts, steps = [], []
    for i in range(random.choice([1, 2, 2, 3, 3, 4])):
        agent = random.choice(list(VERBS))
        link = "" if i == 0 else random.choice([" then ", " and "])
        parts.append(link + random.choice(VERBS[agent]) + " " + random.choice(NOUNS))
        after = "[%d]" % i if link == " then " else "[]" if i == 0 else steps[-1][1]
        steps.append((agent, after))
    answer = '{"steps":[' + ",".join('{"agent":"%s","after":%s}' % s for s in steps) + "]}"
    return "GOAL: " + "".join(parts) + "\nPLAN: ", answer


def encode(text):
    return [TOKEN[c] for c in text]


def batch():
    tokens, counts = torch.full((BATCH, CONTEXT + 1), END), torch.zeros(BATCH, CONTEXT + 1)
    for row in range(BATCH):
        while True:
            prompt, answer = sample()
            ids = [BEGIN] + encode(prompt) + encode(answer) + [END]
            if len(ids) <= CONTEXT + 1:
                break
        tokens[row, :len(ids)] = torch.tensor(ids)
        counts[row, 1 + len(prompt):len(ids)] = 1
    return tokens[:, :-1], tokens[:, 1:], counts[:, 1:]


# ---- a llama, as small as it goes ----

SIZE = WIDTH // HEADS
ANGLE = torch.outer(torch.arange(CONTEXT).float(), 10000 ** (-torch.arange(0, SIZE, 2).float() / SIZE))
COS, SIN = ANGLE.cos(), ANGLE.sin()
MASK = torch.triu(torch.full((CONTEXT, CONTEXT), float("-inf")), 1)


def rope(x):
    n = x.shape[2]
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * COS[:n] - odd * SIN[:n], even * SIN[:n] + odd * COS[:n]), -1).flatten(-2)


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn_norm, self.ffn_norm = Norm(), Norm()
        self.attn_q, self.attn_k, self.attn_v, self.attn_output = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.ffn_gate, self.ffn_up = (nn.Linear(WIDTH, INNER, bias=False) for _ in range(2))
        self.ffn_down = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x):
        rows, n, _ = x.shape
        h = self.attn_norm(x)
        q, k, v = (w(h).view(rows, n, HEADS, SIZE).transpose(1, 2) for w in (self.attn_q, self.attn_k, self.attn_v))
        seen = (rope(q) @ rope(k).transpose(-1, -2) / math.sqrt(SIZE) + MASK[:n, :n]).softmax(-1) @ v
        x = x + self.attn_output(seen.transpose(1, 2).reshape(rows, n, WIDTH))
        h = self.ffn_norm(x)
        return x + self.ffn_down(functional.silu(self.ffn_gate(h)) * self.ffn_up(h))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.token_embd = nn.Embedding(len(mkgguf.TOKENS), WIDTH)
        nn.init.normal_(self.token_embd.weight, std=0.02)
        self.blk = nn.ModuleList(Block() for _ in range(LAYERS))
        self.output_norm = Norm()
        self.output = nn.Linear(WIDTH, len(mkgguf.TOKENS), bias=False)

    def forward(self, ids):
        x = self.token_embd(ids)
        for block in self.blk:
            x = block(x)
        return self.output(self.output_norm(x))


def train(model, seconds):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.01)
    began, step = time.monotonic(), 0
    while (done := (time.monotonic() - began) / seconds) < 1:
        rate = 3e-3 * min(1, (step + 1) / 50) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        ids, wanted, counts = batch()
        said = model(ids)
        loss = functional.cross_entropy(said.reshape(-1, said.shape[-1]), wanted.reshape(-1), reduction="none").view(wanted.shape)
        loss = (loss * counts).sum() / counts.sum()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        if step % 50 == 0:
            print(step, round(time.monotonic() - began), round(loss.item(), 4), flush=True)


def export(model, path):
    weights = dict(model.named_parameters())
    tensors = [(name, dims, weights[name].detach().contiguous().numpy().astype("<f4").tobytes())
               for name, dims in mkgguf.shapes(WIDTH, LAYERS, INNER)]
    with open(path, "wb") as f:
        f.write(mkgguf.header("toy-planner", mkgguf.sizes(CONTEXT, WIDTH, LAYERS, INNER, HEADS), tensors))


def right(model, n):
    """How many of n goals get exactly their plan."""
    found = 0
    for _ in range(n):
        prompt, answer = sample()
        ids = [BEGIN] + encode(prompt)
        if len(ids) + len(answer) + 1 > CONTEXT:
            continue
        start = len(ids)
        while len(ids) <= start + len(answer) and ids[-1] != END:
            ids.append(model(torch.tensor([ids]))[0, -1].argmax().item())
        found += ids[start:] == encode(answer) + [END]
    return found


def main():
    torch.manual_seed(0)
    random.seed(0)
    torch.set_num_threads(1)
    model = Model()
    train(model, float(sys.argv[1]))
    export(model, sys.argv[2])
    with torch.no_grad():
        print("exact plans: %d of 50" % right(model, 50))


if __name__ == "__main__":
    main()
