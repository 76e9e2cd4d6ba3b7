import type { BasicEncoding } from './client-auth/methods.ts';
import type { ArrayFormat, ClientOptions, Fetch, Logger, TokenMethod } from './client-options.ts';
import { checkedClock, epochSeconds } from './clock.ts';
import type { DocumentCache } from './document-cache.ts';
import { ConfigurationError } from './errors.ts';
import type { WarningEvent } from './hooks.ts';
import {
  type ClientHooks,
  type HookErrorHandler,
  hookErrorHandler,
  hookNames,
  observe,
  observedHooks,
  observedLogger,
} from './hooks.ts';
import type { Parsers } from './http/body.ts';
import type { ParsedFactory, RetryPolicy } from './http/options.ts';
import { DEFAULT_LABEL, type RedactOptions } from './http/redact.ts';
import { globalFetch, safeHeaders } from './http/request.ts';
import { resolveUrl } from './http/url.ts';
import type { JwsAlgorithm } from './jwt/algorithms.ts';
import type { KeyCase } from './key-case.ts';
import { copyPlain, printAs, withoutText } from './objects.ts';
import { type OptionNames, unknownOptions } from './option-names.ts';
import { supportListNames } from './server-support.ts';
import { timerProblem } from './timers.ts';

const DEFAULT_TIMEOUT_MS = 10_000;

/** Far more than any token response. */
const DEFAULT_MAX_BODY_BYTES = 10 * 1024 * 1024;

const DEFAULT_MAX_REDIRECTS = 5;

/** A client's options with their defaults, without its credentials. Frozen. */
export type ClientSettings = {
  readonly clientId?: string | undefined;
  readonly site?: string | undefined;
  readonly authorizationEndpoint: string;
  readonly tokenEndpoint: string;
  readonly revocationEndpoint: string;
  readonly introspectionEndpoint?: string | undefined;
  readonly deviceAuthorizationEndpoint?: string | undefined;
  readonly pushedAuthorizationRequestEndpoint?: string | undefined;
  readonly userinfoEndpoint?: string | undefined;
  readonly issuer: string | undefined;
  readonly jwksUri?: string | undefined;
  readonly cache?: DocumentCache | undefined;
  readonly idTokenSignedResponseAlg?: JwsAlgorithm | undefined;
  readonly idTokenSigningAlgValuesSupported?: readonly string[] | undefined;
  readonly authorizationResponseIssParameterSupported: boolean;
  readonly tokenEndpointAuthMethodsSupported?: readonly string[] | undefined;
  readonly codeChallengeMethodsSupported?: readonly string[] | undefined;
  readonly dpopSigningAlgValuesSupported?: readonly string[] | undefined;
  readonly requirePushedAuthorizationRequests: boolean;
  readonly redirectUri: string | undefined;
  readonly basicEncoding: BasicEncoding;
  readonly tokenMethod: TokenMethod;
  readonly fetch: Fetch;
  readonly requestInit: RequestInit;
  readonly timeoutMs: number;
  readonly maxBodyBytes: number;
  readonly maxRedirects: number;
  readonly throwOnError: boolean;
  readonly keyCase: KeyCase;
  readonly parsedFactory?: ParsedFactory | undefined;
  readonly parsers: Parsers;
  readonly arrayFormat: ArrayFormat;
  /** Undefined unless debugging is on. */
  readonly debugLogger?: Logger | undefined;
  readonly redact: RedactOptions;
  readonly onWarning?: ((event: WarningEvent) => void) | undefined;
  readonly accessTokenFactory?: ClientOptions['accessTokenFactory'] | undefined;
  readonly allowedOrigins: readonly string[] | '*';
  readonly allowInsecure: boolean;
  readonly clockSkew: number;
  /** Epoch seconds. */
  readonly now: () => number;
  /** None of them throws. */
  readonly hooks: ClientHooks;
  /** Never throws. */
  readonly onHookError: HookErrorHandler;
  readonly retry?: RetryPolicy | undefined;
};

