import type { Json, JsonObject } from '@tollgate/kit/json';
import { guardedFetch } from '../outbound/fetch.ts';
import { toObject } from '../outbound/post-form.ts';
import {
  type Endpoints,
  type Provider,
  type ProviderCredentials,
  type ProviderSession,
  toProfile,
} from './provider.ts';

/**
 * Settings of a provider that is not built in, with the names of GoTrue's admin API: the issuer of
 * OpenID Connect, or the endpoints of OAuth 2.0.
 */
export interface CustomProvider {
  /** The name lacks the prefix `custom:`. */
  readonly name: string;
  readonly clientIds: readonly string[];
  readonly clientSecret: string;
  readonly scopes: readonly string[];
  readonly pkce: boolean;
  readonly emailOptional: boolean;
  readonly skipNonceCheck: boolean;
  /** Claim of the provider, or a value that is not a text, by the name of a claim here. */
  readonly attributeMapping: JsonObject;
  /** Claims of the provider that are copied to `custom_claims`. */
  readonly claimsAllowlist: readonly string[];
  readonly authorizationParameters: Readonly<Record<string, string>>;
  readonly issuer: string;
  /** URL of the issuer's metadata; empty for the standard one. */
  readonly discoveryUrl: string;
  readonly authorizationUrl: string;
  readonly tokenUrl: string;
  readonly userinfoUrl: string;
}

export const noCustomProvider: CustomProvider = {
  name: '',
  clientIds: [],
  clientSecret: '',
  scopes: [],
  pkce: true,
  emailOptional: false,
  skipNonceCheck: false,
  attributeMapping: {},
  claimsAllowlist: [],
  authorizationParameters: {},
  issuer: '',
  discoveryUrl: '',
  authorizationUrl: '',
  tokenUrl: '',
  userinfoUrl: '',
};

