import {
  type AuthClient,
  createAuthClient,
  createLimiterClient,
  createXdsClient,
  type LimiterClient,
  type XdsClient,
} from '@tollgate/admin-clients/clients';
import { CommandFailure } from '../failure.ts';
import { type Context, contextFilePath, findContext, forAuthServer, readContexts } from './contexts.ts';
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

/** A context, and the credential that its services get. */
export interface Connection extends Context {
  /** An API key, or a function that returns an access token. Empty: there is none. */
  readonly token: string | (() => Promise<string>);
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
  const { TOLLGATE_AUTH_URL, TOLLGATE_KEY, TOLLGATE_LIMITER_URLS, TOLLGATE_LIMITER_TOKEN } = env;
  const { TOLLGATE_XDS_URL, TOLLGATE_XDS_TOKEN } = env;
  const merged: Context = {
    ...(TOLLGATE_AUTH_URL ? forAuthServer(context, TOLLGATE_AUTH_URL) : context),
    ...(TOLLGATE_KEY && { key: TOLLGATE_KEY }),
    ...(TOLLGATE_LIMITER_URLS && { limiterUrls: TOLLGATE_LIMITER_URLS.split(',') }),
    ...(TOLLGATE_LIMITER_TOKEN && { limiterToken: TOLLGATE_LIMITER_TOKEN }),
    ...(TOLLGATE_XDS_URL && { xdsUrl: TOLLGATE_XDS_URL }),
    ...(TOLLGATE_XDS_TOKEN && { xdsToken: TOLLGATE_XDS_TOKEN }),
  };
  const { authUrl, login, key = '' } = merged;
  const usesLogin = login !== undefined && !TOLLGATE_KEY;
  const token =
    usesLogin && name !== undefined && authUrl !== undefined ? tokenSource(authUrl, { path, name }) : key;
  return { ...merged, token };
}

/** @throws CommandFailure without the URL of the server. */
export async function connectAuth(source: Source): Promise<AuthClient> {
  const client = authClient(await readContext(source));
  if (client === undefined)
    throw new CommandFailure(
      'the context has no auth server: run tollgate context set --auth-url https://auth.example.com, or set TOLLGATE_AUTH_URL',
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
      'the context has no counter API: run tollgate context set --limiter-url http://127.0.0.1:6071, or set TOLLGATE_LIMITER_URLS',
    );
  return [first, ...others];
}

/** All replicas; none without a URL. */
export function limitersOf(
  { limiterUrls = [], limiterToken, token: ownToken }: Connection,
  timeoutMs = defaultTimeoutMs,
): readonly Limiter[] {
  const token = limiterToken ?? ownToken;
  return limiterUrls.map((url) => ({ url, client: createLimiterClient({ url, token, timeoutMs }) }));
}

/** @throws CommandFailure without the URL of the server. */
export async function connectXds(source: Source): Promise<XdsClient> {
  const { xdsUrl: url, xdsToken, token } = await readContext(source);
  if (url === undefined)
    throw new CommandFailure(
      'the context has no xDS server: run tollgate context set --xds-url http://127.0.0.1:8090, or set TOLLGATE_XDS_URL',
    );
  return createXdsClient({ url, token: xdsToken ?? token, timeoutMs: defaultTimeoutMs });
}