/**
 * Checks options and applies the defaults.
 * @throws {ConfigurationError} naming every invalid option.
 */
export function resolveSettings(options: ClientOptions): ClientSettings {
  const problems = findProblems(options);
  if (problems.length > 0) throw new ConfigurationError(`the client's options: ${problems.join('; ')}`);
  // Credentials stay in private fields of the client, because settings may be printed.
  const { clientSecret: _secret, clientAuth: _auth, logger = console, debug, ...given } = options;
  const onHookError = hookErrorHandler(options.onHookError);
  const { onWarning } = options;
  const settings: ClientSettings = {
    ...defaults,
    ...copyPlain(withoutUndefined(given)),
    now: checkedClock(options.now ?? defaults.now),
    hooks: observedHooks(options.hooks ?? {}, onHookError),
    onHookError,
    requestInit: copyInit(options.requestInit, options.redact?.label),
    ...(onWarning !== undefined && { onWarning: observe('onWarning', onWarning, onHookError) }),
    debugLogger: (debug ?? isDebugEnvironment()) ? observedLogger(logger, onHookError) : undefined,
    allowedOrigins: allowedOrigins(options),
  };
  return Object.freeze(settings);
}

/** Prints names only: headers may have an API key, other members the password of a proxy. */
function copyInit({ headers, ...init }: RequestInit = {}, label = DEFAULT_LABEL): RequestInit {
  const copy: RequestInit = copyPlain(init);
  if (headers !== undefined) {
    const safe = safeHeaders(headers);
    copy.headers = printAs(safe, () => withoutText(Object.fromEntries(safe), label));
  }
  return printAs(copy, () => ({ ...withoutText(init, label), headers: copy.headers }));
}

const defaults = Object.freeze({
  authorizationEndpoint: 'oauth/authorize',
  tokenEndpoint: 'oauth/token',
  revocationEndpoint: 'oauth/revoke',
  issuer: undefined,
  redirectUri: undefined,
  basicEncoding: 'rfc6749',
  tokenMethod: 'post',
  fetch: globalFetch,
  timeoutMs: DEFAULT_TIMEOUT_MS,
  maxBodyBytes: DEFAULT_MAX_BODY_BYTES,
  maxRedirects: DEFAULT_MAX_REDIRECTS,
  throwOnError: true,
  keyCase: 'snake',
  parsers: {},
  arrayFormat: 'brackets',
  authorizationResponseIssParameterSupported: false,
  requirePushedAuthorizationRequests: false,
  redact: {},
  allowInsecure: false,
  clockSkew: 0,
  now: epochSeconds,
} satisfies Omit<ClientSettings, 'debugLogger' | 'allowedOrigins' | 'hooks' | 'onHookError' | 'requestInit'>);

/** An option of undefined counts as not given. */
function withoutUndefined<T extends object>(given: T): T {
  // Options that are undefined are optional.
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as T;
}

/** Browsers have no environment, and Deno throws if it may not be read. */
function isDebugEnvironment(): boolean {
  try {
    return globalThis.process?.env?.OAUTH_DEBUG?.toLowerCase() === 'true';
  } catch {
    return false;
  }
}

/** The site, and the servers of the token and userinfo endpoints. */
function allowedOrigins(options: ClientOptions): readonly string[] | '*' {
  const { tokenEndpoint = defaults.tokenEndpoint, allowedOrigins: listed = [] } = options;
  if (listed.includes('*')) return '*';
  const own = [
    options.site,
    options.site === undefined ? URL.parse(tokenEndpoint)?.origin : resolveUrl(options.site, tokenEndpoint),
    options.userinfoEndpoint,
  ];
  const origins = [...own, ...listed].map((url) => (url === undefined ? undefined : URL.parse(url)?.origin));
  return origins.filter((origin) => origin !== undefined);
}

/**
 * Options that are called long after the client was made, where a type error would look like a
 * failure of the server.
 */
const functionNames = [
  'fetch',
  'now',
  'retry',
  'onWarning',
  'onHookError',
  'accessTokenFactory',
  'parsedFactory',
] as const;

