import type { Json, JsonObject } from '@tollgate/kit/json';
import type { AccessToken, JsonObject as Fields } from '@tollgate/oauth2-client';

/**
 * An external identity provider: its endpoints, and how its response describes a user. Adding one
 * takes a file in `vendors`, a line in the registry and a payload in its test.
 */
export interface Provider {
  /** Name for users. Default: the value of the parameter `provider`, with a capital letter. */
  readonly label?: string;
  readonly endpoints: Endpoints;
  readonly scopes: readonly string[];
  /** Whether the provider supports PKCE with S256. */
  readonly pkce?: boolean;
  /** Whether GoTrue uses PKCE with the provider as well. Default false. */
  readonly gotrueUsesPkce?: boolean;
  /** Default `client_secret_post`. Metadata that do not list it override it. */
  readonly clientAuth?: 'client_secret_basic' | 'client_secret_post';
  /** Further parameters of the authorization request. */
  readonly authorizationParameters?: Readonly<Record<string, string>>;
  /**
   * How the provider signs a user in again who has a session there: by `prompt` and `max_age` of
   * OpenID Connect, or by these parameters. Undefined: it cannot.
   */
  readonly signInAgain?: 'openid' | Readonly<Record<string, string>>;
  /** Names under which clients give parameters of the provider. */
  readonly parameterNames?: Readonly<Record<string, string>>;
  /** How the ID token of the token response is validated. Undefined: there is none. */
  readonly idToken?: IdTokenRules;
  /** Applies to ID tokens that clients present, if the sign-in does not use any. */
  readonly idTokenGrant?: IdTokenRules;
  /** @throws ProviderError if the response does not identify a user. */
  readonly readProfile: (session: ProviderSession) => Profile | Promise<Profile>;
}

/**
 * URLs of the provider, or the issuer whose metadata contain them. `EXTERNAL_<PROVIDER>_URL`
 * replaces their origin.
 */
export type Endpoints =
  | { readonly authorization: string; readonly token: string }
  | { readonly issuer: string }
  /** Needed when the URLs depend on the setting in another way. */
  | ((baseUrl: string) => { readonly authorization: string; readonly token: string });

/** Whose ID tokens are accepted. Not needed with the metadata of an issuer. */
export interface IdTokenRules {
  /** The URL of the keys. */
  readonly keys: (baseUrl: string) => string;
  /** The accepted issuers of an ID token with these claims, which are not verified yet. */
  readonly issuers: (claims: Readonly<Record<string, unknown>>, baseUrl: string) => readonly string[];
}

/** Data of a user after the token request. */
export interface ProviderSession {
  readonly token: AccessToken<Fields, 'preserve'>;
  /** Claims of a validated ID token; empty without one. */
  readonly claims: Readonly<Record<string, unknown>>;
  /** The parameters of the callback. */
  readonly callback: URLSearchParams;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Value of `EXTERNAL_<PROVIDER>_URL`; empty for the provider's own. */
  readonly baseUrl: string;
  /** The URL of the provider's user info endpoint, if its metadata contain one. */
  readonly userinfoEndpoint: string | undefined;
  /** Sends an API request with the access token and returns the JSON of its response. */
  get(url: string, options?: GetOptions): Promise<unknown>;
}

export interface GetOptions {
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ProviderEmail {
  readonly email: string;
  readonly verified: boolean;
  readonly primary: boolean;
}

/** A user as the provider describes them. */
export interface Profile {
  /** Id of the user at the provider. */
  readonly id: string;
  readonly emails: readonly ProviderEmail[];
  /** Stored as `identity_data`, and merged into `user_metadata`. */
  readonly data: JsonObject;
}

/** A provider's response that cannot be used. Its message contains no values of the response. */
export class ProviderError extends Error {
  override readonly name = 'ProviderError';
}

interface ProfileFields {
  readonly issuer: string;
  readonly id: unknown;
  readonly name?: unknown;
  readonly userName?: unknown;
  readonly nickname?: unknown;
  readonly picture?: unknown;
  readonly slug?: unknown;
  /** A single email, which is the primary one. */
  readonly email?: unknown;
  readonly isVerified?: boolean;
  /** Instead of `email`. */
  readonly emails?: readonly ProviderEmail[];
  readonly customClaims?: JsonObject;
}

/** Makes a profile with the names of GoTrue's identity data. Empty values are omitted. */
export function toProfile(fields: ProfileFields): Profile {
  const id = toId(fields.id);
  const name = toText(fields.name);
  const picture = toText(fields.picture);
  const userName = toText(fields.userName);
  const email = toText(fields.email);
  const single = email === '' ? [] : [{ email, verified: fields.isVerified === true, primary: true }];
  const texts = {
    iss: fields.issuer,
    sub: id,
    provider_id: id,
    name,
    full_name: name,
    user_name: userName,
    preferred_username: userName,
    nickname: toText(fields.nickname),
    slug: toText(fields.slug),
    picture,
    avatar_url: picture,
  };
  const present = Object.entries<Json>(texts).filter(([, value]) => value !== '');
  const { customClaims = {} } = fields;
  return {
    id,
    emails: fields.emails ?? single,
    data: {
      ...Object.fromEntries(present),
      ...(Object.keys(customClaims).length > 0 && { custom_claims: customClaims }),
      phone_verified: false,
    },
  };
}

/** The profile of an ID token with the standard claims. */
export function profileOfClaims(claims: Readonly<Record<string, unknown>>): Profile {
  return toProfile({
    issuer: toText(claims.iss),
    id: claims.sub,
    name: claims.name,
    nickname: claims.nickname,
    picture: claims.picture,
    email: claims.email,
    isVerified: String(claims.email_verified) === 'true',
  });
}

/** Providers have numbers and texts as ids. */
function toId(value: unknown): string {
  const id = typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : toText(value);
  if (id === '') throw new ProviderError('the response has no id of a user');
  return id;
}

/** Longer values, such as inline images, do not fit into access tokens. */
const maxTextChars = 1024;

/** A text that can be stored; empty for anything else. */
export function toText(value: unknown): string {
  if (typeof value !== 'string' || value.length > maxTextChars) return '';
  return value.isWellFormed() && !value.includes('\0') ? value : '';
}

/** Replaces the origin of a provider's URL, and keeps its path. */
export function rebase(url: string, baseUrl: string): string {
  if (baseUrl === '') return url;
  const { pathname, search } = new URL(url);
  return `${withoutSlash(baseUrl)}${pathname}${search}`;
}

export function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '');
}

/** How this server is registered with a provider. */
export interface ProviderCredentials {
  /** The first one is used for sign-in; ID tokens for all of them are accepted. */
  readonly clientIds: readonly string[];
  /** Empty for a public client. */
  readonly secret: string;
  /** The URL of `/callback` as registered with the provider. */
  readonly redirectUri: string;
  /** Base URL instead of the provider's own; empty for that. */
  readonly url: string;
  /** Whether users without an email may sign in. */
  readonly emailOptional: boolean;
  /** Whether presented ID tokens may have any nonce. */
  readonly skipNonceCheck: boolean;
}

/** Tokens of the provider that a user has signed in at. They are not stored. */
export interface ProviderTokens {
  readonly accessToken: string;
  /** Empty if the provider issued none. */
  readonly refreshToken: string;
}
