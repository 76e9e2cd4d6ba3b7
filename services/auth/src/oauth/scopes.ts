import { isFirstPartyClient } from '@tollgate/admin-clients/first-party';
import type { Settings } from '../config/settings.ts';
import { OAuthError } from '../errors.ts';

/** @see RFC 6749 §3.3 https://www.rfc-editor.org/rfc/rfc6749#section-3.3 */
const scopeForm = /^[!#-[\]-~]{1,128}$/;
/** A token with all of them fits into a header. */
const maxRequestedChars = 4096;
/** The column of consents, which also has scopes of earlier requests. */
const maxConsentChars = 1024;

export function isScope(text: string): boolean {
  return scopeForm.test(text);
}

/**
 * The scopes of a token: those of the request, or else all that the client may have.
 *
 * @throws OAuthError `invalid_scope`
 */
export function grantScopes(requested: string | undefined, allowed: readonly string[]): readonly string[] {
  if (requested === undefined || requested === '') return allowed;
  if (requested.length > maxRequestedChars) throw new OAuthError('invalid_scope', 'scope is too long');
  const names = [...new Set(splitScope(requested))];
  const refused = names.find((name) => !allowed.includes(name));
  if (refused === undefined) return names;
  const shown = isScope(refused) ? `: ${refused}` : '';
  throw new OAuthError('invalid_scope', `The client may not have this scope${shown}`);
}

/** Scopes of claims about users. @see OpenID Connect Core §5.4, §11 */
export const userScopes = ['openid', 'profile', 'email', 'phone', 'offline_access'] as const;

type ScopeSettings = Pick<Settings, 'oauthServerDefaultScope' | 'oauthServerScopes'>;

/** A client, as far as its scopes go. */
interface ScopedClient {
  readonly id: string;
  /** Own scopes, which an administrator has given it. */
  readonly scopes: readonly string[];
  readonly metadata: { readonly scope?: string };
}

/** Scopes that every client may ask users for. */
export function commonScopes({ oauthServerScopes: own }: ScopeSettings): readonly string[] {
  return [...userScopes, ...own.filter(({ clients }) => clients === 'all').map(({ name }) => name)];
}

/**
 * The scopes that a client may ask users for: the common ones, and its own. If it has registered
 * scopes, only these.
 */
function allowedUserScopes({ scopes, metadata }: ScopedClient, settings: ScopeSettings): readonly string[] {
  const all = [...commonScopes(settings), ...scopes];
  const registered = splitScope(metadata.scope ?? '');
  return registered.length === 0 ? all : all.filter((scope) => registered.includes(scope));
}

/**
 * The scopes that a client asks a user for, or those of the settings. Programs of Tollgate get all
 * of theirs: which ones there are depends on the version of the server.
 *
 * @throws OAuthError `invalid_scope`
 */
export function grantUserScopes(
  requested: string | undefined,
  client: ScopedClient,
  settings: ScopeSettings,
): readonly string[] {
  const allowed = allowedUserScopes(client, settings);
  const defaults = isFirstPartyClient(client.id)
    ? allowed
    : splitScope(settings.oauthServerDefaultScope).filter((scope) => allowed.includes(scope));
  const names = requested === undefined ? defaults : grantScopes(requested, allowed);
  if (names.length === 0) throw new OAuthError('invalid_scope', 'scope is empty');
  if (names.join(' ').length > maxConsentChars) throw new OAuthError('invalid_scope', 'scope is too long');
  return names;
}

export function splitScope(scope: string): readonly string[] {
  return scope.split(' ').filter((name) => name !== '');
}
