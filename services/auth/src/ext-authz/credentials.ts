import { normalizeHost } from '@tollgate/policies/match/hosts';
import type { BrowserSessionState } from '../browser-sessions/store.ts';
import type { ClaimMapping } from './claim-mapping.ts';
import type { AuthzDenied } from './denials.ts';
import type { Caller, Token } from './identity.ts';
import type { Credentials } from './key-identifier.ts';

type Bearer = { readonly token: string } | { readonly reason: string };

const scheme = /^bearer(?: |$)/i;
/** @see RFC 6750 §2.1 https://www.rfc-editor.org/rfc/rfc6750#section-2.1 */
const tokenForm = /^[\w.~+/-]+=*$/;

/**
 * The token of the `authorization` headers, or undefined. Servers disagree on which of several
 * headers counts.
 */
export function parseBearer(values: readonly string[]): Bearer | undefined {
  const [value = ''] = values;
  if (values.length > 1) return { reason: 'there is more than one Authorization header' };
  if (!scheme.test(value)) return undefined;
  const token = value.slice('bearer'.length).trim();
  if (!tokenForm.test(token)) return { reason: 'the Authorization header must have exactly one token' };
  return { token };
}

/** Undefined without a session, and for that of another host. */
export function toSessionToken(
  state: BrowserSessionState | undefined,
  { host }: Credentials,
  mapping: ClaimMapping,
): Token | undefined {
  if (state === undefined || state.host !== normalizeHost(host)) return undefined;
  const { userId, sessionId, orgId, claims } = state;
  return { userId, sessionId, clientId: undefined, orgId, claims, mapping };
}

export function signInFirst(denial: AuthzDenied): Caller {
  return { ok: false, denial, canSignIn: true };
}

/** A user who was banned cannot sign in. */
export function signInAgain(caller: Caller): Caller {
  return caller.ok || caller.denial.httpStatus !== 401 ? caller : signInFirst(caller.denial);
}
