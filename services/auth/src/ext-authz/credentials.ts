import { normalizeHost } from '@tollgate/policies/match/hosts';
import type { ClaimMapping } from '@tollgate/policies/routes-file/claim-mapping';
import { isCookieOf } from '../browser-sessions/cookies.ts';
import type { BrowserSessionState } from '../browser-sessions/store.ts';
import type { Settings } from '../config/settings.ts';
import { isLowAssurance } from '../sessions/assurance.ts';
import type { Caller, Token } from './caller.ts';
import type { AuthzDenied } from './result.ts';

type Bearer = { readonly token: string } | { readonly reason: string };

/** @see RFC 6750 §2.1, RFC 9449 §7.1 */
const scheme = /^(?:bearer|dpop)(?: |$)/i;
/** @see RFC 6750 §2.1 https://www.rfc-editor.org/rfc/rfc6750#section-2.1 */
const tokenForm = /^[\w.~+/-]+=*$/;

/**
 * The token of the `authorization` headers, or undefined. Servers disagree on which of several
 * headers counts. The form of tokens that have been verified is not checked for each request.
 */
export function parseBearer(
  values: readonly string[],
  isVerified: (token: string) => boolean = () => false,
): Bearer | undefined {
  const [value = ''] = values;
  if (values.length > 1) return { reason: 'there is more than one Authorization header' };
  if (!scheme.test(value)) return undefined;
  const at = value.indexOf(' ');
  const token = at === -1 ? '' : value.slice(at).trim();
  if (!isVerified(token) && !tokenForm.test(token))
    return { reason: 'the Authorization header must have exactly one token' };
  return { token };
}

type EndSettings = Pick<Settings, 'sessionAllowLowAalMs' | 'sessionSinglePerUser'>;

/** Why a cookie is not accepted for a host. Undefined: it may be. */
export function findSessionEnd(
  state: BrowserSessionState | undefined,
  host: string,
  { settings, nowMs }: { readonly settings: EndSettings; readonly nowMs: number },
): 'session_not_found' | 'session_expired' | undefined {
  if (state === undefined || !isCookieOf(state.host, normalizeHost(host))) return 'session_not_found';
  const user = { factors: state.hasFactor ? [{ status: 'verified' }] : [] };
  const isLow = isLowAssurance(state, user, { limitMs: settings.sessionAllowLowAalMs, nowMs });
  return isLow || (settings.sessionSinglePerUser && state.hasNewer) ? 'session_expired' : undefined;
}

export function toSessionToken(
  { userId, sessionId, orgId, claims }: BrowserSessionState,
  mapping: ClaimMapping,
): Token {
  return { userId, sessionId, clientId: undefined, orgId, claims, mapping };
}

/** The answer to a browser that may get a session at the sign-in page. */
export function signInFirst(denial: AuthzDenied): Caller {
  return { ok: false, denial, canSignIn: true };
}
