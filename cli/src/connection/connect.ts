import {
  type AuthClient,
  type ClientOptions,
  createAuthClient,
  createLimiterClient,
  createXdsClient,
  type LimiterClient,
  type XdsClient,
} from '@tollgate/admin-clients/clients';
import { CommandFailure } from '../failure.ts';
import { type Context, contextFilePath, findContext, forAuthServer, readContexts } from './contexts.ts';
import { requireSecret, requireUrl } from './inputs.ts';
import { tokenSource } from './sign-in.ts';

/** Where a command finds its context and its credentials. */
export interface Source {
  readonly env: NodeJS.ProcessEnv;
  /** `--context`. */
  readonly contextName: string | undefined;
}

/** Time for a response. */
export const defaultTimeoutMs = 10_000;

/** A replica of the rate limit service. */
export interface Limiter {
  readonly url: string;
  readonly client: LimiterClient;
}

/** An API key, or a function that returns an access token. Empty: there is none. */
type Credential = ClientOptions['token'];

/** A context, and the credentials that its services get. */
export interface Connection extends Omit<Context, 'limiterToken' | 'xdsToken'> {
  readonly token: Credential;
  readonly limiterToken: Credential;
  readonly xdsToken: Credential;
}

/** The name of the context that a command uses. */
export function contextName(
  { env, contextName: given }: Source,
  current: string | undefined,
): string | undefined {
  return given ?? (env.TOLLGATE_CONTEXT || current);
}

/** The context, with what the environment has instead. @throws CommandFailure if there is none. */
export async function readContext(source: Source): Promise<Connection> {
  const { env } = source;
  const path = contextFilePath(env);
  const file = await readContexts(path);
  const name = contextName(source, file.current);
  const context = name === undefined ? {} : findContext(file, name);
  if (context === undefined)
    throw new CommandFailure(`there is no context ${name}: tollgate context list has all contexts`);
  const merged = mergeContext(context, env);
  const { authUrl, login, key = '' } = merged;
  const usesLogin = login !== undefined && readVariable(env, fields.key[0]) === '';
  const token =
    usesLogin && name !== undefined && authUrl !== undefined ? tokenSource(authUrl, { path, name }) : key;
  const { limiterToken = token, xdsToken = token } = merged;
  return { ...merged, token, limiterToken, xdsToken };
}

/** Fields with a text, the variables that replace them, and their forms. */
const fields = {
  authUrl: ['TOLLGATE_AUTH_URL', requireUrl],
  key: ['TOLLGATE_KEY', requireSecret],
  limiterToken: ['TOLLGATE_LIMITER_TOKEN', requireSecret],
  xdsUrl: ['TOLLGATE_XDS_URL', requireUrl],
  xdsToken: ['TOLLGATE_XDS_TOKEN', requireSecret],
  consoleUrl: ['TOLLGATE_CONSOLE_URL', requireUrl],
} as const;

/** A variable of white space alone is not set. */
function readVariable(env: NodeJS.ProcessEnv, variable: string): string {
  return env[variable]?.trim() ?? '';
}

/** The environment replaces fields of the context. @throws CommandFailure for an invalid text */
function mergeContext(context: Context, env: NodeJS.ProcessEnv): Context {
  const otherUrl = readVariable(env, fields.authUrl[0]);
  const { limiterUrls = [], ...base } = otherUrl === '' ? context : forAuthServer(context, otherUrl);
  const texts: Partial<Record<keyof typeof fields, string>> = {};
  const names = Object.keys(fields) as (keyof typeof fields)[]; // of exactly these keys
  for (const name of names) {
    const [variable, read] = fields[name];
    const text = readVariable(env, variable);
    const { [name]: stored } = base;
    if (text !== '') texts[name] = read(text, variable);
    else if (stored !== undefined) texts[name] = read(stored, `${name} of the context`);
  }
  const replicas = readVariable(env, 'TOLLGATE_LIMITER_URLS')
    .split(',')
    .map((url) => url.trim())
    .filter((url) => url !== '');
  const urls = replicas.length > 0 ? replicas : limiterUrls;
  return {
    ...base,
    ...texts,
    limiterUrls: urls.map((url) =>
      requireUrl(url, replicas.length > 0 ? 'TOLLGATE_LIMITER_URLS' : 'limiterUrls of the context'),
    ),
  };
}

/** @throws CommandFailure without the URL of the server. */
export async function connectAuth(source: Source): Promise<AuthClient> {
  const client = authClient(await readContext(source));
  if (client === undefined)
    throw new CommandFailure(
      'the context has no auth server: run tollgate context set default --auth-url https://auth.example.com, or set TOLLGATE_AUTH_URL',
    );
  return client;
}

/** Undefined without the URL of the server. */
export function authClient(
  { authUrl: url, token }: Pick<Connection, 'authUrl' | 'token'>,
  timeoutMs = defaultTimeoutMs,
): AuthClient | undefined {
  return url === undefined ? undefined : createAuthClient({ url, token, timeoutMs });
}

/** All replicas. @throws CommandFailure without a URL. */
export async function connectLimiters(source: Source): Promise<readonly [Limiter, ...Limiter[]]> {
  const [first, ...others] = limitersOf(await readContext(source));
  if (first === undefined)
    throw new CommandFailure(
      'the context has no counter API: run tollgate context set default --limiter-url http://127.0.0.1:6071, or set TOLLGATE_LIMITER_URLS',
    );
  return [first, ...others];
}

/** All replicas; none without a URL. */
export function limitersOf(
  { limiterUrls = [], limiterToken: token }: Connection,
  timeoutMs = defaultTimeoutMs,
): readonly Limiter[] {
  return limiterUrls.map((url) => ({ url, client: createLimiterClient({ url, token, timeoutMs }) }));
}

/** @throws CommandFailure without the URL of the server. */
export async function connectXds(source: Source): Promise<XdsClient> {
  const client = xdsClient(await readContext(source));
  if (client === undefined)
    throw new CommandFailure(
      'the context has no xDS server: run tollgate context set default --xds-url http://127.0.0.1:8090, or set TOLLGATE_XDS_URL',
    );
  return client;
}

/** Undefined without the URL of the server. */
export function xdsClient(
  { xdsUrl: url, xdsToken: token }: Connection,
  timeoutMs = defaultTimeoutMs,
): XdsClient | undefined {
  return url === undefined ? undefined : createXdsClient({ url, token, timeoutMs });
}