const optionNames: OptionNames<ClientOptions> = {
  ...{ clientId: 1, clientSecret: 1, site: 1, authorizationEndpoint: 1, tokenEndpoint: 1 },
  ...{
    revocationEndpoint: 1,
    introspectionEndpoint: 1,
    deviceAuthorizationEndpoint: 1,
    pushedAuthorizationRequestEndpoint: 1,
    userinfoEndpoint: 1,
  },
  ...{
    issuer: 1,
    jwksUri: 1,
    cache: 1,
    idTokenSignedResponseAlg: 1,
    idTokenSigningAlgValuesSupported: 1,
    authorizationResponseIssParameterSupported: 1,
  },
  ...{
    tokenEndpointAuthMethodsSupported: 1,
    codeChallengeMethodsSupported: 1,
    dpopSigningAlgValuesSupported: 1,
    requirePushedAuthorizationRequests: 1,
  },
  ...{ redirectUri: 1, clientAuth: 1, basicEncoding: 1, tokenMethod: 1, fetch: 1 },
  ...{ requestInit: 1, timeoutMs: 1, maxBodyBytes: 1, maxRedirects: 1, throwOnError: 1 },
  ...{ keyCase: 1, parsedFactory: 1, parsers: 1, arrayFormat: 1, logger: 1 },
  ...{ debug: 1, redact: 1, onWarning: 1, accessTokenFactory: 1, allowedOrigins: 1 },
  ...{ allowInsecure: 1, clockSkew: 1, now: 1, hooks: 1, onHookError: 1 },
  ...{ retry: 1 },
};

const redactNames: OptionNames<RedactOptions> = { label: 1, keys: 1 };

function findProblems(options: ClientOptions): string[] {
  const problems = [
    ...unknownOptions(options, optionNames),
    ...unknownOptions(options.redact ?? {}, redactNames, 'redact.'),
  ];
  const timeoutProblem = timerProblem(options.timeoutMs ?? 0);
  if (timeoutProblem !== undefined) problems.push(`\`timeoutMs\` ${timeoutProblem}`);
  for (const name of ['maxRedirects', 'maxBodyBytes'] as const) {
    const value = options[name];
    if (value !== undefined && !(Number.isFinite(value) && value >= 0))
      problems.push(`\`${name}\` must be a number of 0 or more`);
  }
  // Not `instanceof`, which would load the class.
  if (options.cache !== undefined && typeof options.cache?.load !== 'function')
    problems.push('`cache` must be a DocumentCache');
  if (options.site !== undefined && !/^https?:$/.test(URL.parse(options.site)?.protocol ?? '')) {
    problems.push('`site` must be an http(s) URL');
  }
  for (const name of supportListNames) {
    if (options[name] !== undefined && !Array.isArray(options[name]))
      problems.push(`\`${name}\` must be an array`);
  }
  const functions = functionNames.map((name) => [name, options[name]] as const);
  const hooks = hookNames.map((name) => [`hooks.${name}`, options.hooks?.[name]] as const);
  for (const [name, value] of [...functions, ...hooks])
    if (value !== undefined && typeof value !== 'function') problems.push(`\`${name}\` must be a function`);
  problems.push(
    ...checkOneOf('tokenMethod', options.tokenMethod, ['post', 'get', 'post_query']),
    ...checkOneOf('keyCase', options.keyCase, ['snake', 'preserve']),
    ...checkOneOf('arrayFormat', options.arrayFormat, ['brackets', 'repeat']),
    ...checkOneOf('basicEncoding', options.basicEncoding, ['rfc6749', 'raw']),
  );
  for (const origin of options.allowedOrigins ?? []) {
    if (origin !== '*' && URL.parse(origin) === null)
      problems.push(`\`allowedOrigins\`: \`${origin}\` is not an origin`);
  }
  return problems;
}

function checkOneOf(name: string, value: string | undefined, known: readonly string[]): string[] {
  return value === undefined || known.includes(value)
    ? []
    : [`\`${name}\` must be one of ${known.join(', ')}`];
}
