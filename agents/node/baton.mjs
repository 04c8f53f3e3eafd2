/**
 * Agents and clients of Baton, the multi-agent supervisor, for Node 18 or newer. One file, no dependencies.
 *
 *     import { Agent } from "./baton.mjs";
 *     const agent = new Agent("greeter");
 *     agent.skill("greet", { description: "Greets somebody by name.", properties: { name: { type: "string" } } },
 *       ({ name = "world" }) => `Hello, ${name}!`);
 *     await agent.run();
 *
 * Types are in baton.d.mts, the wire protocol in WIRE.md. Integers beyond 2^53 lose digits in JavaScript: send them as texts.
 */
import { spawn } from "node:child_process";
import { createHash, createHmac, randomBytes, randomUUID, timingSafeEqual } from "node:crypto";
import { constants, existsSync, fstatSync, fsyncSync, lstatSync, mkdirSync, mkdtempSync, openSync, closeSync, readFileSync, readSync, renameSync, rmSync, statSync,
  writeFileSync, writeSync } from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";

export const version = "0.3.0";
const REQ = 0x30, REP = 0x31;
const RESULT_BYTES = 3 * 1024 * 1024, BODY_BYTES = 4 * 1024 * 1024, ANSWER_BYTES = 16 * 1024 * 1024;
const KEPT = 64, KEPT_BYTES = 16 * 1024 * 1024, KEPT_MS = 600000;
const QUESTIONS = new Set(["gate", "verify", "replan", "plan", "synthesize", "converse"]);

/** The supervisor rejected a request, or cannot be reached (code UNAVAILABLE or TIMEOUT). */
export class BatonError extends Error {
  constructor(code, message, more = {}) {
    super(`${code}: ${message}`);
    this.name = "BatonError";
    Object.assign(this, { code, reason: message, retryable: false, ...more });
  }
}

// ---- SP: the framing of nng and nanomsg ----

/** One SP connection. `onMessage` gets each message; `onEnd` is called once, with the reason. */
class Pipe {
  constructor(socket, role, peer, most, onMessage, onEnd) {
    Object.assign(this, { socket, most, onMessage, ipc: false, open: true, parts: [], length: 0, greeted: false, peer });
    this.end = (why) => {
      if (this.open) {
        this.open = false;
        clearTimeout(this.timer);
        socket.destroy();
        onEnd(why);
      }
    };
    this.timer = setTimeout(() => this.end("no greeting"), 10000);
    socket.setNoDelay(true);
    socket.write(Buffer.from([0, 0x53, 0x50, 0, 0, role, 0, 0]));
    socket.on("data", (data) => {
      try {
        this.take(data);
      } catch (e) {
        this.end(e.message);
      }
    });
    socket.on("error", (e) => this.end(e.message));
    socket.on("close", () => this.end("the peer ended the connection"));
  }

  take(data) {
    this.parts.push(data);
    this.length += data.length;
    while (this.open) {
      if (!this.greeted) {
        if (this.length < 8) return;
        const hello = this.read(8);
        if (hello.readUInt32BE(0) !== 0x00535000 || hello.readUInt16BE(4) !== this.peer || hello.readUInt16BE(6) !== 0) {
          throw new Error("the peer is no SP socket of the right kind");
        }
        this.greeted = true;
        clearTimeout(this.timer);
        this.onGreeted?.();
      } else {
        if (this.want === undefined) {
          if (this.length < 8) return;
          const size = this.read(8).readBigUInt64BE(0);
          if (size > BigInt(this.most)) throw new Error(`a message of ${size} bytes, at most ${this.most}`);
          this.want = Number(size);
        }
        if (this.length < this.want) return;
        const message = this.read(this.want);
        this.want = undefined;
        this.onMessage(message);
      }
    }
  }

  read(n) {
    const all = this.parts.length === 1 ? this.parts[0] : Buffer.concat(this.parts);
    this.parts = [all.subarray(n)];
    this.length = all.length - n;
    return all.subarray(0, n);
  }

  send(message) {
    if (!this.open) return false;
    const size = Buffer.alloc(8);
    size.writeBigUInt64BE(BigInt(message.length));
    this.socket.write(Buffer.concat([size, message]));
    return true;
  }
}

function target(url) {
  const tcp = /^tcp:\/\/(.*):(\d+)$/.exec(url);
  if (!tcp) throw new BatonError("INVALID", `${url}: expected tcp://HOST:PORT`);
  return { host: tcp[1].replace(/^\[|\]$/g, ""), port: Number(tcp[2]) };
}

/** A row of /proc/net/tcp or tcp6 has an address as words in the byte order of the machine. */
function row(address, port, wide) {
  let bytes;
  if (net.isIPv4(address)) {
    bytes = Buffer.from(address.split(".").map(Number));
    if (wide) bytes = Buffer.concat([Buffer.alloc(10), Buffer.from([255, 255]), bytes]);
  } else {
    bytes = Buffer.alloc(16); // of loopback addresses only ::1 has six
    bytes[15] = 1;
  }
  let text = "";
  for (let at = 0; at < bytes.length; at += 4) {
    const word = os.endianness() === "LE" ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at);
    text += word.toString(16).toUpperCase().padStart(8, "0");
  }
  return `${text}:${port.toString(16).toUpperCase().padStart(4, "0")}`;
}

/**
 * Whose process is at the other end of a TCP connection of this machine; undefined when there is no such row. Only a connected socket
 * with an inode is somebody's: the kernel says user 0 for the others.
 */
function peerUid(socket) {
  for (const [table, wide] of [["tcp", false], ["tcp6", true]]) {
    const want = [row(socket.remoteAddress, socket.remotePort, wide), row(socket.localAddress, socket.localPort, wide)];
    let lines = "";
    try {
      lines = readFileSync(`/proc/net/${table}`, "latin1");
    } catch {
      continue;
    }
    for (const line of lines.split("\n")) {
      const part = line.trim().split(/\s+/);
      if (part[1] === want[0] && part[2] === want[1] && part[3] === "01" && part[9] !== "0") return Number(part[7]);
    }
  }
  return undefined;
}

/**
 * Before anything secret is sent: who listens at a loopback address must be of this user, root, the daemon's, or listed in
 * BATON_ALLOW_UIDS. After the greeting, so that the peer has accepted.
 */
function checkPeer(socket, owner, url) {
  const host = socket.remoteAddress ?? "";
  if (!existsSync("/proc/net/tcp") || !(host.startsWith("127.") || host === "::1")) return;
  const allowed = new Set([0, process.geteuid(), owner, ...(process.env.BATON_ALLOW_UIDS ?? "").match(/\d+/g)?.map(Number) ?? []]);
  const uid = peerUid(socket);
  if (uid === undefined) throw new BatonError("UNAVAILABLE", "the supervisor cannot be reached: nobody was found at its other end", { retryable: true });
  if (!allowed.has(uid)) {
    throw new BatonError("UNAUTHORIZED", `the program that listens at ${url} is of user ${uid}, not of the supervisor's: nothing was sent to it; ` +
      `if it is right, set BATON_ALLOW_UIDS=${uid}`);
  }
}

/** -> [header, body] of a message to a REP socket. */
function split(message) {
  for (let end = 4; end <= Math.min(message.length, 64); end += 4) {
    if (message[end - 4] & 0x80) return [message.subarray(0, end), message.subarray(end)];
  }
  throw new Error("a request without an id");
}

// ---- the way to the supervisor ----

/** The state directory: what is given, BATON_STATE, ./.baton, $XDG_STATE_HOME/baton, ~/.local/state/baton. */
export function stateDir(given) {
  if (given || process.env.BATON_STATE) return path.resolve(given || process.env.BATON_STATE);
  if (existsSync(".baton") && statSync(".baton").isDirectory()) return path.resolve(".baton");
  const xdg = process.env.XDG_STATE_HOME ?? "";
  return path.join(xdg.startsWith("/") ? xdg : path.join(os.homedir(), ".local/state"), "baton");
}

