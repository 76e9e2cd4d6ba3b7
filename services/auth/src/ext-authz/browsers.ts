import { FailureLog } from '@tollgate/kit/logger';
import { normalizeHost } from '@tollgate/policies/match/hosts';
import type { RouteHit } from '@tollgate/policies/match/route';
import {
  createAccessCookie,
  createSignInSecret,
  digestOf,
  isCookieOf,
  readAccessCookie,
  readSignInSecret,
  removeAccessCookie,
  setSignInCookie,
  withoutOwnCookies,
} from '../browser-sessions/cookies.ts';
import { callbackPath } from '../browser-sessions/issue.ts';
import { openReturnAddress, sealReturnAddress, signInLifeMs } from '../browser-sessions/return-address.ts';
import type { BrowserSessionStore } from '../browser-sessions/store.ts';
import { pageUrl } from '../http/page-url.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { renderFailedSignIn, renderSignOut } from '../pages/application-pages.ts';
import type { SessionsContext } from '../sessions/context.ts';
import { signOut } from '../sessions/sessions.ts';
import { mayBeCrossSite, requestOrigin } from './browser-request.ts';
import { ClientAddresses, unknownAddress } from './client-address.ts';
import { askToSignOut, forbidden, redirectBrowser, signedOut, signInFailed } from './denials.ts';
import type { AuthzRequest } from './request.ts';
import type { AuthzDenied, HeaderChanges } from './result.ts';

export type BrowsersContext = SessionsContext & {
  readonly store: { readonly browserSessions: Pick<BrowserSessionStore, 'exchange' | 'findMany'> };
};

/** Paths of an application's host that this server answers itself. */
const ownPaths = '/.tollgate/';
const signOutPath = `${ownPaths}sign-out`;

/** A longer URL would not fit into the links of mails and identity providers. */
const maxUrlChars = 1_000;

/** Signs browsers in and out at hosts of applications. */
export class Browsers {
  readonly #context: BrowsersContext;
  readonly #addresses: ClientAddresses;
  readonly #refusals: FailureLog;

  constructor(context: BrowsersContext) {
    this.#context = context;
    this.#addresses = new ClientAddresses(context.settings.trustedProxies);
    this.#refusals = new FailureLog({
      ...{ logger: context.logger, level: 'warn', message: 'browser cannot be sent to the sign-in page' },
    });
  }

  /** Answers a request for a path of this server. Undefined for other requests. */
  answer(request: AuthzRequest): AuthzDenied | Promise<AuthzDenied> | undefined {
    if (!request.path.startsWith(ownPaths)) return undefined;
    const { method, headers } = request;
    const { settings } = this.#context;
    const [path, query = ''] = request.path.split('?', 2);
    if (path === callbackPath && method === 'GET') return this.#finish(request, new URLSearchParams(query));
    if (path !== signOutPath) return undefined;
    if (method === 'GET') return askToSignOut(renderSignOut(signOutPath, headers, settings));
    if (method !== 'POST') return undefined;
    return mayBeCrossSite(request, settings) ? forbidden('cross_site_request') : this.#signOut(request);
  }

  /**
   * Sends a browser to the sign-in page, or for `assurance` to that of the second factor. Undefined
   * if it could not return.
   */
  begin(request: AuthzRequest, hits: readonly RouteHit[], assurance?: 'aal2'): AuthzDenied | undefined {
    const { settings, random, nowMs } = this.#context;
    const origin = requestOrigin(request.host, settings);
    if (origin === undefined || !isNamed(request.host, hits)) {
      const reason = origin === undefined ? 'its host needs https' : 'its route is for every host';
      this.#refusals.log(new Error(reason), { host: request.host });
      return undefined;
    }
    const secret = readSignInSecret(request.headers.cookie ?? '', settings) ?? createSignInSecret(random);
    const address = { url: returnUrl(origin, request.path), binding: digestOf(secret), assurance };
    const sealed = sealReturnAddress(address, { settings, nowMs: nowMs() });
    const location = `${pageUrl(settings, 'return')}?return_to=${sealed}`;
    return redirectBrowser(location, setSignInCookie(secret, signInLifeMs, settings));
  }

  /** Exchanges the code of the sign-in page for a cookie. */
  async #finish(request: AuthzRequest, query: URLSearchParams): Promise<AuthzDenied> {
    const { settings, store, random, nowMs } = this.#context;
    const { headers } = request;
    const now = nowMs();
    const host = normalizeHost(request.host);
    const address = openReturnAddress(query.get('return_to') ?? '', { settings, nowMs: now });
    const isHere = address !== undefined && normalizeHost(new URL(address.url).host) === host;
    const secret = readSignInSecret(headers.cookie ?? '', settings);
    const cookie = createAccessCookie(random, host, settings);
    const isValid = await store.browserSessions.exchange({
      ...{ code: digestOf(query.get('code') ?? ''), cookie: cookie.digest, scope: cookie.scope },
      // Without a secret, or at another host, the code is spent.
      ...{ host: isHere ? host : '', binding: secret === undefined ? '' : digestOf(secret) },
      at: new Date(now),
    });
    if (isHere && isValid) return redirectBrowser(address.url, cookie.header, 'signed_in');
    const url = isHere ? address.url : '/';
    return signInFailed(renderFailedSignIn(url, headers, settings));
  }

  /** Ends the session of a browser, at all applications and at the pages. */
  async #signOut(request: AuthzRequest): Promise<AuthzDenied> {
    const { store, settings } = this.#context;
    const host = normalizeHost(request.host);
    const cookie = readAccessCookie(request.headers.cookie ?? '', settings);
    const [state] =
      cookie === undefined
        ? []
        : await store.browserSessions.findMany([digestOf(cookie)], settings.sessionTags);
    if (state !== undefined && isCookieOf(state.host, host)) {
      const { userId, sessionId } = state;
      const found = await store.sessions.findWithUser(userId, sessionId);
      if (found?.session !== undefined)
        await signOut(
          this.#context,
          { user: found.user, sessionId, scope: 'with_clients' },
          this.#metadata(request),
        );
    }
    return signedOut('/', removeAccessCookie(host, settings));
  }

  #metadata(request: AuthzRequest): RequestMetadata {
    const address = this.#addresses.findAddress(request);
    return {
      nowMs: this.#context.nowMs(),
      clientAddress: address === unknownAddress ? '' : address,
      userAgent: request.headers['user-agent'] ?? '',
      requestId: this.#context.random.uuid(),
    };
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
