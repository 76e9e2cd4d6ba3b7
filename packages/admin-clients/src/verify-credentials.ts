import { hash } from 'node:crypto';
import { readBody } from '@tollgate/kit/body';
import { RecentlyUsed } from '@tollgate/kit/collections';
import type { JsonObject } from '@tollgate/kit/json';
import { inTime, type Millis } from '@tollgate/kit/time';

/** Whose API key or access token a service has received, as its audit lines name them. */
export interface Administrator {
  /** `administrator`: a person. */
  readonly kind: 'administrator' | 'api_key' | 'service_token';
  /** The id of the user or the key. Empty for a token of a service. */
  readonly id: string;
  /** Email address or phone number of a person, or name of a key. */
  readonly name: string;
  /** The names have no prefix, such as `limits:write`. */
  readonly scopes: ReadonlySet<string>;
}

/** The auth server cannot say whose credential it is: requests with it get 503. */
export class VerifierUnavailableError extends Error {
  override readonly name = 'VerifierUnavailableError';
}

export interface CredentialVerifierOptions {
  /** Base URL of the auth server. */
  readonly url: string;
  /** API key of the auth server with the admin scope `keys:verify`. */
  readonly token: string;
  readonly nowMs: () => number;
  /** How long a credential waits for its check, and how long a check takes. Default 3 s. */
  readonly timeoutMs?: Millis;
}

/** A revoked key, or a token of an ended session, is accepted for at most this time. */
const ttlMs = 5_000;
/** Right and wrong credentials together. */
const capacity = 1_000;
const defaultTimeoutMs = 3_000;
/** Callers with wrong credentials must not flood the auth server. */
const maxConcurrent = 8;
/** Credentials that wait for a check; each of these connections holds a request. */
const maxWaiting = 200;
/** Access tokens are larger than keys, and fit into a header. */
const maxCredentialChars = 8 * 1024;
const maxReplyBytes = 64 * 1024;

interface Entry {
  readonly administrator: Administrator | undefined;
  readonly untilMs: number;
}

/**
 * Checks API keys and access tokens of administrators with the auth server, and remembers the
 * results for five seconds.
 */
export class CredentialVerifier {
  readonly #url: URL;
  readonly #token: string;
  readonly #nowMs: () => number;
  readonly #timeoutMs: Millis;
  readonly #known = new RecentlyUsed<Entry>({ capacity });
  readonly #reading = new Map<string, Promise<Administrator | undefined>>();
  #running: number = 0;
  /** Callbacks that start a check, in order. */
  readonly #waiting = new Set<() => void>();

  constructor({ url, token, nowMs, timeoutMs = defaultTimeoutMs }: CredentialVerifierOptions) {
    this.#timeoutMs = timeoutMs;
    this.#url = new URL('admin/credentials/verify', url.endsWith('/') ? url : `${url}/`);
    this.#token = token;
    this.#nowMs = nowMs;
  }

  /**
   * Undefined for a credential that is not valid, or not of an administrator.
   *
   * @param address that of the caller, for keys with allowed networks
   * @throws VerifierUnavailableError
   */
  async verify(credential: string, address = ''): Promise<Administrator | undefined> {
    if (credential === '' || credential.length > maxCredentialChars) return undefined;
    const name = hash('sha256', `${address} ${credential}`);
    const known = this.#known.get(name);
    if (known !== undefined && this.#nowMs() < known.untilMs) return known.administrator;
    return this.#reading.get(name) ?? this.#read(name, { credential, address });
  }

  #read(name: string, body: object): Promise<Administrator | undefined> {
    const reading = this.#inTurn(() => this.#check(body))
      .then((administrator) => {
        this.#known.set(name, { administrator, untilMs: this.#nowMs() + ttlMs });
        return administrator;
      })
      .finally(() => this.#reading.delete(name));
    this.#reading.set(name, reading);
    return reading;
  }

  /** Runs eight checks at a time. Others wait: wrong credentials must not lock out right ones. */
  async #inTurn<T>(check: () => Promise<T>): Promise<T> {
    if (this.#running < maxConcurrent) this.#running += 1;
    else await this.#waitForTurn();
    try {
      return await check();
    } finally {
      this.#passTurn();
    }
  }

  /** @throws VerifierUnavailableError */
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

  async #check(body: object): Promise<Administrator | undefined> {
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
      throw new VerifierUnavailableError('the auth server cannot check the credential', { cause });
    }
  }
}

function tooMany(): VerifierUnavailableError {
  return new VerifierUnavailableError('too many credentials are being checked');
}

const kinds = ['administrator', 'api_key', 'service_token'] as const;

function readReply(reply: unknown): Administrator | undefined {
  // Parsed boundary: the members are checked below.
  const { valid, administrator } = (reply ?? {}) as JsonObject;
  if (valid === false) return undefined;
  const { kind: given, id, name, admin_scopes: scopes } = (administrator ?? {}) as JsonObject;
  const kind = kinds.find((known) => known === given);
  if (
    valid !== true ||
    kind === undefined ||
    typeof id !== 'string' ||
    typeof name !== 'string' ||
    !Array.isArray(scopes)
  )
    throw new Error('the auth server replied with something else than an administrator');
  return { kind, id, name, scopes: new Set(scopes.map(String)) };
}