const maxProviders = 100;
const nameForm = /^[a-z0-9][a-z0-9-]{0,48}$/;
const httpsForm =
  /^https:\/\/[^/?#@\s]+[^#\s]*$|^http:\/\/(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?(?:[/?][^#\s]*)?$/;

/** Parses the setting, a JSON object by name. Undefined if a part of it is invalid. */
export function parseCustomProviders(json: string): readonly CustomProvider[] | undefined {
  if (json.trim() === '') return [];
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch {
    return undefined;
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return undefined;
  const found = Object.entries(parsed).map(([name, value]) => parseProvider(name, toObject(value)));
  return found.length <= maxProviders && found.every((provider) => provider !== undefined)
    ? found
    : undefined;
}

function parseProvider(name: string, fields: Readonly<Record<string, unknown>>): CustomProvider | undefined {
  const text = (key: string): string => (typeof fields[key] === 'string' ? fields[key] : '');
  const clientIds = text('client_id')
    .split(',')
    .map((id) => id.trim())
    .filter((id) => id !== '');
  const provider = {
    name,
    clientIds,
    clientSecret: text('client_secret'),
    scopes: toTexts(fields.scopes ?? (text('issuer') === '' ? [] : ['openid', 'email', 'profile'])),
    pkce: fields.pkce_enabled !== false,
    emailOptional: fields.email_optional === true,
    skipNonceCheck: fields.skip_nonce_check === true,
    attributeMapping: toTextRecord(fields.attribute_mapping),
    claimsAllowlist: toTexts(fields.custom_claims_allowlist),
    authorizationParameters: toTextRecord(fields.authorization_params),
    issuer: text('issuer'),
    discoveryUrl: '',
    authorizationUrl: text('authorization_url'),
    tokenUrl: text('token_url'),
    userinfoUrl: text('userinfo_url'),
  };
  const { issuer, authorizationUrl, tokenUrl, userinfoUrl } = provider;
  const urls = issuer === '' ? [authorizationUrl, tokenUrl, userinfoUrl] : [issuer];
  const isValid = nameForm.test(name) && clientIds.length > 0 && urls.every((url) => httpsForm.test(url));
  return isValid ? provider : undefined;
}

function toTexts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

export function toTextRecord(value: unknown): Readonly<Record<string, string>> {
  const entries = Object.entries(toObject(value));
  return Object.fromEntries(
    entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

export const customPrefix = 'custom:';

/** How to connect to a custom provider. */
export function connectCustom(
  custom: CustomProvider,
  redirectUri: string,
): { readonly provider: Provider; readonly credentials: ProviderCredentials } {
  return {
    provider: {
      endpoints: getEndpoints(custom),
      scopes: custom.scopes,
      pkce: custom.pkce,
      gotrueUsesPkce: custom.pkce,
      clientAuth: 'client_secret_post',
      authorizationParameters: custom.authorizationParameters,
      ...(custom.issuer !== '' && { signInAgain: 'openid' }),
      readProfile: (session) => readProfile(custom, session),
    },
    credentials: {
      clientIds: custom.clientIds,
      secret: custom.clientSecret,
      redirectUri,
      url: '',
      emailOptional: custom.emailOptional,
      skipNonceCheck: custom.skipNonceCheck,
    },
  };
}

/** Loads the metadata of an issuer from `discoveryUrl` unless it is empty. */
export function discoveryFetch(discoveryUrl: string, privateHosts: readonly string[]) {
  const fetch = guardedFetch(privateHosts);
  return (url: string, init: RequestInit) => fetch(discoveryUrl || url, init);
}

function getEndpoints({ issuer, authorizationUrl, tokenUrl }: CustomProvider): Endpoints {
  return issuer === '' ? { authorization: authorizationUrl, token: tokenUrl } : { issuer };
}

/** Claims of the ID token, completed by those of the user info endpoint for the same subject. */
async function readProfile(custom: CustomProvider, { claims, userinfoEndpoint, get }: ProviderSession) {
  const url = custom.userinfoUrl || userinfoEndpoint;
  const isComplete = typeof claims.email === 'string' && typeof claims.name === 'string';
  const info = url === undefined || isComplete ? {} : toObject(await get(url));
  const isSameUser = claims.sub === undefined || info.sub === claims.sub;
  const user = { ...(isSameUser && info), ...claims };
  const claim = (name: string): unknown => mapped(user, custom.attributeMapping[name] ?? name);
  return toProfile({
    issuer: custom.issuer || new URL(custom.tokenUrl).origin,
    id: claim('sub') ?? user.id,
    name: claim('name'),
    userName: claim('preferred_username'),
    nickname: claim('nickname'),
    picture: claim('picture'),
    email: claim('email'),
    isVerified: claim('email_verified') === true || claim('email_verified') === 'true',
    customClaims: mappedClaims(custom, user),
  });
}

const standardClaims: readonly string[] = [
  ...['sub', 'name', 'preferred_username', 'nickname', 'picture', 'email', 'email_verified'],
];

/** A text names a claim; anything else is the value. */
function mapped(user: Readonly<Record<string, unknown>>, source: Json): unknown {
  return typeof source === 'string' ? user[source] : source;
}

/** Claims that the mapping names besides the standard ones, and those of the allow list. */
function mappedClaims(
  { attributeMapping, claimsAllowlist }: CustomProvider,
  user: Readonly<Record<string, unknown>>,
): JsonObject {
  const others = Object.entries(attributeMapping).filter(([name]) => !standardClaims.includes(name));
  const found = others.flatMap(([name, source]) => {
    const value = mapped(user, source);
    return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
      ? [[name, value] as const]
      : [];
  });
  const allowed = claimsAllowlist.filter((name) => Object.hasOwn(user, name));
  // Parsed boundary: claims are JSON.
  return {
    ...Object.fromEntries(allowed.map((name) => [name, user[name] as Json])),
    ...Object.fromEntries(found),
  };
}
