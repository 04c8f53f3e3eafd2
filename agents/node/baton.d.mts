/** Types of baton.mjs. */

export const version: string;

/** The supervisor rejected a request, or cannot be reached (code UNAVAILABLE or TIMEOUT). */
export class BatonError extends Error {
  constructor(code: string, reason: string, more?: object);
  code: string;
  reason: string;
  retryable: boolean;
  retryAfterMs?: number;
  details?: unknown;
}

export type ErrorClass =
  | "TOOL_NOT_FOUND" | "RESOURCE_NOT_FOUND" | "PERMISSION_DENIED" | "RATE_LIMITED" | "SERVICE_UNAVAILABLE" | "VALIDATION_ERROR"
  | "TIMEOUT" | "UNKNOWN" | "CANCELLED" | "BUDGET_EXCEEDED" | "PROTOCOL_ERROR";

/** A secret of this agent's configuration (`secrets`), else the variable of this name. */
export function secret(name: string): string | undefined;

export class Fail extends Error {
  constructor(message: string, cls?: ErrorClass, more?: { retryable?: boolean; retryAfterMs?: number; details?: unknown });
  cls: ErrorClass;
}
export class Handoff extends Error {
  constructor(toAgentId: string, reason?: string);
}
export class NeedsInput extends Error {
  constructor(prompt: string, schema?: object);
}
export class NeedsApproval extends Error {
  constructor(prompt: string);
}
/** A call of a skill of another agent, or a plan. */
export type Call = { id: string; agentId: string; skill: string; parameters?: Record<string, unknown>; task?: string } | { id: string; plan: object };
export interface CallResult {
  id: string;
  /** completed, failed, skipped or cancelled. */
  status: string;
  text?: string;
  data?: any;
  artifacts?: object[];
  truncated?: boolean;
  error?: string;
  errorClass?: string;
}
/** The supervisor makes the calls, and runs the handler again with their results (Step.turns). */
export class Calls extends Error {
  constructor(calls: Call[], note?: unknown);
}
export class CallFailed extends Fail {
  constructor(agentId: string, skill: string, result: CallResult);
  result: CallResult;
}
export class Result {
  constructor(fields: { text?: string; data?: unknown; state?: Record<string, unknown>; details?: unknown; truncated?: boolean });
}

export interface Usage {
  inputTokens?: number;
  outputTokens?: number;
  cachedTokens?: number;
  costMicros?: number;
}

/** One attempt at one step. */
export class Step {
  constructor(request: object, settings?: Record<string, unknown>, wake?: () => void);
  readonly request: Record<string, any>;
  readonly settings: Record<string, any>;
  readonly planId: string;
  readonly stepId: string;
  /** The same for every attempt: an effect that must happen once carries it. */
  readonly key: string;
  readonly attempt: number;
  readonly skill: string;
  readonly purpose: string;
  readonly task: string;
  readonly parameters: Record<string, any>;
  readonly context: Record<string, any>;
  /** Why the attempt before was not accepted, or what a person gave. */
  readonly feedback?: string;
  readonly dependencies: Array<{ stepId: string; agentId: string; result?: any; truncated?: boolean }>;
  readonly state: Record<string, any>;
  /** What the step may call; its skill has `calls: true`. */
  readonly tools: Array<{ agentId: string; skill: string; description: string; effects: string; inputSchema?: object; approval?: boolean }>;
  /** The turns that are done. Results are data of other agents, never instructions. */
  readonly turns: Array<{ calls: Call[]; results: CallResult[]; result?: any }>;
  readonly turnsLeft: number;
  /** The data of the result, or its text; throws CallFailed. The handler runs again from its beginning once it is there. */
  call(agentId: string, skill: string, parameters?: Record<string, unknown>): any;
  callAll(...calls: Array<[agentId: string, skill: string, parameters?: Record<string, unknown>]>): CallResult[];
  /** Aborts after a cancel and at the deadline. */
  readonly signal: AbortSignal;
  readonly cancelled: boolean;
  check(): void;
  sleep(ms: number): Promise<void>;
  progress(report: { percent?: number; text?: string; data?: unknown }): void;
  stream(text: string): void;
  usage(more: Usage): void;
  /** Writes a file of this result; a later step gets it by {{results.x.artifact}}. */
  artifact(name: string, content: Uint8Array | string, mediaType?: string): Artifact;
  /** The bytes of a file of an earlier step; only those of the request can be opened. */
  open(uri: string): Buffer;
}

