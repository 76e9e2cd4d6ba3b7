import { claimKeyPrefix, headerKeyPrefix, type LimitDescriptor } from '../compile/limits.ts';
import { knownMethods } from '../match/request-match.ts';
import { attributeText, type CallerIdentity } from './caller.ts';
import type { LimitOverride } from './limit-override.ts';

/** Data of a request for its descriptors. */
export interface LimitedRequest {
  readonly identity: CallerIdentity | undefined;
  readonly method: string;
  /** Path of the rule as written, or undefined if none matched. */
  readonly rulePath: string | undefined;
  readonly remoteAddress: string;
  /** Values of headers that limits count by. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A descriptor for the rate limit service. */
export interface Descriptor {
  readonly entries: readonly { readonly key: string; readonly value: string }[];
  /** Replaces the number of the rule. */
  readonly limit?: LimitOverride;
}

/** Undefined when the request lacks a value: such descriptors are dropped, as Envoy does. */
export function toDescriptor(
  { name, plans, keys, mode }: LimitDescriptor,
  request: LimitedRequest,
): Descriptor | undefined {
  const entries: { key: string; value: string }[] = name === undefined ? [] : [{ key: 'limit', value: name }];
  const plan = request.identity?.plan;
  if (plan !== undefined && plans?.has(plan) === true) entries.push({ key: 'plan', value: plan });
  for (const key of keys) {
    const value = getValue(key, request);
    if (value === '') return undefined;
    entries.push({ key, value });
  }
  const override = findOverride(keys, request.identity);
  if (override === undefined) return { entries };
  // The service would enforce it, since no rule in force matches; nor does a trial compare it.
  if (mode === 'Trial') return undefined;
  return { entries, limit: override };
}

/** A limit of a user, client, key or organization is about all of its requests. */
function findOverride(
  attributes: readonly string[],
  identity: CallerIdentity | undefined,
): LimitOverride | undefined {
  const id = identity?.kind === 'client' ? 'client_id' : 'user_id';
  if (countsAllOf(id, attributes)) return identity?.limit;
  if (countsAllOf('key_id', attributes)) return identity?.key?.limit;
  return countsAllOf('org_id', attributes) ? identity?.orgLimit : undefined;
}

/** Attributes that a caller has one value of. */
const constants: readonly string[] = ['plan', 'issuer'];

/** Whether a descriptor counts all requests of a caller with this attribute. */
function countsAllOf(id: string, attributes: readonly string[]): boolean {
  return attributes.includes(id) && attributes.every((name) => name === id || constants.includes(name));
}

/** Empty when the request does not have it. */
function getValue(name: string, request: LimitedRequest): string {
  const { identity, method, rulePath, remoteAddress, headers } = request;
  switch (name) {
    case 'remote_address':
      return remoteAddress;
    case 'path':
      return rulePath ?? 'default';
    case 'method':
      return knownMethods.includes(method) ? method : 'other';
    default:
      if (name.startsWith(headerKeyPrefix)) return getHeader(headers, name.slice(headerKeyPrefix.length));
      if (identity === undefined) return '';
      return attributeText(identity, name) || getClaim(identity, name);
  }
}

/** An attribute that `claims` of the routes file add; access policies have a prefix before it. */
function getClaim({ claims }: CallerIdentity, name: string): string {
  return name.startsWith(claimKeyPrefix) ? (claims[name.slice(claimKeyPrefix.length)] ?? '') : '';
}

/** The name may be that of a property of all objects, such as `constructor`. */
function getHeader(headers: Readonly<Record<string, string>>, name: string): string {
  return Object.hasOwn(headers, name) ? (headers[name] ?? '') : '';
}
