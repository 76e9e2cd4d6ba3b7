import { setTimeout as delay } from 'node:timers/promises';
import { AuthApiError, AuthClient } from '@supabase/auth-js';
import type { Admin } from './admin.ts';
import type { PolicyFolder } from './policies.ts';
import type { Change, Row } from './scenario.ts';

/** Above all timeouts between the parts; password hashes may be queued. */
const answerTimeoutMs = 20_000;

/** A `fetch` that gives up after 20 seconds, and as soon as the signal aborts. */
export function timedFetch(signal?: AbortSignal): typeof fetch {
  return (input, init) => {
    const signals = [AbortSignal.timeout(answerTimeoutMs), signal, init?.signal ?? undefined];
    return fetch(input, { ...init, signal: AbortSignal.any(signals.filter((each) => each !== undefined)) });
  };
}

/** A token with another role and the original signature. */
export function tampered(token: string): string {
  const [header = '', payload = '', signature = ''] = token.split('.');
  const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString());
  const changed = { ...(typeof claims === 'object' ? claims : {}), role: 'service' };
  return [header, Buffer.from(JSON.stringify(changed)).toString('base64url'), signature].join('.');
}

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  /** The JSON of the body; undefined when it was none. */
  readonly body: unknown;
}

/** Reads a response to its end, so that the connection is used again. */
export async function readReply(response: Response): Promise<Reply> {
  return { status: response.status, headers: response.headers, body: parsed(await response.text()) };
}

/**
 * In a few words: who the shop thinks asked, and how much of the limit is left; or who refused it
 * and why.
 */
export function counted(reply: Reply, names: Names): string {
  const { status, headers, body } = reply;
  if (status !== 200) return refusal(reply);
  const limit = headers.get('ratelimit-limit');
  const left =
    limit === null ? 'not counted' : `${headers.get('ratelimit-remaining') ?? '?'} of ${limit} left`;
  return `200 ${caller(body, names)}, ${left}`;
}

/**
 * Leaves out the remaining hits, which depend on the number of requests during a change.
 */
export function limited(reply: Reply, names: Names): string {
  const { status, headers, body } = reply;
  if (status !== 200) return refusal(reply);
  return `200 ${caller(body, names)}, limit ${headers.get('ratelimit-limit') ?? 'none'}`;
}

/** The identity that the shop has read its stock with. */
export function stockReader(reply: Reply): string {
  if (reply.status !== 200) return refusal(reply);
  return `200 stock read as ${text(reply.body, 'stock', 'caller', 'role') ?? 'anonymous'}`;
}

export type Names = ReadonlyMap<string, string>;

function refusal({ status, body }: Reply): string {
  return `${status} ${text(body, 'error_code') ?? text(body, 'error') ?? 'without a reason'}`;
}

function caller(body: unknown, names: Names): string {
  const userId = text(body, 'caller', 'userId');
  if (userId === undefined) return 'no user';
  return `${names.get(userId) ?? userId} (${text(body, 'caller', 'plan') ?? 'no plan'})`;
}

function text(value: unknown, ...path: readonly string[]): string | undefined {
  const end = path.reduce<unknown>(
    (at, key) => (typeof at === 'object' && at !== null ? Reflect.get(at, key) : undefined),
    value,
  );
  return typeof end === 'string' ? end : undefined;
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

export interface PersonOptions {
  readonly name: string;
  readonly authUrl: string;
  /** The mailbox of development mode. */
  readonly mailboxUrl: string;
  readonly signal: AbortSignal;
}

/**
 * A user with an unmodified auth-js. Methods answer in a few words what happened, as the table
 * shows it.
 */
export interface Person {
  readonly name: string;
  readonly email: string;
  readonly password: string;
  /** Absent until they have signed up. */
  userId(): string | undefined;
  /** The access token of the last sign-in, also after signing out. */
  token(): string;
  signUp(): Promise<string>;
  /** Follows the link in the mail. */
  confirm(): Promise<string>;
  signIn(): Promise<string>;
  signOut(): Promise<string>;
  /** Gets a token for an organization. */
  actFor(organizationId: string): Promise<string>;
}

/** A user who has not signed up yet. */
export function createPerson({ name, authUrl, mailboxUrl, signal }: PersonOptions): Person {
  const email = `${name}@example.com`;
  const password = 'correct horse';
  const request = timedFetch(signal);
  const auth = new AuthClient({
    url: authUrl,
    autoRefreshToken: false,
    persistSession: true,
    storage: memoryStorage(),
    fetch: request,
  });
  let userId: string | undefined;
  let token = '';

  return {
    name,
    email,
    password,
    userId: () => userId,
    token: () => token,
    async signUp() {
      const { data, error } = await auth.signUp({ email, password });
      if (error !== null) return personRefusal(error);
      userId = data.user?.id;
      return data.session === null ? 'to be confirmed' : 'signed in';
    },
    async confirm() {
      const link = linkIn(await (await request(`${mailboxUrl}.json?to=${email}`)).text());
      if (link === undefined) return 'no mail';
      const response = await request(link, { redirect: 'manual' });
      const target = response.headers.get('location') ?? '';
      return `${response.status} ${/[#&]access_token=/.test(target) ? 'confirmed' : 'not confirmed'}`;
    },
    async signIn() {
      const { data, error } = await auth.signInWithPassword({ email, password });
      if (error !== null) return personRefusal(error);
      userId = data.user.id;
      token = data.session.access_token;
      return 'signed in';
    },
    async actFor(organizationId) {
      const response = await request(`${authUrl}/user/organization`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ id: organizationId }),
      });
      const answer: unknown = await response.json();
      token = text(answer, 'access_token') ?? token;
      return response.ok ? 'acts for it' : `${response.status} ${text(answer, 'error_code') ?? ''}`;
    },
    async signOut() {
      const { error } = await auth.signOut();
      return error === null ? 'signed out' : personRefusal(error);
    },
  };
}