/**
 * No other process of this user reads the memory or environment of this one. Node cannot say so to the kernel; a library that the
 * supervisor names does when it is loaded (BATON_DUMPABLE=1 keeps it from doing so). It is no module of Node, which is said after that.
 */
function hide() {
  if (process.env.BATON_HIDE !== undefined) {
    try {
      process.dlopen({ exports: {} }, process.env.BATON_HIDE);
    } catch (e) {
      if (!/self-register/.test(e.message)) process.emitWarning(`other processes of this user can read this one: ${e.message}`);
    }
  }
}

/**
 * What the supervisor gave this process alone, by the descriptor that BATON_HANDOVER names: a Map. Read once: then the descriptor is
 * closed, and programs that the agent starts do not get it.
 */
function handover() {
  const number = process.env.BATON_HANDOVER;
  if (!handover.given) {
    handover.given = new Map();
    delete process.env.BATON_HANDOVER;
    hide();
    if (number !== undefined) {
      const bytes = Buffer.alloc(fstatSync(Number(number)).size);
      readSync(Number(number), bytes, 0, bytes.length, 0);
      closeSync(Number(number));
      for (const entry of bytes.toString().split("\0").filter((e) => e.includes("="))) {
        handover.given.set(entry.slice(0, entry.indexOf("=")), entry.slice(entry.indexOf("=") + 1));
      }
    }
  }
  return handover.given;
}

/** A secret of this agent's configuration (`secrets`), else the variable of this name. */
export function secret(name) {
  return handover().get(`secret:${name}`) ?? process.env[name];
}

/** {id, key} of a file of `baton credential add`. */
function keyFile(file) {
  try {
    if (statSync(file).mode & 0o077) throw new Error("others may read it: chmod 600");
    const { id, key } = JSON.parse(readFileSync(file, "utf8"));
    return { id, key: Buffer.from(key, "hex") };
  } catch (e) {
    throw new BatonError("UNAUTHORIZED", `credential ${file}: ${e.message}`);
  }
}

const mac = (key, ...parts) => createHmac("sha256", key).update(Buffer.concat(parts)).digest();
const MAGIC = Buffer.from([0xc1, 0x42, 0x54, 1]), HEADER = 60;

/** A session of a credential, as WIRE.md has it: both sides prove the key, which is not sent; requests and answers have a MAC. */
class Session {
  constructor(id, key) {
    Object.assign(this, { id, key, ours: randomBytes(32), n: 0n });
  }

  finish(begun) {
    const sid = Buffer.from(begun.sid, "hex"), theirs = Buffer.from(begun.nonceS, "hex");
    const proof = mac(this.key, Buffer.from("S"), this.ours, theirs, sid).toString("hex");
    if (proof !== begun.proof && proof !== begun.previousProof) {
      throw new BatonError("UNAUTHORIZED", `what listens there does not have the key of credential ${this.id}`);
    }
    this.sid = sid;
    this.secret = mac(mac(Buffer.concat([this.ours, theirs]), this.key), Buffer.from("baton session 1"), sid, Buffer.from([1])); // HKDF
  }

  head() {
    const n = Buffer.alloc(8);
    n.writeBigUInt64BE(this.n);
    return Buffer.concat([this.sid, n]);
  }

  seal(body) {
    this.n++;
    return Buffer.concat([MAGIC, this.head(), mac(this.secret, Buffer.from("Q"), this.head(), body), body]);
  }

  /** undefined: the supervisor knows the session no more, and has not read the request. */
  unseal(bytes) {
    if (!bytes.subarray(0, 4).equals(MAGIC)) return undefined;
    const body = bytes.subarray(HEADER);
    if (!bytes.subarray(4, 28).equals(this.head()) || !timingSafeEqual(bytes.subarray(28, HEADER), mac(this.secret, Buffer.from("A"), this.head(), body))) {
      throw new BatonError("PROTOCOL", "an answer without the right proof");
    }
    return body;
  }
}

/**
 * A connection to the control socket: one request at a time, the others wait; it reconnects when it is asked again. `agent`: it uses
 * what the supervisor gave the process that it started.
 */
/** False: the daemon that wrote this endpoints.json has surely ended. */
function lives(at) {
  try {
    const here = String(statSync("/proc/self/ns/pid").ino);
    if (at.pidNamespace === undefined || String(at.pidNamespace) === here) process.kill(at.pid, 0);
  } catch (e) {
    return e.code !== "ESRCH";
  }
  return true;
}

class Control {
  constructor(state, { credential = process.env.BATON_CREDENTIAL, agent = false, shard } = {}) {
    this.state = stateDir(state);
    this.shard = shard; // of an agent's session with this one: state is STATE/shards/N
    this.tail = Promise.resolve();
    this.count = 0;
    this.file = credential || undefined;
    this.own = agent && handover().has("key");
  }

  /** Where the shard is led: by the node of the state directory, or by another one of this host, which takes the token. */
  led() {
    const read = (...parts) => {
      try {
        return JSON.parse(readFileSync(path.join(this.state, ...parts), "utf8"));
      } catch {
        return undefined;
      }
    };
    const own = read("endpoints.json"), at = read("..", "..", "fleet.json")?.shards?.[this.shard];
    if (own && lives(own)) return own;
    if (at?.control && at.events && !at.remote && !at.here) return { control: at.control, elsewhere: true };
    const handed = handover().get(`control:${this.shard}`); // the state directory cannot be read
    if (handed) return { control: handed };
    throw new BatonError("UNAVAILABLE", `shard ${this.shard}: no node of this host leads it now`, { retryable: true });
  }

  endpoints() {
    if (this.shard !== undefined) return this.led();
    try {
      return JSON.parse(readFileSync(path.join(this.state, "endpoints.json"), "utf8"));
    } catch {
      if (handover().has("control")) return { control: handover().get("control") };
      throw new BatonError("UNAVAILABLE", `no supervisor runs in ${this.state}: start one with \`baton up\``, { retryable: true });
    }
  }

  /** How requests prove who sends them; read for each connection. */
  credential(elsewhere) {
    this.session = undefined;
    this.key = undefined;
    if (this.file) this.key = keyFile(this.file);
    else if (this.own && !elsewhere) this.key = { id: handover().get("credential"), key: Buffer.from(handover().get("key"), "hex") };
    else return { token: readFileSync(path.join(this.state, "token"), "utf8").trim() };
    return {};
  }

  connect() {
    const { control: url, elsewhere } = this.endpoints();
    const where = target(url);
    const known = path.join(this.state, "endpoints.json");
    const owner = existsSync(known) ? statSync(known).uid : 0; // without one the supervisor that started us named the address
    this.fields = this.credential(elsewhere); // only the node that started the process knows its own
    const socket = net.connect(where);
    let refuse;
    this.checked = new Promise((resolve, reject) => (refuse = reject, socket.once("close", resolve), this.accept = resolve));
    this.checked.catch(() => {});
    this.pipe = new Pipe(socket, REQ, REP, ANSWER_BYTES, (m) => this.waiting?.(null, m), (why) => {
      this.pipe = undefined;
      this.why = why;
      this.waiting?.(this.unreachable());
      this.onLost?.();
    });
    const pipe = this.pipe;
    const accept = this.accept;
    pipe.onGreeted = () => {
      try {
        checkPeer(socket, owner, url);
        accept();
      } catch (e) {
        refuse(e);
        pipe.end(e.message);
      }
    };
  }

  unreachable() {
    return new BatonError("UNAVAILABLE", `the supervisor cannot be reached: ${this.why}`, { retryable: true });
  }

  request(type, fields, timeoutMs = 15000) {
    const answer = this.tail.then(() => this.send(type, fields, timeoutMs));
    this.tail = answer.catch(() => {});
    return answer;
  }

  async begin(timeoutMs) {
    const session = new Session(this.key.id, this.key.key);
    const begin = { v: 1, type: "auth.begin", id: "b", credential: session.id, nonceC: session.ours.toString("hex") };
    session.finish(this.read("auth.begin", await this.exchange("auth.begin", Buffer.from(JSON.stringify(begin)), timeoutMs)));
    this.session = session;
  }

