/* A real llama.cpp engine (@fugood/llama.node) behind the little of OpenAI's form that a client needs: POST /v1/chat/completions,
 * whole or streamed, with response_format as a grammar. One thread, one answer at a time, on a free port of 127.0.0.1, which is
 * written to the descriptor BATON_READY_FD (the engine writes notes of its own to the standard output); ends with its standard
 * input.
 * usage: node llmserve.cjs MODEL.gguf '{"toy": true, "context": 512}'
 *   toy: the model is the toy planner, see toy.cjs       context: tokens; of a longer prompt the end is taken
 * A request that names no seed gets the next one: 1, 2, 3, ...
 */
"use strict";
const fs = require("node:fs");
const http = require("node:http");
const path = require("node:path");
const { createRequire } = require("node:module");
const toy = require("./toy.cjs");

const load = createRequire(path.join(process.env.BATON_PEERS || __dirname, "x.cjs"));
const { loadModel } = load("@fugood/llama.node");
const options = { context: 512, ...JSON.parse(process.argv[3] || "{}") };
const BODY_MAX = 4 * 1024 * 1024;

let context = null;
let seed = 0;
let answers = 0;
let queue = Promise.resolve();

async function engine() {
    context ??= await loadModel({ model: process.argv[2], n_ctx: options.context, n_threads: 1, n_gpu_layers: 0, n_parallel: 1 });
    return context;
}

class Refusal extends Error {
    constructor(status, message) {
        super(message);
        this.status = status;
    }
}

/* The binding forgets now and then that a completion is over: then another context. */
async function run(ask, piece) {
    for (let tries = 0; ; tries++) {
        try {
            return await (await engine()).completion(ask, piece);
        } catch (error) {
            if (tries === 3 || !/in progress/.test(error.message)) {
                throw error;
            }
            context = null;
        }
    }
}

/* {text, reason, usage}; piece: called with each token's text. */
async function complete(body, piece) {
    const said = body.messages.map((m) => m.content).join("\n");
    const asked = options.toy ? toy.question(said) : null;
    if (options.toy && asked === null) {
        throw new Refusal(400, "the toy model plans, and does nothing else");
    }
    const most = body.max_completion_tokens ?? body.max_tokens ?? 256;
    const ask = {
        // A byte is a token at most. The toy's own form is not that of the schema.
        prompt: asked?.prompt ?? said.slice(-Math.floor(options.context / 4)),
        n_predict: Math.min(most, options.context / 2),
        temperature: body.temperature ?? (options.toy ? 0 : 1),
        seed: body.seed ?? ++seed,
        ...(body.response_format && !options.toy ? { response_format: body.response_format } : {}),
    };
    const made = await run(ask, piece && !asked ? (t) => t.token && piece(t.token) : undefined);
    let text = made.text;
    if (asked) {
        text = toy.plan(asked, text);
        piece?.(text);
    }
    return {
        text,
        reason: made.stopped_limited || made.context_full ? "length" : "stop",
        usage: { prompt_tokens: made.tokens_evaluated, completion_tokens: made.tokens_predicted, total_tokens: made.tokens_evaluated + made.tokens_predicted },
    };
}

async function answer(body, res) {
    const base = { id: `chatcmpl-${++answers}`, created: Math.floor(Date.now() / 1000), model: body.model };
    if (!body.stream) {
        const { text, reason, usage } = await complete(body);
        res.writeHead(200, { "Content-Type": "application/json" });
        const message = { role: "assistant", content: text };
        res.end(JSON.stringify({ ...base, object: "chat.completion", choices: [{ index: 0, message, finish_reason: reason }], usage }));
        return;
    }
    const chunk = (more) => res.write(`data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", ...more })}\n\n`);
    const delta = (d, finish_reason = null) => chunk({ choices: [{ index: 0, delta: d, finish_reason }] });
    const { reason, usage } = await complete(body, (text) => {
        if (!res.headersSent) {
            res.writeHead(200, { "Content-Type": "text/event-stream" });
        }
        delta({ content: text });
    });
    if (!res.headersSent) {
        res.writeHead(200, { "Content-Type": "text/event-stream" });
    }
    delta({}, reason);
    if (body.stream_options?.include_usage) {
        chunk({ choices: [], usage });
    }
    res.end("data: [DONE]\n\n");
}

function refuse(res, error) {
    // The engine says nothing more to a context in which a grammar failed.
    if (/grammar|in progress/.test(error.message)) {
        context = null;
    }
    if (res.headersSent) {
        return res.destroy();
    }
    const status = error.status ?? (/grammar/.test(error.message) ? 400 : 500);
    res.writeHead(status, { "Content-Type": "application/json" });
    res.end(JSON.stringify({ error: { message: error.message, type: status < 500 ? "invalid_request_error" : "server_error", code: status } }));
}

const server = http.createServer((req, res) => {
    const parts = [];
    let size = 0;
    req.on("data", (part) => {
        size += part.length;
        if (size > BODY_MAX) {
            req.destroy();
        } else {
            parts.push(part);
        }
    });
    req.on("end", () => {
        queue = queue
            .then(() => {
                if (req.method !== "POST" || req.url !== "/v1/chat/completions") {
                    throw new Refusal(404, `no such address: ${req.method} ${req.url}`);
                }
                let body;
                try {
                    body = JSON.parse(Buffer.concat(parts).toString());
                } catch (error) {
                    throw new Refusal(400, `the body is not JSON: ${error.message}`);
                }
                if (!Array.isArray(body.messages)) {
                    throw new Refusal(400, "messages: expected a list");
                }
                return answer(body, res);
            })
            .catch((error) => refuse(res, error));
    });
});

engine().then(
    () => server.listen(0, "127.0.0.1", () => fs.writeSync(Number(process.env.BATON_READY_FD || 1), `${server.address().port}\n`)),
    (error) => {
        console.error(error.message);
        process.exit(1);
    },
);
process.stdin.on("end", () => process.exit(0));
process.stdin.resume();