function personRefusal(error: Error): string {
  // Anything else is no answer, which ends the table.
  if (!(error instanceof AuthApiError)) throw error;
  return `${error.status} ${error.code}`;
}

/** The link of the newest mail, as its HTML has it. */
function linkIn(mailbox: string): string | undefined {
  return mailbox.match(/http:\/\/[^" ]*\/verify\?[^"\\<]*/)?.[0].replaceAll('&amp;', '&');
}

function memoryStorage() {
  const kept = new Map<string, string>();
  return {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  };
}

/** The users and services of the scenario. */
export interface Story {
  readonly ada: Person;
  readonly bob: Person;
  readonly admin: Admin;
  readonly policies: PolicyFolder;
  /** Names of users who have signed up, by id. */
  names(): Names;
  /** Gets a page of the shop through Envoy. */
  get(path: string, options?: GetOptions): Promise<Reply>;
}

export interface GetOptions {
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface StoryOptions extends Pick<Story, 'ada' | 'bob' | 'admin' | 'policies'> {
  /** URL of Envoy, without a slash at the end. */
  readonly gatewayUrl: string;
  readonly signal: AbortSignal;
}

export function createStory({ gatewayUrl, signal, ...cast }: StoryOptions): Story {
  const request = timedFetch(signal);
  return {
    ...cast,
    names: () => new Map([cast.ada, cast.bob].map((person) => [person.userId() ?? '', person.name])),
    async get(path, { token, headers = {} } = {}) {
      const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
      return readReply(await request(`${gatewayUrl}${path}`, { headers: { ...headers, ...authorization } }));
    },
  };
}

export interface Outcome {
  readonly asExpected: boolean;
  /** The result in a few words. */
  readonly actual: string;
  /** False when there was no answer at all. */
  readonly answered: boolean;
  readonly tookMs: number;
}

/**
 * A change takes tens of milliseconds; the bound on staleness that the auth server states is 10 s.
 */
const changeTimeoutMs = 60_000;

/** Short against what it measures, long enough not to keep the processor busy. */
const shortestPauseMs = 5;

/**
 * Share of the elapsed time: some 150 attempts in a minute, fewer than the limit that is to come
 * into force allows, and the measured time is at most so much too long.
 */
const pauseShare = 0.05;

/**
 * Does what a row says, once.
 *
 * @throws the signal's reason when it aborts.
 */
export async function perform(row: Row, story: Story, signal: AbortSignal): Promise<Outcome> {
  const startedMs = performance.now();
  const outcome = await attempt(row, story, signal);
  return { ...outcome, tookMs: performance.now() - startedMs };
}

/**
 * Makes a change and does what the row says until it comes out as expected; after a minute the
 * last outcome stands.
 *
 * @throws the signal's reason when it aborts.
 */
export async function performAfter(
  change: Change,
  row: Row,
  { story, signal }: { readonly story: Story; readonly signal: AbortSignal },
): Promise<Outcome> {
  const startedMs = performance.now();
  await change.make(story);
  for (;;) {
    const outcome = await attempt(row, story, signal);
    const tookMs = performance.now() - startedMs;
    if (outcome.asExpected || tookMs >= changeTimeoutMs) return { ...outcome, tookMs };
    await delay(Math.max(shortestPauseMs, tookMs * pauseShare), undefined, { signal });
  }
}

async function attempt(row: Row, story: Story, signal: AbortSignal): Promise<Omit<Outcome, 'tookMs'>> {
  try {
    const actual = await row.act(story);
    return { actual, answered: true, asExpected: actual === row.expect };
  } catch (error) {
    signal.throwIfAborted();
    return { actual: `no answer: ${getReason(error)}`, answered: false, asExpected: false };
  }
}

/** fetch hides the reason in the cause. */
function getReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
