import { backoffDelays, retry } from '@tollgate/kit/backoff';
import { maxTimerMs, parseInstant } from '@tollgate/kit/time';
import type { Program } from '../../../config/redis-credentials.ts';
import { parseRedisAuth, type RedisCredentials } from '../../../config/redis-target.ts';
import { type CredentialHooks, type CredentialSource, Login } from './login.ts';
import { runProgram } from './program.ts';

export interface CredentialCommandOptions extends CredentialHooks {
  readonly program: Program;
  readonly timeoutMs: number;
  /** Time between two runs, unless the credentials expire before. */
  readonly intervalMs: number;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  readonly random: () => number;
}

/** Part of the lifetime after which credentials are renewed: the rest is for attempts that fail. */
const renewalFraction = 0.7;

/** A program that prints credentials that have expired already is not run in a tight loop. */
const minIntervalMs = 1_000;

/** Backoff of attempts that fail. */
const backoff = { initialMs: 1_000, maxMs: 30_000, jitter: 0.5 };

/** Runs a program for the credentials, at the start and before they expire. */
export class CredentialCommand implements CredentialSource {
  readonly login = new Login();
  readonly #options: CredentialCommandOptions;
  readonly #stopping = new AbortController();
  readonly #delayMs: (attempt: number) => number;
  #failures = 0;
  #lastError: Error | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: CredentialCommandOptions) {
    this.#options = options;
    this.#delayMs = backoffDelays({ ...backoff, random: options.random });
  }

  async start(signal: AbortSignal): Promise<void> {
    const { random } = this.#options;
    await retry(() => this.#refresh(), {
      backoff: { ...backoff, random },
      signal: AbortSignal.any([signal, this.#stopping.signal]),
      onRetry: ({ error }) => this.#report(error),
    });
  }

  close(): void {
    this.#stopping.abort();
    clearTimeout(this.#timer);
  }

  lastError(): Error | undefined {
    return this.#lastError;
  }

  async #refresh(): Promise<void> {
    const { program, timeoutMs, intervalMs, nowMs, onReloaded } = this.#options;
    const isFirst = this.login.current() === undefined;
    const output = await runProgram(program, { timeoutMs, signal: this.#stopping.signal });
    const { credentials, lifetimeMs } = parseOutput(output, program, nowMs());
    if (this.login.replace(credentials) && !isFirst) onReloaded();
    const renewalMs = Math.max(minIntervalMs, (lifetimeMs ?? Infinity) * renewalFraction);
    this.#schedule(Math.min(intervalMs, renewalMs));
  }

  async #refreshAgain(): Promise<void> {
    try {
      await this.#refresh();
      this.#failures = 0;
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      this.#failures += 1;
      this.#report(error);
      this.#schedule(this.#delayMs(this.#failures));
    }
  }

  #report(error: unknown): void {
    this.#lastError = error instanceof Error ? error : new Error(String(error));
    this.#options.onError(this.#lastError);
  }

  #schedule(delayMs: number): void {
    if (this.#stopping.signal.aborted) return;
    this.#timer = setTimeout(() => void this.#refreshAgain(), Math.min(maxTimerMs, delayMs)).unref();
  }
}

interface Output {
  readonly credentials: RedisCredentials;
  /** Undefined when the program does not say when they expire. */
  readonly lifetimeMs: number | undefined;
}

const forms =
  'password, user:password, or JSON with password and, optionally, username and expiresAt (RFC 3339) or expiresInSeconds';

/** @throws Error that does not contain the output. */
function parseOutput(output: string, { file }: Program, nowMs: number): Output {
  const text = output.trim();
  const parsed = text.startsWith('{') ? parseJson(text, nowMs) : parseText(text);
  if (parsed === undefined) throw new Error(`the output of ${file} is not ${forms}`);
  return parsed;
}

function parseText(text: string): Output | undefined {
  const credentials = /[\r\n]/.test(text) ? undefined : parseRedisAuth(text);
  if (credentials === undefined || credentials.password === '') return undefined;
  return { credentials, lifetimeMs: undefined };
}

function parseJson(text: string, nowMs: number): Output | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { username, password, expiresAt, expiresInSeconds } = value as Readonly<Record<string, unknown>>;
  if (typeof password !== 'string' || password === '') return undefined;
  if (username !== undefined && (typeof username !== 'string' || username === '')) return undefined;
  const lifetimeMs = readLifetime(expiresAt, expiresInSeconds, nowMs);
  if (lifetimeMs === 'invalid') return undefined;
  return { credentials: username === undefined ? { password } : { username, password }, lifetimeMs };
}

function readLifetime(
  expiresAt: unknown,
  expiresInSeconds: unknown,
  nowMs: number,
): number | undefined | 'invalid' {
  if (expiresAt !== undefined) {
    const instant = typeof expiresAt === 'string' ? parseInstant(expiresAt) : undefined;
    return instant === undefined ? 'invalid' : instant.getTime() - nowMs;
  }
  if (expiresInSeconds === undefined) return undefined;
  return typeof expiresInSeconds === 'number' && expiresInSeconds > 0 ? expiresInSeconds * 1_000 : 'invalid';
}
