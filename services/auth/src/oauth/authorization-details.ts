import { isDeepStrictEqual } from 'node:util';
import { isAppError } from '@tollgate/kit/errors';
import type { HookReply } from '../config/hook-definitions.ts';
import { type AuthorizationDetail, maxDetails } from '../config/oauth-permissions.ts';
import type { Settings } from '../config/settings.ts';
import { OAuthError } from '../errors.ts';
import type { HooksContext } from '../hooks/hooks.ts';
import { findJsonProblem, isStorable } from '../http/body-parsers.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { StoredClient } from './client-store.ts';
import { clientIdentifier } from './find-client.ts';

export interface RequestedDetails {
  /** As the hook has changed them. */
  readonly details: readonly AuthorizationDetail[];
  /** Texts of the hook for the user, by language, or in one for all. */
  readonly lines: NonNullable<HookReply['lines']>;
  /** Whether a later request for the same details needs no consent. */
  readonly isRemembered: boolean;
}

/** Access tokens carry them in a header. */
const maxChars = 4096;
/** Details of earlier requests are compared with those of each request. */
const maxConsentChars = 16_384;
/** Descriptions of errors are in URLs. */
const maxMessageChars = 255;

/** Types that every client may ask for. */
export function commonDetailsTypes({ oauthServerDetailsTypes: types }: Settings): readonly string[] {
  return types.filter(({ clients }) => clients === 'all').map(({ name }) => name);
}

/** The types of the client, or else the common ones. Self-registered ones are common. */
function allowedTypes({ metadata }: StoredClient, settings: Settings): readonly string[] {
  const { authorization_details_types: own = [] } = metadata;
  if (own.length === 0) return commonDetailsTypes(settings);
  return settings.oauthServerDetailsTypes.map(({ name }) => name).filter((name) => own.includes(name));
}

/**
 * Lets the hook check the details that a client asks for. Null: it asks for none.
 *
 * @throws OAuthError `invalid_authorization_details`, `server_error`
 * @see RFC 9396 §5 https://www.rfc-editor.org/rfc/rfc9396#section-5
 */
export async function requestDetails(
  { settings, hooks, logger }: HooksContext,
  client: StoredClient,
  request: {
    readonly text: string | undefined;
    readonly grantType: string;
    readonly scope: string;
    readonly resource: string | null;
    readonly metadata: RequestMetadata;
  },
): Promise<RequestedDetails | null> {
  const { text = '', grantType: grant_type, scope, resource, metadata } = request;
  if (text === '') return null;
  const asked = parseDetails(text);
  const allowed = allowedTypes(client, settings);
  if (!asked.every(({ type }) => allowed.includes(type)))
    throw invalidDetails('The client may not use a type of authorization_details');
  const { client_name, registration_type } = client;
  const payload = {
    authorization_details: asked,
    client: { client_id: clientIdentifier(client), client_name, registration_type },
    ...{ grant_type, scope, resource },
  };
  const reply = await hooks.call('AUTHORIZATION_DETAILS', payload, metadata).catch(rethrow);
  const { authorization_details: details = asked, lines = [], remember = true } = reply;
  const isUsable =
    details.every(({ type }) => allowed.includes(type)) && JSON.stringify(details).length <= maxChars;
  if (isUsable && isStorable([details, lines])) return { details, lines, isRemembered: remember };
  logger.error(
    { hook: 'AUTHORIZATION_DETAILS' },
    'hook replied authorization details that cannot be granted',
  );
  throw unchecked();
}

/**
 * The details of an access token: all that were granted, or those of the token request, which must
 * be among them.
 *
 * @throws OAuthError `invalid_authorization_details`
 * @see RFC 9396 §6.1 https://www.rfc-editor.org/rfc/rfc9396#section-6.1
 */
export function narrowDetails(
  text: string | undefined,
  granted: readonly AuthorizationDetail[],
): readonly AuthorizationDetail[] {
  if (!text) return granted;
  const details = parseDetails(text);
  if (coversDetails(granted, details)) return details;
  throw invalidDetails('authorization_details must be granted ones, without changes');
}

/** Whether all details are among the granted ones. */
export function coversDetails(
  granted: readonly AuthorizationDetail[],
  details: readonly AuthorizationDetail[],
): boolean {
  return details.every((one) => granted.some((other) => isDeepStrictEqual(one, other)));
}

/** Adds details to those of a consent, which are replaced if they become too many. */
export function extendDetails(
  earlier: readonly AuthorizationDetail[],
  requested: RequestedDetails | null,
): readonly AuthorizationDetail[] {
  if (!requested?.isRemembered) return earlier;
  const { details } = requested;
  const all = [...earlier, ...details.filter((one) => !coversDetails(earlier, [one]))];
  return JSON.stringify(all).length <= maxConsentChars ? all : details;
}

/** The types of requested details, each once. */
export function detailTypes(requested: RequestedDetails | null): readonly string[] {
  return [...new Set(requested?.details.map(({ type }) => type))];
}

/** The member of a token, response or payload. Absent if there are none. */
export function detailsMember(details: readonly AuthorizationDetail[]): {
  readonly authorization_details?: readonly AuthorizationDetail[];
} {
  return details.length === 0 ? {} : { authorization_details: details };
}

function parseDetails(text: string): readonly AuthorizationDetail[] {
  if (text.length > maxChars) throw invalidDetails(`authorization_details exceeds ${maxChars} characters`);
  const details = parseJson(text);
  if (
    Array.isArray(details) &&
    details.length > 0 &&
    details.length <= maxDetails &&
    details.every(isDetail) &&
    isStorable(details)
  )
    return details;
  throw invalidDetails(
    `authorization_details must be a JSON array of 1 to ${maxDetails} objects with a type`,
  );
}

function parseJson(text: string): unknown {
  if (findJsonProblem(text) !== undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isDetail(value: unknown): value is AuthorizationDetail {
  const type: unknown = Object.getOwnPropertyDescriptor(Object(value), 'type')?.value;
  return typeof value === 'object' && !Array.isArray(value) && typeof type === 'string';
}

/** The hook has been logged. */
function rethrow(error: unknown): never {
  // A decision of the hook.
  if (isAppError(error) && error.code === 'unknown') throw invalidDetails(error.message);
  throw unchecked();
}

function unchecked(): OAuthError {
  return new OAuthError('server_error', 'authorization_details cannot be checked', 500);
}

/** @see RFC 6749 §4.1.2.1: characters of `error_description` */
function invalidDetails(message: string): OAuthError {
  const shown = message.replaceAll(/[^ !#-[\]-~]/g, '?').slice(0, maxMessageChars);
  return new OAuthError('invalid_authorization_details', shown);
}