  read(type, bytes, id) {
    let answer;
    try {
      answer = JSON.parse(bytes.toString());
    } catch (e) {
      throw new BatonError("PROTOCOL", `${type}: the answer cannot be read: ${e.message}`);
    }
    if (id && answer.id && answer.id !== id) { // what answers no request that could be read has no id
      this.pipe?.end("it answered another request");
      throw new BatonError("UNAVAILABLE", `${type}: the supervisor answered another request`, { retryable: true });
    }
    if (!answer.ok) throw new BatonError(answer.error?.code ?? "PROTOCOL", answer.error?.message ?? "no reason", answer.error);
    return answer;
  }

  async send(type, fields, timeoutMs) {
    for (let tries = 2; tries > 0; tries--) {
      if (!this.pipe) this.connect();
      await this.checked;
      if (!this.pipe) throw this.unreachable();
      const id = `n${++this.count}`;
      const body = Buffer.from(JSON.stringify({ v: 1, type, id, ...this.fields, ...fields }));
      if (!this.key) return this.read(type, await this.exchange(type, body, timeoutMs), id);
      if (!this.session) await this.begin(timeoutMs);
      const session = this.session; // a new connection begins another one
      const opened = session.unseal(await this.exchange(type, session.seal(body), timeoutMs));
      if (opened) return this.read(type, opened, id);
      this.session = undefined;
    }
    throw new BatonError("UNAUTHORIZED", `${type}: the supervisor does not take the credential ${this.key.id}`);
  }

  /** One message and its answer. */
  exchange(type, body, timeoutMs) {
    return new Promise((resolve, reject) => {
      if (!this.pipe) throw this.unreachable(); // another connection would be one that nobody has checked
      const header = Buffer.alloc(4);
      header.writeUInt32BE((0x80000000 | randomBytes(4).readUInt32BE(0)) >>> 0);
      const timer = setTimeout(() => {
        done(new BatonError("TIMEOUT", `${type}: no answer within ${timeoutMs} ms`, { retryable: true }));
        this.pipe?.end("no answer");
      }, timeoutMs);
      const done = (error, answer) => {
        clearTimeout(timer);
        this.waiting = undefined;
        if (error) reject(error);
        else resolve(answer);
      };
      this.waiting = (error, message) => {
        if (error) return done(error);
        return message.subarray(0, 4).equals(header) ? done(null, message.subarray(4)) : undefined;
      };
      this.pipe.send(Buffer.concat([header, body]));
    });
  }

  close() {
    this.onLost = undefined;
    this.pipe?.end("closed");
  }
}

// ---- outcomes ----

const CALLS_TAG = "x-baton-calls"; // of a skill that may call others
const CLASSES = ["TOOL_NOT_FOUND", "RESOURCE_NOT_FOUND", "PERMISSION_DENIED", "RATE_LIMITED", "SERVICE_UNAVAILABLE", "VALIDATION_ERROR",
  "TIMEOUT", "UNKNOWN", "CANCELLED", "BUDGET_EXCEEDED", "PROTOCOL_ERROR"];

/** The step failed: `throw new Fail("no such table", "RESOURCE_NOT_FOUND", { retryable: false })`. */
export class Fail extends Error {
  constructor(message, cls = "UNKNOWN", more = {}) {
    if (!CLASSES.includes(cls)) throw new TypeError(`class '${cls}': expected one of ${CLASSES.join(", ")}`);
    super(message);
    Object.assign(this, { cls, more });
  }
  body() {
    const { retryable, retryAfterMs, details } = this.more;
    const failure = { code: this.cls === "CANCELLED" || this.cls === "TIMEOUT" ? this.cls : this.cls === "VALIDATION_ERROR" ? "INVALID" : "INTERNAL",
      class: this.cls, message: cut(this.message || "failed without a reason", 4096), retryable, retryAfterMs, details };
    return { outcome: "failed", failure };
  }
}

/** Another agent gets the next attempt, with the reason as its feedback. */
export class Handoff extends Error {
  constructor(to, reason = "") {
    super(`to ${to}: ${reason}`);
    this.body = () => ({ outcome: "handoff", handoff: { toAgentId: to, reason: cut(reason, 2048) } });
  }
}

/** A person gives words or data: they become the feedback or the parameters of the next attempt. */
export class NeedsInput extends Error {
  constructor(prompt, schema) {
    super(prompt);
    this.body = () => ({ outcome: "needs_input", need: { kind: "input", prompt: cut(prompt, 8192), schema } });
  }
}

/** A person approves, and the next attempt starts; or the step fails. */
export class NeedsApproval extends Error {
  constructor(prompt) {
    super(prompt);
    this.body = () => ({ outcome: "needs_approval", need: { kind: "approval", prompt: cut(prompt, 8192) } });
  }
}

/**
 * The supervisor calls skills of other agents, and runs the handler again with their results: `step.turns`. `step.call` throws it;
 * a handler that decides by itself throws it: calls are {id, agentId, skill, parameters}, or {id, plan}. Let it pass.
 */
export class Calls extends Error {
  constructor(calls, note) {
    super(`${calls.length} calls`);
    if (calls.length < 1 || calls.length > 16) throw new Fail(`${calls.length} calls in one turn, expected 1 to 16`, "VALIDATION_ERROR", { retryable: false });
    this.body = () => {
      check(calls, "calls");
      check(note, "note");
      return { outcome: "calls", calls, ...(note === undefined ? {} : { result: { data: note } }) };
    };
  }
}

/** A call did not complete: `result` says how it ended. */
export class CallFailed extends Fail {
  constructor(agent, skill, result) {
    super(`${agent}/${skill}: ${result.error ?? result.status}`, CLASSES.includes(result.errorClass) ? result.errorClass : "UNKNOWN", { retryable: false });
    this.result = result;
  }
}

/** A completed step, when a text or a value alone is not enough. */
export class Result {
  constructor(fields) {
    Object.assign(this, fields);
  }
}

function cut(text, most) {
  const raw = Buffer.from(String(text).replaceAll("\0", "\ufffd"));
  return raw.length <= most ? raw.toString() : raw.subarray(0, most).toString().replace(/\ufffd+$/, "");
}

/** Throws when a value cannot be sent, or JSON would change it without a word; names the place. */
function check(value, where, depth = 0) {
  if (depth > 14) throw new Fail(`${where}: nested too deeply, at most 14 levels`, "VALIDATION_ERROR");
  const kind = typeof value === "function" || typeof value === "symbol" ? typeof value :
    value instanceof Map || value instanceof Set || ArrayBuffer.isView(value) || value instanceof ArrayBuffer ? value.constructor.name : undefined;
  if (kind) throw new Fail(`${where}: a ${kind} cannot be sent; return a text, a number, a list or a plain object`, "VALIDATION_ERROR");
  if (typeof value === "number" && !Number.isFinite(value)) throw new Fail(`${where}: ${value} is no number that JSON has`, "VALIDATION_ERROR");
  if (typeof value === "bigint") throw new Fail(`${where}: send a bigint as a text`, "VALIDATION_ERROR");
  if (typeof value === "string" && value.includes("\0")) throw new Fail(`${where}: a text has no zero bytes`, "VALIDATION_ERROR");
  if (typeof value === "string" && /\p{Surrogate}/u.test(value)) throw new Fail(`${where}: the text is not valid Unicode`, "VALIDATION_ERROR");
  if (value && typeof value === "object" && !value.toJSON) for (const [k, v] of Object.entries(value)) check(v, `${where}.${k}`, depth + 1);
}

/** The id itself, when a supervisor takes it. */
function checkId(what, id) {
  if (typeof id !== "string" || !/^[A-Za-z0-9_.-]{1,64}$/.test(id)) throw new Error(`${what} '${id}': expected 1 to 64 of A-Z a-z 0-9 _ . -`);
  return id;
}

function checkCapacity(n) {
  if (!Number.isInteger(n) || n < 1 || n > 64) throw new Error(`capacity: expected 1 to 64, got ${n}`);
  return n;
}

