import type { JsonObject } from '@tollgate/kit/json';
import { parseInstant } from '@tollgate/kit/time';
import { parseLimitOverride } from '@tollgate/policies/decide/limit-override';
import { errors, shorten } from '../errors.ts';
import { adminScopes } from '../sessions/admin-scopes.ts';
import type { ApiKey, KeyLimit } from './api-key.ts';
import { isNetwork } from './networks.ts';

/**
 * A key as sent by an administrator. An absent member is not changed, or has its default. An empty
 * text, list or object removes the value.
 */
export interface KeyInput {
  readonly name?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly admin_scopes?: readonly string[] | undefined;
  readonly role?: string | undefined;
  readonly plan?: string | undefined;
  readonly limit?: JsonObject | undefined;
  readonly expires_at?: string | undefined;
  readonly allowed_networks?: readonly string[] | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly disabled?: boolean | undefined;
}

/** The columns that a {@link KeyInput} sets. */
export type KeyValues = Pick<
  ApiKey,
  | 'name'
  | 'scopes'
  | 'admin_scopes'
  | 'role'
  | 'plan'
  | 'rate_limit'
  | 'expires_at'
  | 'allowed_networks'
  | 'metadata'
  | 'disabled'
>;

export const newKeyValues: KeyValues = {
  name: '',
  scopes: [],
  admin_scopes: [],
  role: null,
  plan: null,
  rate_limit: null,
  expires_at: null,
  allowed_networks: [],
  metadata: {},
  disabled: false,
};

const maxNameChars = 100;
/** Sent to upstreams with each request, as roles and plans are. */
const maxTextChars = 255;
/** All scopes are one header. */
const maxScopeChars = 1024;
/** Each check compares the address with them. */
const maxNetworks = 50;
const maxMetadataBytes = 2048;
/** A rotation adds the lifetime to its own time: years have four digits in JSON and PostgreSQL. */
export const maxLifeMs = 100 * 365 * 24 * 3_600_000;
/** @see RFC 6749 §3.3 */
const scopeForm = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/**
 * Applies what was sent to the values of a key.
 *
 * @throws AppError `validation_failed`
 */
export function readKeyInput(input: KeyInput, before: KeyValues, nowMs: number): KeyValues {
  const { role, plan, limit, expires_at: expiresAt } = input;
  const values: KeyValues = {
    name: input.name?.trim() ?? before.name,
    scopes: unique(input.scopes) ?? before.scopes,
    admin_scopes: unique(input.admin_scopes) ?? before.admin_scopes,
    role: role === undefined ? before.role : role || null,
    plan: plan === undefined ? before.plan : plan || null,
    rate_limit: limit === undefined ? before.rate_limit : readLimit(limit),
    expires_at: expiresAt === undefined ? before.expires_at : readExpiry(expiresAt, nowMs),
    allowed_networks: unique(input.allowed_networks) ?? before.allowed_networks,
    metadata: input.metadata ?? before.metadata,
    disabled: input.disabled ?? before.disabled,
  };
  const problem = findProblem(values);
  if (problem !== undefined) throw errors.validation_failed({ message: problem });
  return values;
}

function unique(items: readonly string[] | undefined): readonly string[] | undefined {
  return items && [...new Set(items)];
}

function findProblem(values: KeyValues): string | undefined {
  const { name, scopes, admin_scopes: rights, role, plan, allowed_networks: networks, metadata } = values;
  if (name === '' || name.length > maxNameChars) return `name must have 1 to ${maxNameChars} characters`;
  const badScope = scopes.find((scope) => !scopeForm.test(scope));
  if (badScope !== undefined)
    return `scopes must be visible ASCII without quotes and backslashes: ${JSON.stringify(shorten(badScope))}`;
  if (scopes.join(' ').length > maxScopeChars)
    return `scopes have more than ${maxScopeChars} characters together`;
  const known: readonly string[] = adminScopes;
  const unknown = rights.find((right) => !known.includes(right));
  if (unknown !== undefined)
    return `admin_scopes: ${JSON.stringify(shorten(unknown))} is unknown, known are ${adminScopes.join(', ')}`;
  if ((role ?? '').length > maxTextChars) return `role is longer than ${maxTextChars} characters`;
  if ((plan ?? '').length > maxTextChars) return `plan is longer than ${maxTextChars} characters`;
  if (networks.length > maxNetworks) return `allowed_networks: more than ${maxNetworks}`;
  const badNetwork = networks.find((network) => !isNetwork(network));
  if (badNetwork !== undefined)
    return `allowed_networks: ${JSON.stringify(shorten(badNetwork))} is neither a network such as 10.0.0.0/8 nor an address`;
  if (Buffer.byteLength(JSON.stringify(metadata)) > maxMetadataBytes)
    return `metadata has more than ${maxMetadataBytes} bytes as JSON`;
  return undefined;
}

function readLimit(limit: JsonObject): KeyLimit | null {
  if (Object.keys(limit).length === 0) return null;
  const parsed = parseLimitOverride(limit);
  if (!parsed.ok) throw errors.validation_failed({ message: `limit: ${parsed.reason}` });
  // Not absent: the object has members.
  const { requestsPerUnit = 0, unit = 'SECOND' } = parsed.limit ?? {};
  return { requests_per_unit: requestsPerUnit, unit: unit.toLowerCase() };
}

function readExpiry(text: string, nowMs: number): Date | null {
  if (text === '') return null;
  const time = parseInstant(text);
  if (time === undefined || time.getTime() <= nowMs || time.getTime() > nowMs + maxLifeMs)
    throw errors.validation_failed({
      message:
        'expires_at must be a time in the next 100 years such as 2027-01-31T12:00:00Z, or empty for a key that does not expire',
    });
  return time;
}

/** Bodies are parsed from JSON. */
export function asJsonObject(value: unknown): JsonObject | undefined {
  return value as JsonObject | undefined;
}