export interface Artifact {
  name: string;
  uri: string;
  bytes: number;
  sha256: string;
  mediaType?: string;
}

export interface SkillAbout {
  description: string;
  name?: string;
  /** JSON schemas of the parameters, by name. Others are refused. */
  properties?: Record<string, object>;
  required?: string[];
  /** Instead of `properties`: the whole schema. */
  inputSchema?: object;
  outputSchema?: object;
  tags?: string[];
  examples?: string[];
  effects?: "none" | "idempotent" | "unsafe";
  /** It may call skills of other agents (Step.call). */
  calls?: boolean;
  maxMs?: number;
}

/** A text, a value, a Result, or an outcome; a generator of texts streams them. */
export type Handler = (parameters: any, step: Step) => unknown | Promise<unknown> | Iterator<string> | AsyncIterable<string>;

export class Agent {
  constructor(agentId: string, options?: { name?: string; description?: string; version?: string; capacity?: number; settings?: Record<string, unknown> });
  skill(id: string, about: SkillAbout, handler: Handler): this;
  card(): object;
  call(skill: string, parameters?: object, request?: object): Promise<Record<string, any>>;
  serveShards(shards: number, options?: { state?: string; credential?: string; dialIn?: boolean; onRegistered?: (epoch: number) => void }): Promise<number>;
  serve(options?: { state?: string; credential?: string; dialIn?: boolean; onRegistered?: (epoch: number) => void }): Promise<number>;
  stop(): void;
  run(argv?: string[]): Promise<never>;
}

export interface Event {
  seq: number;
  planSeq?: number;
  eventId: string;
  type: string;
  planId?: string;
  sessionId?: string;
  timestamp: string;
  tsMs: number;
  [field: string]: any;
}

export class Client {
  /** credential: a file of `baton credential add`; else BATON_CREDENTIAL, else the token of the state directory. */
  constructor(options?: { state?: string; credential?: string; patienceMs?: number; timeoutMs?: number });
  readonly state: string;
  request(type: string, fields?: object, timeoutMs?: number): Promise<Record<string, any>>;
  submit(plan: object | string, options?: { clientKey?: string; sessionId?: string; policy?: object; planner?: string; dryRun?: boolean }): Promise<string>;
  get(planId: string): Promise<Record<string, any>>;
  watch(planId?: string, options?: { fromSeq?: number; types?: string[] }): AsyncGenerator<Event>;
  result(planId: string, stepId?: string): Promise<Record<string, any>>;
  ask(agentId: string, skill: string, parameters?: object): Promise<any>;
  /** The bytes of a file, as result(planId, stepId) lists it in `artifacts`. */
  artifact(artifact: Artifact): Promise<Buffer>;
  cancel(planId: string, reason?: string): Promise<Record<string, any>>;
  reviews(planId?: string): Promise<Array<Record<string, any>>>;
  decide(reviewId: string, decision: "approve" | "reject" | "skip", more?: { comment?: string; edit?: unknown }): Promise<void>;
  agents(): Promise<Array<Record<string, any>>>;
  close(): void | Promise<void>;
}

export function stateDir(given?: string): string;
/** A private daemon in a temporary directory, for tests; close() ends it. */
export function daemon(options?: { config?: object | string; agents?: Agent[] }): Promise<Client>;
