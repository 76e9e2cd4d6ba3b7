import { adminScopePrefix } from '@tollgate/admin-clients/admin-scopes';
import type { JsonObject } from '@tollgate/kit/json';
import { type Setting, text } from '@tollgate/kit/settings';
import { canonicalTag } from '../i18n/languages.ts';

/** A scope, or a type of authorization details, of the operator, which clients ask users for. */
export interface OAuthPermission {
  readonly name: string;
  /** Texts for users by BCP 47 tag. Empty: users see the name. */
  readonly descriptions: Readonly<Record<string, string>>;
  /** `all` clients may ask for it, or those to which an administrator has assigned it. */
  readonly clients: 'all' | 'assigned';
}

/** A right that scopes cannot express. Its type is a permission. @see RFC 9396 §2 */
export type AuthorizationDetail = JsonObject & { readonly type: string };

/** Limits a request, and the reply of the hook. */
export const maxDetails = 10;

const form =
  'a list of names separated by commas, or a JSON object such as {"orders:read":{"description":{"en":"Read your orders"},"clients":"all"}}; clients is all or assigned';

/** @see RFC 6749 §3.3 https://www.rfc-editor.org/rfc/rfc6749#section-3.3 */
const nameForm = /^[!#-+\--[\]-~]{1,128}$/;
/** Every request for access compares them, and the page shows those of the request. */
const maxNames = 100;
const maxDescriptionChars = 255;
/** Scopes of OpenID Connect have texts and claims of their own. */
const reserved: readonly string[] = ['openid', 'profile', 'email', 'phone', 'address', 'offline_access'];

function isReserved(name: string): boolean {
  return reserved.includes(name) || name.startsWith(adminScopePrefix);
}

/** Parses a list of names, or JSON. Undefined for an invalid value. */
export function parsePermissions(value: string): readonly OAuthPermission[] | undefined {
  const entries = value.trim().startsWith('{') ? parseMembers(value) : readNames(value);
  if (entries === undefined || entries.length > maxNames) return undefined;
  const permissions = entries.flatMap(([name, members]) => readPermission(name, members) ?? []);
  const names = new Set(entries.map(([name]) => name));
  const isValid = permissions.length === entries.length && names.size === permissions.length;
  return isValid ? Object.freeze(permissions) : undefined;
}

type Members = readonly (readonly [name: string, members: unknown])[];

function readNames(value: string): Members {
  const names = value.split(',').map((name) => name.trim());
  return names.filter((name) => name !== '').map((name) => [name, {}]);
}

function parseMembers(value: string): Members | undefined {
  try {
    return Object.entries(JSON.parse(value));
  } catch {
    return undefined;
  }
}

function readPermission(name: string, members: unknown): OAuthPermission | undefined {
  if (!nameForm.test(name) || isReserved(name) || !isObject(members)) return undefined;
  const { description = {}, clients = 'assigned', ...unknown } = members;
  if (Object.keys(unknown).length > 0 || (clients !== 'all' && clients !== 'assigned')) return undefined;
  const texts = typeof description === 'string' ? { en: description } : description;
  if (!isObject(texts)) return undefined;
  const descriptions = Object.entries(texts);
  const areTexts = descriptions.every(
    ([language, one]) =>
      canonicalTag(language) !== undefined && typeof one === 'string' && one.length <= maxDescriptionChars,
  );
  return areTexts
    ? { name, descriptions: Object.fromEntries(descriptions.map(([l, one]) => [l, String(one)])), clients }
    : undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function permissionList(
  options: Parameters<typeof text>[0] & { readonly default: '' },
): Setting<readonly OAuthPermission[]> {
  return Object.freeze({
    ...text(options),
    form,
    parse: parsePermissions,
    fallback: { value: [], text: '' },
  });
}
