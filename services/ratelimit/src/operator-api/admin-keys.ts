import { hash } from 'node:crypto';
import { readBody } from '@tollgate/kit/body';
import { RecentlyUsed } from '@tollgate/kit/collections';
import type { AppError } from '@tollgate/kit/errors';
import type { JsonObject } from '@tollgate/kit/json';
import { inTime, type Millis } from '@tollgate/kit/time';
import type { AdminRight } from '../config/admin-tokens.ts';
import { errors } from '../errors.ts';

/** An API key of the auth server that may use the counter API. */
interface AdminKey {
  readonly name: string;
  readonly rights: ReadonlySet<AdminRight>;
}

/** A revoked key is accepted for at most this time. */
const ttlMs = 5_000;
/** Keys and wrong keys together. */
const capacity = 1_000;
const defaultTimeoutMs = 3_000;
/** Callers with wrong keys must not flood the auth server. */
const maxConcurrent = 8;
/** Keys that wait for a check; each of these connections holds a request of a few kilobytes. */
const maxWaiting = 200;
const maxKeyChars = 512;
const maxReplyBytes = 64 * 1024;

interface Entry {
  readonly key: AdminKey | undefined;
  readonly untilMs: number;
}

/** Checks API keys with the auth server, and remembers the results for a few seconds. */
export class AdminKeys {
  readonly #url: URL;
  readonly #token: string;
  readonly #nowMs: () => number;
  readonly #known = new RecentlyUsed<Entry>({ capacity });
  readonly #timeoutMs: Millis;
  readonly #reading = new Map<string, Promise<AdminKey | undefined>>();
  #running: number = 0;
  /** Callbacks that start a check, in order. */
  readonly #waiting = new Set<() => void>();

  constructor({
    url,
    token,
    nowMs,
    timeoutMs = defaultTimeoutMs,
  }: {
    readonly url: string;
    readonly token: string;
    readonly nowMs: () => number;
    /** How long a key waits for its check, and how long a check takes. Default 3 s. */
    readonly timeoutMs?: Millis;
  }) {
    this.#timeoutMs = timeoutMs;
    this.#url = new URL('admin/api-keys/verify', url.endsWith('/') ? url : `${url}/`);
    this.#token = token;
    this.#nowMs = nowMs;
  }

  /**
   * Undefined for a key that is not valid.
   *
   * @param address that of the caller, for keys with allowed networks
   * @throws AppError `keys_unavailable`
   */
  async find(text: string, address = ''): Promise<AdminKey | undefined> {
    if (text === '' || text.length > maxKeyChars) return undefined;
    const name = hash('sha256', `${address} ${text}`);
    const known = this.#known.get(name);
    if (known !== undefined && this.#nowMs() < known.untilMs) return known.key;
    const reading = this.#reading.get(name) ?? this.#read(name, { key: text, address });
    return reading;
  }

  #read(
    name: string,
    body: { readonly key: string; readonly address: string },
  ): Promise<AdminKey | undefined> {
    const reading = this.#inTurn(() => this.#verify(body))
      .then((key) => {
        this.#known.set(name, { key, untilMs: this.#nowMs() + ttlMs });
        return key;
      })
      .finally(() => this.#reading.delete(name));
    this.#reading.set(name, reading);
    return reading;
  }

  /** Runs eight checks at a time. Others wait: wrong keys must not lock out right ones. */
  async #inTurn<T>(check: () => Promise<T>): Promise<T> {
    if (this.#running < maxConcurrent) this.#running += 1;
    else await this.#waitForTurn();
    try {
      return await check();
    } finally {
      this.#passTurn();
    }
  }

  /** @throws AppError `keys_unavailable` */
  async #waitForTurn(): Promise<void> {
    if (this.#waiting.size >= maxWaiting) throw tooMany();
    const { promise: turn, resolve: start } = Promise.withResolvers<void>();
    this.#waiting.add(start);
    try {
      await inTime(turn, this.#timeoutMs, tooMany);
    } catch (error) {
      // The turn may have come at the same moment.
      if (!this.#waiting.delete(start)) this.#passTurn();
      throw error;
    }
  }

  #passTurn(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#running -= 1;
    else {
      this.#waiting.delete(next);
      next();
    }
  }

  async #verify(body: object): Promise<AdminKey | undefined> {
    try {
      const response = await fetch(this.#url, {
        method: 'POST',
        redirect: 'error',
        headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(this.#timeoutMs),
      });
      const tooLarge = () => new Error('the reply is too large');
      const text = (await readBody(response.body, maxReplyBytes, tooLarge)).toString();
      if (response.status !== 200) throw new Error(`the auth server replied with status ${response.status}`);
      return readReply(JSON.parse(text));
    } catch (cause) {
      throw errors.keys_unavailable({ cause });
    }
  }
}

function tooMany(): AppError {
  return errors.keys_unavailable({ message: 'too many API keys are being checked, retry later' });
}

/** Scopes of the auth server by the rights that they give. */
const scopesOf: Readonly<Record<AdminRight, readonly string[]>> = {
  read: ['limits:read', 'limits:write'],
  reserve: ['limits:write'],
  write: ['limits:write'],
};

function readReply(reply: unknown): AdminKey | undefined {
  // Parsed boundary: the members are checked below.
  const { valid, key } = (reply ?? {}) as JsonObject;
  if (valid === false) return undefined;
  const { name, admin_scopes: scopes } = (key ?? {}) as JsonObject;
  if (valid !== true || typeof name !== 'string' || !Array.isArray(scopes))
    throw new Error('the auth server replied with something else than a verified key');
  const rights = Object.entries(scopesOf).flatMap(([right, accepted]) =>
    // The keys of the constant above.
    accepted.some((scope) => scopes.includes(scope)) ? (right as AdminRight) : [],
  );
  return { name, rights: new Set(rights) };
}