function checkParameters(schema, value) {
  const kinds = { string: "string", number: "number", integer: "number", boolean: "boolean", object: "object", array: "object" };
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Fail("parameters: expected an object", "VALIDATION_ERROR", { retryable: false });
  const wrong = (text) => new Fail(`parameters.${text}`, "VALIDATION_ERROR", { retryable: false });
  for (const name of schema.required ?? []) if (!(name in value)) throw wrong(`${name}: is missing`);
  for (const [name, item] of Object.entries(value)) {
    const one = schema.properties?.[name];
    if (!one && schema.additionalProperties === false) {
      throw wrong(`${name}: there is no such parameter; there are ${Object.keys(schema.properties ?? {}).join(", ") || "none"}`);
    }
    const kind = one?.type;
    if (typeof kind === "string" && kinds[kind] &&
        (typeof item !== kinds[kind] || (kind === "array") !== Array.isArray(item) || item === null || (kind === "integer" && !Number.isInteger(item)))) {
      throw wrong(`${name}: expected ${kind}, got ${JSON.stringify(item).slice(0, 60)}`);
    }
    if (one?.enum && !one.enum.includes(item)) throw wrong(`${name}: expected one of ${one.enum.join(", ")}`);
  }
}

/** One attempt at one step. `signal` aborts after a cancel and at the deadline: pass it on to fetch, or call check(). */
export class Step {
  constructor(request, settings = {}, wake = () => {}) {
    const r = request;
    Object.assign(this, { request, settings, planId: r.planId, stepId: r.stepId, key: r.key, attempt: r.attempt ?? 1, skill: r.skill ?? "",
      purpose: r.purpose ?? "execute", task: r.task ?? "", parameters: r.parameters ?? {}, context: r.context ?? {}, feedback: r.feedback,
      wake, reports: [], artifacts: [], used: {}, n: 0, turn: 0 });
    this.abort = new AbortController();
    this.signal = this.abort.signal;
    if (r.deadlineMs) {
      this.timer = setTimeout(() => this.stop("TIMEOUT", "the deadline passed before the step was done"), Math.min(r.deadlineMs, 2 ** 31 - 1));
      this.timer.unref?.();
    }
  }
  get dependencies() {
    return this.context.dependencies ?? [];
  }
  get state() {
    return this.context.state ?? {};
  }
  /** What the step may call; its skill has `calls: true`. */
  get tools() {
    return this.request.tools ?? [];
  }
  /** The turns that are done: calls and results, which are data of other agents and never instructions. */
  get turns() {
    return (this.request.turns ?? []).filter((t) => t.results);
  }
  get turnsLeft() {
    return this.request.turnsLeft ?? 0;
  }
  /**
   * Calls a skill of another agent: the data of its result, or its text; throws CallFailed. The handler ends here and runs again from
   * its beginning once the result is there, so it makes the same calls in the same order each time.
   */
  call(agent, skill, parameters = {}) {
    const result = this.callAll([agent, skill, parameters])[0];
    if (result.status !== "completed") throw new CallFailed(agent, skill, result);
    return result.data ?? result.text ?? "";
  }
  /** Calls up to 16 skills at the same time, each [agent, skill, parameters]: their results, in this order. */
  callAll(...calls) {
    const name = (c) => `${c.agentId}/${c.skill}`;
    const made = calls.map(([agentId, skill, parameters = {}], i) => ({ id: `t${this.turn + 1}-${i + 1}`, agentId, skill, parameters }));
    const turn = this.turns[this.turn];
    if (!turn) throw new Calls(made);
    const [was, now] = [turn.calls, made].map((some) => some.map(name).join(", "));
    if (was !== now) {
      throw new Fail(`turn ${this.turn + 1} called ${was}, and now the handler calls ${now} there: it must make the same calls each time it runs`,
        "VALIDATION_ERROR", { retryable: false });
    }
    this.turn += 1;
    return turn.calls.map((c) => turn.results.find((r) => r.id === c.id));
  }
  get cancelled() {
    return this.signal.aborted;
  }
  /** Throws when the attempt is to stop. */
  check() {
    this.signal.throwIfAborted();
  }
  /** Sleeps so long; rejects when the attempt is to stop. */
  sleep(ms) {
    return new Promise((resolve, reject) => {
      if (this.cancelled) return reject(this.signal.reason);
      const timer = setTimeout(resolve, ms);
      this.signal.addEventListener("abort", () => (clearTimeout(timer), reject(this.signal.reason)), { once: true });
      return undefined;
    });
  }
  /** Reports progress: {percent, text, data}. The newest counts. */
  progress(report) {
    this.reports = this.reports.filter((r) => r.piece);
    this.reports.push({ ...report, ...(report.text === undefined ? {} : { text: cut(report.text, 1024) }) });
    this.wake();
  }
  /** Sends the next piece of the answer's text while it is made. */
  stream(text) {
    for (let rest = String(text); rest;) {
      const piece = cut(rest, 1024);
      this.reports.push({ piece: true, text: piece });
      rest = rest.slice(piece.length);
    }
    this.wake();
  }
  /** Adds to what this attempt has used: {inputTokens, outputTokens, cachedTokens, costMicros}. */
  usage(more) {
    for (const [k, v] of Object.entries(more)) this.used[k] = (this.used[k] ?? 0) + v;
  }
  /** Writes a file of this result, {name, mediaType}: bytes or text. A later step gets it by {{results.x.artifact}}. */
  artifact(name, content, mediaType) {
    const folder = this.request.artifactDir;
    if (!folder) throw new Fail(`artifact ${name}: the supervisor gave this step no directory for files`, "SERVICE_UNAVAILABLE");
    if (!/^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}$/.test(name)) {
      throw new Error(`artifact '${name}': a name has 1 to 100 of A-Za-z0-9_.- and does not begin with a dot`);
    }
    this.check();
    const bytes = Buffer.isBuffer(content) ? content : Buffer.from(content);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (lstatSync(path.join(folder, ".ended"), { throwIfNoEntry: false })) throw new Fail("the plan has ended", "CANCELLED");
    const hidden = path.join(folder, `.${randomUUID()}`);
    const file = path.join(folder, `${this.stepId}@${this.request.revision ?? 1}.${this.attempt}@${name}`);
    try {
      const fd = openSync(hidden, "wx", 0o600);
      try {
        for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at);
        fsyncSync(fd);
      } finally {
        closeSync(fd);
      }
      renameSync(hidden, file);
    } finally {
      rmSync(hidden, { force: true });
    }
    const dir = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
    fsyncSync(dir);
    closeSync(dir);
    const uri = "file://" + file.split("/").map((part) => encodeURIComponent(part).replace(/%40/g, "@").replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)).join("/");
    const made = { name, uri, bytes: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex"), ...(mediaType ? { mediaType } : {}) };
    this.artifacts.push(made);
    return made;
  }
  /** The bytes of a file of an earlier step, after a check of length and SHA-256. Only those of the request can be opened. */
  open(uri) {
    const known = (this.request.artifacts ?? []).find((a) => a.uri === uri);
    const file = String(uri).startsWith("file:///") ? decodeURIComponent(uri.slice("file://".length)) : "";
    const parent = path.dirname(this.request.artifactDir ?? "");
    if (!known || path.dirname(path.dirname(file)) !== parent || file.split("/").includes("..")) {
      throw new Fail(`${uri}: is no file that this step was given`, "PERMISSION_DENIED");
    }
    let bytes;
    try {
      const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      try {
        const about = fstatSync(fd);
        bytes = about.isFile() && about.size === known.bytes ? readFileSync(fd) : Buffer.alloc(0);
      } finally {
        closeSync(fd);
      }
    } catch (e) {
      throw new Fail(`${uri}: ${e.code}`, "RESOURCE_NOT_FOUND");
    }
    if (bytes.length !== known.bytes || createHash("sha256").update(bytes).digest("hex") !== known.sha256) {
      throw new Fail(`${uri}: is not the file that its step wrote`, "RESOURCE_NOT_FOUND");
    }
    return bytes;
  }
  stop(cls, message) {
    clearTimeout(this.timer);
    this.abort.abort(new Fail(message, cls, { retryable: cls === "TIMEOUT" }));
  }
}

// ---- an agent ----

