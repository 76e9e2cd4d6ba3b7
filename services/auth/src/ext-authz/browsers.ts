import { FailureLog } from '@tollgate/kit/logger';
import { normalizeHost } from '@tollgate/policies/match/hosts';
import type { RouteHit } from '@tollgate/policies/match/route';
import {
  createAccessCookie,
  createSignInSecret,
  digestOf,
  readSignInSecret,
  setSignInCookie,
  withoutOwnCookies,
} from '../browser-sessions/cookies.ts';
import { callbackPath } from '../browser-sessions/issue.ts';
import { openReturnAddress, sealReturnAddress, signInLifeMs } from '../browser-sessions/return-address.ts';
import type { BrowserSessionStore } from '../browser-sessions/store.ts';
import type { Settings } from '../config/settings.ts';
import type { BaseContext } from '../context.ts';
import { pageUrl } from '../http/page-url.ts';
import { requestOrigin } from './browser-request.ts';
import type { AuthzRequest } from './decision.ts';
import { type AuthzDenied, signInFailed, signInRequired } from './denials.ts';
import type { HeaderChanges } from './identity-headers.ts';

export type BrowsersContext = Pick<BaseContext, 'random' | 'logger' | 'nowMs'> & {
  readonly settings: Settings;
  readonly store: { readonly browserSessions: Pick<BrowserSessionStore, 'exchange'> };
};

/** Paths of an application's host that this server answers itself. */
const ownPaths = '/.tollgate/';

/** A longer URL would not fit into the links of mails and identity providers. */
const maxUrlChars = 1_000;

/** Signs browsers in at hosts of applications. */
export class Browsers {
  readonly #context: BrowsersContext;
  readonly #refusals: FailureLog;

  constructor(context: BrowsersContext) {
    this.#context = context;
    this.#refusals = new FailureLog({
      ...{ logger: context.logger, level: 'warn', message: 'browser cannot be sent to the sign-in page' },
    });
  }

  /** Answers a request for a path of this server. Undefined for other requests. */
  answer(request: AuthzRequest): Promise<AuthzDenied> | undefined {
    if (!request.path.startsWith(ownPaths)) return undefined;
    const [path, query = ''] = request.path.split('?', 2);
    return path === callbackPath && request.method === 'GET'
      ? this.#finish(request, new URLSearchParams(query))
      : undefined;
  }

  /** Sends a browser to the sign-in page. Undefined if it could not return. */
  begin(request: AuthzRequest, hits: readonly RouteHit[]): AuthzDenied | undefined {
    const { settings, random, nowMs } = this.#context;
    const origin = requestOrigin(request.host, settings);
    if (origin === undefined || !isNamed(request.host, hits)) {
      const reason = origin === undefined ? 'its host needs https' : 'its route is for every host';
      this.#refusals.log(new Error(reason), { host: request.host });
      return undefined;
    }
    const secret = readSignInSecret(request.headers.cookie ?? '', settings) ?? createSignInSecret(random);
    const address = { url: returnUrl(origin, request.path), binding: digestOf(secret) };
    const sealed = sealReturnAddress(address, { settings, nowMs: nowMs() });
    const location = `${pageUrl(settings, 'return')}?return_to=${sealed}`;
    return signInRequired(location, setSignInCookie(secret, signInLifeMs, settings));
  }

  /** Exchanges the code of the sign-in page for a cookie. */
  async #finish(request: AuthzRequest, query: URLSearchParams): Promise<AuthzDenied> {
    const { settings, store, random, nowMs } = this.#context;
    const now = nowMs();
    const host = normalizeHost(request.host);
    const address = openReturnAddress(query.get('return_to') ?? '', { settings, nowMs: now });
    if (address === undefined || normalizeHost(new URL(address.url).host) !== host) return signInFailed('/');
    const secret = readSignInSecret(request.headers.cookie ?? '', settings) ?? '';
    const cookie = createAccessCookie(random, settings);
    const isValid = await store.browserSessions.exchange({
      ...{ code: digestOf(query.get('code') ?? ''), cookie: cookie.digest },
      ...{ host, binding: digestOf(secret), at: new Date(now) },
    });
    const { url } = address;
    return isValid ? signInRequired(url, cookie.header) : signInFailed(url);
  }
}

/** Whether the host is one that an operator has named: anyone can send another one. */
function isNamed(host: string, hits: readonly RouteHit[]): boolean {
  const name = normalizeHost(host);
  const isOf = (pattern: string) =>
    pattern === name || (pattern.startsWith('*.') && name.endsWith(pattern.slice(1)));
  return hits.every(({ rule }) => rule.hosts.some(isOf));
}

/** The URL of the request, or where it was too long, that of its path. */
function returnUrl(origin: string, path: string): string {
  const candidates = [path, path.split('?', 1)[0] ?? '', '/'];
  const urls = candidates.map((candidate) => URL.parse(`${origin}${candidate}`)?.href ?? '');
  return urls.find((url) => url.startsWith(`${origin}/`) && url.length <= maxUrlChars) ?? `${origin}/`;
}

/** Keeps the cookies of this server from upstreams. */
export function stripCookies(headers: HeaderChanges, { cookie }: AuthzRequest['headers']): HeaderChanges {
  const others = cookie === undefined ? undefined : withoutOwnCookies(cookie);
  if (others === undefined) return headers;
  return others === ''
    ? { set: headers.set, remove: [...headers.remove, 'cookie'] }
    : { set: { ...headers.set, cookie: others }, remove: headers.remove };
}
