import type { Ports } from './ports.ts';
import type { RuleStore } from './rules/rule-store.ts';

/** What a part is told when it starts. */
export interface PartContext {
  readonly ports: Ports;
  /** The demo's temporary folder. */
  readonly folder: string;
  /** The Node.js that runs the demo. */
  readonly nodePath: string;
  /** Where the management server finds the RateLimitConfigs. */
  readonly rules: RuleStore;
  /** The rules of routes: who may do what. */
  readonly accessFile: string;
  /** Signs every token. */
  readonly jwtSecret: string;
  /** Aborts when the demo is to stop: a part that still starts gives up waiting, and is stopped. */
  readonly signal: AbortSignal;
}

/** A part that answers. */
export interface RunningPart {
  /** Completes the line that says it is ready: what it is, where it listens. */
  readonly detail: string;
  /** False once it has ended by itself. */
  isRunning(): boolean;
  /** What it has logged so far. */
  logs(): string;
  /** Resolves when nothing of it is left. Idempotent. */
  stop(): Promise<void>;
}

/** One program of the demo. */
export interface Part {
  /** Completes "starting …". */
  readonly name: string;
  /** What to do when it does not start, or ends by itself. */
  readonly hint: string;
  /** Resolves when it answers. Throws, with its output in the message, when that takes too long. */
  start(context: PartContext): Promise<RunningPart>;
}