/** What a session has of its own: one for each shard of a fleet. */
function fresh() {
  return { epoch: 0, attempts: new Map(), forgotten: new Set(), running: 0, registered: false, draining: false, drainSent: false, stops: 0, pipes: new Set(),
    contact: 0, backoff: 100, quietSince: 0, stats: { requests: 0, errors: 0, lastError: "", ns: 0, started: new Date().toISOString() },
    processId: randomUUID().toUpperCase(), sessionKey: randomBytes(32).toString("hex") };
}

function checkShards(n) {
  if (!Number.isInteger(n) || n < 1 || n > 64) throw new Error(`shards: expected 1 to 64, got ${n}`);
  return n;
}

/** An agent: its skills, and the process that serves them. Handlers run in the event loop, `capacity` steps at once. */
export class Agent {
  constructor(agentId, { name, description, version: v = "1.0.0", capacity = 4, settings = {} } = {}) {
    checkId("agentId", agentId);
    checkCapacity(capacity);
    Object.assign(this, { agentId, name: name ?? agentId, description, version: v, capacity, settings, skills: new Map(), ...fresh() });
    this.instanceId = randomUUID().toUpperCase();
  }

  /** Adds a skill: its id, {description, properties, required, tags, effects, inputSchema, ...} and (parameters, step) => result. */
  skill(id, about, handler) {
    checkId("skill", id);
    if (about === null || typeof about !== "object" || typeof handler !== "function") throw new TypeError(`skill ${id}: expected (id, about, handler): an object such as { description: "Greets." }, and a function`);
    if (this.skills.has(id)) throw new Error(`agent ${this.agentId}: the skill ${id} is there twice`);
    const { properties, required, inputSchema, calls, ...rest } = about;
    if (calls) rest.tags = [...(rest.tags ?? []), CALLS_TAG];
    const schema = inputSchema ?? { type: "object", ...(properties ? { properties, required, additionalProperties: false } : {}) };
    this.skills.set(id, { card: JSON.parse(JSON.stringify({ id, ...rest, inputSchema: schema })), schema, handler });
    return this;
  }

  card() {
    const { agentId, name, description, version: v } = this;
    return { agentId, name, description, version: v, skills: [...this.skills.values()].map((s) => s.card) };
  }

  /** Runs a skill without a supervisor: the fields of its step.result. */
  call(skill, parameters = {}, request = {}) {
    return this.outcome(new Step({ skill, parameters, planId: "P", stepId: "s1", key: "P/1/s1", ...request }, this.settings));
  }

  async outcome(step) {
    let body;
    try {
      body = this.completed(await this.handle(step));
      if (body.result && step.artifacts.length) body.result.artifacts = step.artifacts;
    } catch (e) {
      if (typeof e?.body !== "function") console.error(`step ${step.key}: ${step.skill} failed:`, e);
      const failed = e?.name === "AbortError" && step.cancelled ? step.signal.reason : e;
      body = typeof failed?.body === "function" ? failed.body() : new Fail(`${failed?.name ?? "Error"}: ${failed?.message ?? failed}`,
        failed?.code === "ENOENT" ? "RESOURCE_NOT_FOUND" : failed?.code === "EACCES" ? "PERMISSION_DENIED" : "UNKNOWN").body();
    }
    clearTimeout(step.timer);
    if (Object.keys(step.used).length) body.usage = step.used;
    return JSON.parse(JSON.stringify(body));
  }

  async handle(step) {
    const skill = this.skills.get(step.skill) ?? (!step.skill && this.skills.size === 1 ? [...this.skills.values()][0] : undefined);
    if (!skill) throw new Fail(`skill '${step.skill}': this agent has no such skill; it has ${[...this.skills.keys()].join(", ")}`, "TOOL_NOT_FOUND", { retryable: false });
    checkParameters(skill.schema, step.parameters);
    const stopped = new Promise((_, reject) => step.signal.addEventListener("abort", () => reject(step.signal.reason), { once: true }));
    stopped.catch(() => {});
    const work = async () => {
      const found = await skill.handler(step.parameters, step);
      if (!found?.[Symbol.asyncIterator] && typeof found?.next !== "function") return found;
      let whole = "";
      for await (const piece of found) {
        whole += piece;
        step.stream(piece);
        step.check();
      }
      return whole;
    };
    return Promise.race([work(), stopped]); // a handler that ignores the signal goes on alone; its answer counts no more
  }

  completed(value) {
    if (typeof value?.body === "function") return value.body();
    const { text, data, state, details, truncated } = value instanceof Result ? value : typeof value === "string" ? { text: value } : { data: value };
    check(data, "data");
    check(text, "text");
    const result = { text: text ?? (data === undefined || data === null ? "" : undefined), data: data ?? undefined, details, truncated };
    const size = Buffer.byteLength(JSON.stringify(result));
    if (size > RESULT_BYTES) throw new Fail(`result_too_large: ${size} bytes, at most ${RESULT_BYTES}; write a file with step.artifact(), or return less`, "VALIDATION_ERROR", { retryable: false });
    return { outcome: "completed", result, state };
  }

  // -- lanes --

  lane(socket) {
    let last;
    const pipe = new Pipe(socket, REP, REQ, BODY_BYTES + 1024, (message) => {
      const [header, body] = split(message);
      last = undefined; // the supervisor has what this lane carried before
      this.onRequest({ pipe, header, carried: (attempt) => (last = attempt) }, body);
    }, () => {
      this.pipes.delete(pipe);
      if (last) last.undelivered = true; // perhaps it did not arrive
      this.wake();
    });
    this.pipes.add(pipe);
    return pipe;
  }

  answer(to, body) {
    return to.pipe.send(Buffer.concat([to.header, Buffer.from(JSON.stringify({ v: 1, id: to.id ?? "", ok: true, ...body }))]));
  }

  refuse(to, code, message, cls) {
    this.answer(to, { type: "error", ok: false, error: { code, message, retryable: code === "BUSY" || code === "UNAVAILABLE", class: cls } });
  }

  onRequest(to, data) {
    let r;
    try {
      r = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(data));
      if (r === null || typeof r !== "object" || Array.isArray(r)) throw new Error("a body is a map");
    } catch (e) {
      return this.refuse(to, "INVALID", `the body cannot be read: ${e.message}`);
    }
    to.id = String(r.id ?? "");
    if (!["lane.hello", "step.execute", "step.cancel", "step.query", "agent.ping", "agent.stats"].includes(r.type)) {
      return this.refuse(to, "INVALID", `type '${cut(r.type, 64)}': an agent has no such request`);
    }
    const greets = r.type === "lane.hello" && Boolean(r.nonceS);
    const key = Buffer.from(String(r.sessionKey ?? "")), mine = Buffer.from(this.sessionKey);
    const known = (to.pipe.proved && r.sessionKey === undefined) || (key.length === mine.length && timingSafeEqual(key, mine));
    if (!greets && !known) return this.refuse(to, "UNAUTHORIZED", "sessionKey: missing or wrong", "PERMISSION_DENIED");
    if (r.v !== 1) return this.refuse(to, "INVALID", "v: this agent speaks version 1 only");
    if (r.type === "agent.ping") return this.answer(to, { type: "ok" });
    if (r.type === "agent.stats") {
      const s = this.stats;
      return this.answer(to, { type: "agent.stats.ok", num_requests: s.requests, num_errors: s.errors, last_error: s.lastError, processing_time: s.ns,
        average_processing_time: Math.floor(s.ns / Math.max(1, s.requests)), started: s.started });
    }
    if (r.type === "lane.hello") {
      if (r.processId && r.processId !== this.processId) return this.refuse(to, "CONFLICT", "processId: another process was registered");
      const proved = greets ? this.greet(to, r) : {};
      return proved && this.epochIsRight(to, r) && this.answer(to, { type: "ok", processId: this.processId, ...proved });
    }
    if (typeof r.key !== "string" || !r.key || Buffer.byteLength(r.key) > 160) return this.refuse(to, "INVALID", "key: expected an idempotency key");
    if (r.type === "step.execute") return this.execute(to, r);
    const attempt = Number.isInteger(r.attempt) ? r.attempt : 0;
    if (r.type === "step.cancel") this.cancel(r.key, attempt);
    return this.answer(to, { type: "step.state", key: r.key, ...this.stateOf(r.key, attempt) });
  }

  /** Proves the session key to the supervisor, and has it proved; neither sends it (WIRE.md). undefined: refused. */
  greet(to, r) {
    const before = to.pipe.greeting, theirs = Buffer.from(String(r.nonceS), "hex"), place = Buffer.alloc(16);
    place.writeBigUInt64BE(BigInt(r.lane || 0));
    place.writeBigUInt64BE(BigInt(r.epoch || 0), 8);
    const proof = (side, ours) => mac(mac(Buffer.alloc(32), Buffer.from(this.sessionKey)), Buffer.from(side), theirs, ours, place).toString("hex");
    Object.assign(to.pipe, { greeting: undefined, proved: false });
    if (theirs.length !== 32) return this.refuse(to, "INVALID", "nonceS: expected 32 bytes as hexadecimal digits");
    if (!r.proof) {
      const ours = randomBytes(32);
      to.pipe.greeting = { ours, what: Buffer.concat([theirs, place]) };
      return { nonceA: ours.toString("hex"), proof: proof("A", ours) };
    }
    const given = Buffer.from(String(r.proof)), right = before?.what.equals(Buffer.concat([theirs, place])) && Buffer.from(proof("S", before.ours));
    if (!right || given.length !== right.length || !timingSafeEqual(given, right)) {
      return this.refuse(to, "UNAUTHORIZED", "proof: wrong, or not for this greeting", "PERMISSION_DENIED");
    }
    to.pipe.proved = true;
    return {};
  }

  epochIsRight(to, r) {
    if (this.registering && r.epoch > this.epoch) this.epoch = r.epoch; // this lane is faster than the answer to agent.register
    if (r.epoch && r.epoch === this.epoch) return true;
    this.refuse(to, "CONFLICT", "epoch: not the current one of this instance");
    return false;
  }

  execute(to, r) {
    if (!Number.isInteger(r.attempt) || r.attempt < 1) return this.refuse(to, "INVALID", "attempt: expected a number from 1");
    if (!this.epochIsRight(to, r)) return undefined;
    const name = `${r.key}\n${r.attempt}`;
    const known = this.attempts.get(name);
    if (known) {
      known.epoch = r.epoch;
      if (known.answer) return this.sendResult(known, to);
      const older = known.to;
      known.to = to;
      return this.refuse(older, "CONFLICT", "a newer request of the same attempt gets the answer");
    }
    const purpose = r.purpose || "execute";
    if (!QUESTIONS.has(purpose) && purpose !== "execute" && purpose !== "search") return this.refuse(to, "INVALID", `purpose '${cut(purpose, 40)}': this agent does not know it`);
    if (QUESTIONS.has(purpose) && !r.skill) return this.refuse(to, "NOT_FOUND", `purpose '${purpose}': expected the skill that answers it`, "TOOL_NOT_FOUND");
    if (r.skill && !this.skills.has(r.skill)) return this.refuse(to, "NOT_FOUND", `skill '${cut(r.skill, 64)}': this agent has no such skill`, "TOOL_NOT_FOUND");
    if (this.draining) return this.refuse(to, "BUSY", "the agent is draining and takes no new steps", "SERVICE_UNAVAILABLE");
    if (this.running >= this.capacity || this.places?.free === 0) return this.refuse(to, "BUSY", "all places of this instance are taken", "SERVICE_UNAVAILABLE");
    if (this.places) this.places.free--;
    for (const old of [...this.attempts.values()]) if (old.key === r.key && old.answer) this.forget(old);
    const attempt = { name, key: r.key, attempt: r.attempt, epoch: r.epoch, to, step: new Step(r, this.settings, () => this.wake()), reportAt: 0 };
    this.attempts.set(name, attempt);
    this.running++;
    this.stats.requests++;
    return this.work(attempt);
  }

  async work(attempt) {
    const began = process.hrtime.bigint();
    const answer = await this.outcome(attempt.step);
    while (answer.outcome === "completed" && attempt.step.reports.some((r) => r.piece) && this.registered && !attempt.step.cancelled) {
      await new Promise((resolve) => setTimeout(resolve, 10)); // the streamed text goes first
    }
    this.stats.ns += Number(process.hrtime.bigint() - began);
    if (answer.outcome === "failed") {
      this.stats.errors++;
      this.stats.lastError = cut(answer.failure.message, 500);
    }
    Object.assign(attempt, { answer, touched: Date.now(), size: JSON.stringify(answer).length, undelivered: !this.registered || attempt.epoch !== this.epoch });
    attempt.step = undefined;
    this.running--;
    if (this.places) this.places.free++;
    this.quietSince = Date.now();
    const to = attempt.to;
    attempt.to = undefined;
    this.sendResult(attempt, to, attempt.undelivered);
    this.makeRoom();
    this.wake();
  }

  sendResult(attempt, to, stays = false) {
    to.carried(attempt);
    attempt.undelivered = !this.answer(to, { type: "step.result", ...this.resultOf(attempt, attempt.epoch) }) || stays;
  }

  resultOf(attempt, epoch) {
    return { instanceId: this.instanceId, key: attempt.key, attempt: attempt.attempt, epoch, ...attempt.answer };
  }

  find(key, n) {
    return [...this.attempts.values()].filter((a) => a.key === key && (!n || a.attempt === n)).sort((a, b) => b.attempt - a.attempt)[0];
  }

  cancel(key, n) {
    for (const a of this.attempts.values()) if (a.key === key && (!n || a.attempt === n)) a.step?.stop("CANCELLED", "cancelled");
  }

  stateOf(key, n) {
    const found = this.find(key, n);
    if (found?.answer) {
      found.undelivered = false;
      return { state: "done", result: this.resultOf(found, found.epoch) };
    }
    const seen = this.forgotten.size >= 200000 || (n ? this.forgotten.has(`${key}\n${n}`) : [...Array(100).keys()].some((i) => this.forgotten.has(`${key}\n${i + 1}`)));
    return { state: found ? "running" : seen ? "forgotten" : "unknown" };
  }

  forget(attempt) {
    this.attempts.delete(attempt.name);
    if (this.forgotten.size < 200000) this.forgotten.add(attempt.name);
  }

  makeRoom() {
    const done = [...this.attempts.values()].filter((a) => a.answer).sort((a, b) => a.undelivered - b.undelivered || a.touched - b.touched);
    let size = done.reduce((n, a) => n + a.size, 0);
    done.forEach((a, i) => {
      const old = !a.undelivered && Date.now() - a.touched > KEPT_MS;
      if (old || ((done.length - i > KEPT || size > KEPT_BYTES) && i < done.length - 1)) {
        size -= a.size;
        this.forget(a);
      }
    });
  }

  // -- the relation to the supervisor --

  wake() {
    this.awake?.();
  }

  /** Drains and leaves, as on SIGTERM. A second call ends at once. */
  stop() {
    this.stops++;
    this.wake();
    for (const session of this.sessions ?? []) session.stop();
  }

  /** Registers and serves until stop() or an order to drain; the exit code. Reconnects for ever. */
  async serve({ state, credential, dialIn = false, onRegistered = () => {} } = {}) {
    // It may have been served before: in another test, for example.
    Object.assign(this, { stops: 0, epoch: 0, draining: false, drainSent: false, closed: false, registered: false, tryAt: 0, backoff: 100 });
    const server = net.createServer((socket) => this.lane(socket));
    if (!dialIn) await new Promise((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
    const endpoint = dialIn ? undefined : `tcp://127.0.0.1:${server.address().port}`;
    const control = new Control(state, { credential, agent: true, shard: this.shard });
    control.onLost = () => this.lost();
    this.control = control;
    try {
      for (;;) {
        if (this.stops > 1) return this.running ? 1 : 0;
        if (this.stops && !this.draining) [this.draining, this.drainSince] = [true, Date.now()];
        let wait;
        try {
          wait = await this.turn(endpoint, dialIn, onRegistered);
        } catch (e) {
          if (!(e instanceof BatonError)) throw e;
          if (!this.registered && ["UNAUTHORIZED", "INVALID", "PROTOCOL"].includes(e.code)) {
            console.error(`the supervisor refused the registration: ${e.reason}`);
            return 2;
          }
          if (["NOT_FOUND", "CONFLICT", "GONE", "UNAUTHORIZED"].includes(e.code)) this.registered = false;
          if (e.code === "UNAUTHORIZED") control.pipe?.end("another token");
          if (!this.registered || e.code === "BUSY") this.waitALittle();
          wait = 0;
        }
        if (wait === undefined) return 0;
        if (wait > 0) await new Promise((resolve) => {
          const timer = setTimeout(resolve, wait);
          this.awake = () => (clearTimeout(timer), resolve());
        });
      }
    } finally {
      this.closed = true;
      server.close();
      control.close();
      for (const pipe of [...this.pipes]) pipe.end("the agent leaves");
    }
  }

  /**
   * As serve(), for a fleet of so many shards: this process has a session with each of them under one instance id, and all of them
   * together run at most `capacity` steps. A step that finds every place taken is answered BUSY, and its shard asks again. `state` is
   * that of the node. When one session ends, all do.
   */
  async serveShards(shards, { state, ...how } = {}) {
    checkShards(shards);
    const home = stateDir(state), places = { free: this.capacity };
    this.stops = 0;
    this.sessions = [...Array(shards).keys()].map((shard) => Object.assign(Object.create(Object.getPrototypeOf(this)), this, { ...fresh(), places, shard, sessions: undefined }));
    const served = this.sessions.map(async (one, shard) => {
      try {
        return await one.serve({ ...how, state: path.join(home, "shards", String(shard)) });
      } finally {
        for (const other of this.sessions) if (other !== one && !other.stops) other.stop();
      }
    });
    const codes = await Promise.all(served).finally(() => (this.sessions = undefined));
    return codes.find((code) => code) ?? 0;
  }

  waitALittle() {
    this.tryAt = Date.now() + this.backoff;
    this.backoff = Math.min(this.backoff * 2, this.shard === undefined ? 5000 : 700); // another node may lead by now
  }

  lost() {
    if (this.registered) {
      for (const a of this.attempts.values()) if (a.answer && a.touched >= this.contact) a.undelivered = true; // a second delivery is harmless
    }
    this.registered = false;
    this.waitALittle();
    this.wake();
  }

  async ask(type, fields) {
    const sent = Date.now();
    const answer = await this.control.request(type, fields, Math.min(Math.max(this.leaseMs ?? 5000, 1000), 30000));
    this.contact = sent;
    return answer;
  }

  /** Sends the next request, by priority; how many ms to wait otherwise, undefined when the agent has left. */
  async turn(endpoint, dialIn, onRegistered) {
    const now = Date.now(), me = { instanceId: this.instanceId, epoch: this.epoch };
    const late = [...this.attempts.values()].filter((a) => a.undelivered).sort((a, b) => a.touched - b.touched)[0];
    const idle = this.draining && !this.running;
    if (!this.registered) {
      if (idle && (!late || now > this.drainSince + 10000)) return undefined;
      if (now < (this.tryAt ?? 0)) return this.tryAt - now;
      this.registering = true;
      const ok = await this.ask("agent.register", { card: this.card(), instanceId: this.instanceId, capacity: this.capacity, pid: process.pid,
        sessionKey: this.sessionKey, processId: this.processId, proof: true, protocol: [1], ...(dialIn ? { dialIn } : { endpoint }) }).finally(() => (this.registering = false));
      Object.assign(this, { epoch: ok.epoch, registered: true, drainSent: false, leaseMs: ok.leaseMs, everyMs: ok.heartbeatMs || 1000, backoff: 100 });
      this.beatAt = Date.now() + this.everyMs;
      for (const url of ok.lanes ?? []) this.dialLane(url, ok.epoch);
      onRegistered(ok.epoch);
      return 0;
    }
    if (now >= this.beatAt) {
      this.beatAt = now + this.everyMs;
      const inflight = [...this.attempts.values()].filter((a) => !a.answer).slice(0, 64).map((a) => ({ key: a.key, attempt: a.attempt }));
      const ok = await this.ask("agent.heartbeat", { ...me, inflight, load: inflight.length / this.capacity });
      this.leaseMs = ok.leaseMs || this.leaseMs;
      for (const order of ok.cancel ?? []) this.cancel(order.key, order.attempt);
      if (ok.drain && !this.draining) Object.assign(this, { draining: true, drainSent: true, drainSince: Date.now(), quietSince: Date.now() });
      this.makeRoom();
      return 0;
    }
    if (this.draining && !this.drainSent) {
      this.drainSent = true;
      await this.ask("agent.drain", me);
      return 0;
    }
    if (late) {
      late.undelivered = false;
      try {
        await this.ask("step.result", this.resultOf(late, this.epoch));
      } catch (e) {
        late.undelivered = ["UNAVAILABLE", "TIMEOUT", "BUSY"].includes(e.code);
        throw e;
      }
      return 0;
    }
    let due = this.beatAt - now;
    for (const a of this.attempts.values()) {
      const report = a.step?.reports[0];
      if (!report) continue;
      if (!report.piece && now < a.reportAt) {
        due = Math.min(due, a.reportAt - now);
        continue;
      }
      const { piece, ...body } = report;
      report.n ??= ++a.step.n;
      a.reportAt = now + 125;
      try {
        await this.ask("step.progress", { ...me, key: a.key, attempt: a.attempt, ...body, n: report.n });
      } catch (e) {
        if (piece && ["UNAVAILABLE", "TIMEOUT"].includes(e.code)) throw e; // it stays, and is sent again
      }
      if (a.step) a.step.reports = a.step.reports.filter((x) => x !== report);
      return 0;
    }
    if (idle) {
      if (now < this.quietSince + 200) return this.quietSince + 200 - now; // the last answer is being read
      await this.ask("agent.deregister", me).catch(() => {});
      return undefined;
    }
    return Math.max(1, due);
  }

  dialLane(url, epoch) {
    if (this.closed || epoch !== this.epoch) return;
    const pipe = this.lane(net.connect(target(url)));
    pipe.socket.on("close", () => setTimeout(() => this.dialLane(url, epoch), 200).unref());
  }

  /** The command line of an agent: --state, --credential, --settings, --agent-id, --instance-id, --capacity, --shards, --dial-in, --card, --once. Ends the process. */
  async run(argv = process.argv.slice(2)) {
    const env = process.env;
    const o = { settings: undefined, state: undefined, credential: undefined, "agent-id": env.BATON_AGENT_ID, "instance-id": env.BATON_INSTANCE_ID, capacity: env.BATON_CAPACITY, shards: env.BATON_SHARDS || "1", once: undefined };
    let shards;
    const flags = new Set();
    const wrong = (text) => (console.error(text), process.exit(2));
    for (let i = 0; i < argv.length; i++) {
      const name = argv[i].replace(/^--/, "");
      if (["card", "dial-in", "help"].includes(name)) flags.add(name);
      else if (name in o && i + 1 < argv.length) o[name] = argv[++i];
      else if (name === "log-level") i++;
      else wrong(`options: ${name in o ? `${argv[i]} needs a value` : `there is no option ${argv[i]}`}; see --help`);
    }
    const usage = "options: --state DIR  --credential FILE  --settings FILE  --agent-id ID  --instance-id UUID  --capacity N  --shards N  --dial-in  --card  --once SKILL\n";
    try {
      Object.assign(this.settings, JSON.parse(o.settings ? readFileSync(o.settings, "utf8") : env.BATON_SETTINGS || "{}"));
      this.capacity = checkCapacity(Number(o.capacity ?? this.capacity));
      shards = checkShards(Number(o.shards));
      this.agentId = checkId("agentId", o["agent-id"] ?? this.agentId);
    } catch (e) {
      wrong(`settings or options: ${e.message}`);
    }
    this.instanceId = o["instance-id"] ?? this.instanceId;
    if (flags.has("help")) {
      process.stdout.write(usage);
      process.exit(0);
    }
    if (this.skills.size === 0) wrong("the agent has no skill; add one with agent.skill(id, about, handler)");
    if (flags.has("card")) {
      console.log(JSON.stringify(this.card(), null, 2));
      process.exit(0);
    }
    if (o.once) {
      let step;
      try {
        step = JSON.parse(readFileSync(0, "utf8"));
        if (step === null || typeof step !== "object" || Array.isArray(step)) throw new Error("expected a JSON object");
      } catch (e) {
        wrong(`--once reads a step from stdin, such as {"parameters": {}}: ${e.message}`);
      }
      if (!this.skills.has(o.once)) wrong(`--once: there is no skill '${o.once}'; it has ${[...this.skills.keys()].join(", ")}`);
      const { parameters, ...request } = step;
      const body = await this.call(o.once, parameters, request);
      console.log(JSON.stringify(body, null, 2));
      process.exit(body.outcome === "failed" ? 1 : 0);
    }
    for (const name of ["SIGTERM", "SIGINT"]) process.on(name, () => this.stop());
    const how = { state: o.state, credential: o.credential, dialIn: flags.has("dial-in"),
      onRegistered: (epoch) => console.error(`agent ${this.agentId} is registered, epoch ${epoch}`) };
    const code = shards > 1 ? await this.serveShards(shards, how) : await this.serve(how);
    process.exit(code);
  }
}

// ---- a client ----

const ENDED = new Set(["completed", "failed", "cancelled", "planned", "quarantined"]);

/** Submits plans and reads what came of them. Answers are the maps of the protocol (MESSAGES.md). */
export class Client {
  constructor({ state, credential, patienceMs = 10000, timeoutMs = 15000 } = {}) {
    Object.assign(this, { control: new Control(state, { credential }), patienceMs, timeoutMs });
    this.state = this.control.state;
  }

  /** Any request of the protocol: `await client.request("agents.get", { agentId: "calc" })`. */
  async request(type, fields = {}, timeoutMs = this.timeoutMs) {
    const again = /\.(get|list|read|result|lint|info|stats|history|cost)$|^review\.decide$/.test(type) || fields.clientKey !== undefined;
    const until = Date.now() + this.patienceMs;
    for (let pause = 50; ; pause = Math.min(pause * 2, 1000)) {
      try {
        return await this.control.request(type, fields, timeoutMs);
      } catch (e) {
        if (!(e instanceof BatonError) || !(e.code === "BUSY" || (e.code === "UNAVAILABLE" && again)) || Date.now() > until) throw e;
        await new Promise((resolve) => setTimeout(resolve, e.retryAfterMs ?? pause));
      }
    }
  }

  /** The planId of a new plan: of a document, or of a goal in words. The same clientKey gives the same plan again. */
  async submit(plan, options = {}) {
    const what = typeof plan === "string" ? { goal: plan } : { plan };
    return (await this.request("plan.submit", { clientKey: `js-${randomUUID()}`, ...options, ...what })).planId;
  }

  get(planId) {
    return this.request("plan.get", { planId });
  }

  /**
   * Events in order and without gaps: those that are there, then those that come. Of a plan: until it has ended. afterEventId: the
   * eventId of the event before fromSeq; HISTORY_CHANGED when it is another one now, because a failover lost events: read again from
   * details.fromSeq.
   */
  async *watch(planId, { fromSeq, types, afterEventId } = {}) {
    let seq = fromSeq ?? (planId ? 1 : (await this.request("supervisor.info")).lastSeq + 1);
    for (;;) {
      const page = await this.request("events.read", { fromSeq: seq, limit: 500, waitMs: 5000, ...(afterEventId ? { afterEventId } : {}), ...(planId ? { planId } : {}), ...(types && !planId ? { types } : {}) }, 30000);
      for (const event of page.events) {
        if (!types || types.includes(event.type)) yield event;
        if (planId && event.type === "plan_completed") return;
      }
      seq = page.nextSeq;
      afterEventId = page.lastEventId;
      if (planId && !page.events.length) {
        const view = await this.get(planId);
        if (ENDED.has(view.status) && view.lastSeq < seq) return;
      }
    }
  }

  /** The answer of a plan once it has ended; with a stepId the result of that step. */
  async result(planId, stepId) {
    if (stepId !== undefined) return (await this.request("plan.result", { planId, stepId })).result ?? {};
    for await (const event of this.watch(planId)) void event;
    return this.request("plan.result", { planId });
  }

  /** Runs one skill as a plan of one step: its data, or its text. */
  async ask(agentId, skill, parameters = {}) {
    const plan = await this.submit({ steps: [{ stepId: "ask", agentId, skill, task: `Use the skill ${skill}`, parameters }] });
    const found = await this.result(plan);
    if (!found.success) throw new BatonError("FAILED", found.failureReason ?? `the plan ended as ${found.status}`, { details: found });
    const result = await this.result(plan, "ask");
    return result.data ?? result.text;
  }

  /** The bytes of a file, as result(...).artifacts lists it, after a check of length and SHA-256. */
  async artifact({ uri, bytes, sha256, name }) {
    const parts = [];
    let at = 0;
    while (at < bytes) {
      const part = Buffer.from((await this.request("artifact.read", { uri, offset: at })).bytes, "base64");
      if (!part.length) break;
      parts.push(part);
      at += part.length;
    }
    const all = Buffer.concat(parts);
    const found = createHash("sha256").update(all).digest("hex");
    if (at !== bytes || found !== sha256) throw new BatonError("INVALID", `artifact ${name}: it was changed: ${at} bytes, SHA-256 ${found}`);
    return all;
  }

  cancel(planId, reason) {
    return this.request("plan.cancel", { planId, reason });
  }

  async reviews(planId) {
    return (await this.request("review.list", planId ? { planId } : {})).reviews;
  }

  /** `approve`, `reject` or `skip`, with {comment, edit}. */
  async decide(reviewId, decision, more = {}) {
    await this.request("review.decide", { reviewId, decision, by: { user: os.userInfo().username, host: os.hostname().slice(0, 64), via: "baton.mjs" }, ...more });
  }

  async agents() {
    return (await this.request("agents.list")).agents;
  }

  close() {
    this.control.close();
  }
}

/** A private daemon in a temporary directory, for tests: a Client, whose close() ends it. batond is in BATON_BIN or on the PATH. */
export async function daemon({ config = {}, agents = [] } = {}) {
  const folder = mkdtempSync(path.join(os.tmpdir(), "baton-js-"));
  const file = path.join(folder, "baton.yaml"), log = path.join(folder, "batond.log"), out = openSync(log, "a");
  writeFileSync(file, typeof config === "string" ? config : JSON.stringify({ durability: "process", policy: { shutdownGraceMs: 1000 }, agents: [], ...config }));
  const program = process.env.BATON_BIN ? path.join(process.env.BATON_BIN, "batond") : "batond";
  const child = spawn(program, ["--state", path.join(folder, "state"), "--config", file, "--listen-control", "tcp://127.0.0.1:0", "--listen-events",
    "tcp://127.0.0.1:0", "--ready-fd", "3"], { stdio: ["ignore", out, out, "pipe"] });
  closeSync(out);
  const ended = new Promise((resolve) => child.once("close", resolve).once("error", resolve));
  await Promise.race([new Promise((resolve) => child.stdio[3].once("data", resolve)), ended.then(() => {
    throw new BatonError("UNAVAILABLE", `the daemon did not start:\n${readFileSync(log, "utf8").slice(-4000)}`);
  })]);
  const client = new Client({ state: path.join(folder, "state") });
  const served = agents.map((agent) => agent.serve({ state: client.state }));
  client.close = async () => {
    for (const agent of agents) (agent.stop(), agent.stop());
    await Promise.allSettled(served);
    client.control.close();
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  for (const agent of agents) {
    while (!(await client.agents()).some((a) => a.card.agentId === agent.agentId && a.instances?.some((i) => i.health === "healthy"))) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  return client;
}
