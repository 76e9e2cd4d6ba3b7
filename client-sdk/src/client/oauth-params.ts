import { ConfigurationError } from '../errors/configuration-error.ts';
import { strictJson } from './strict-json.ts';
import type { WireParams, WireValue } from './wire-params.ts';

/** Parameters whose several values are one text, separated by spaces. @see RFC 6749 §3.3, OpenID Connect Core §3.1.2.1 */
const spaceSeparated = new Set([
  'scope',
  'response_type',
  'prompt',
  'acr_values',
  'ui_locales',
  'claims_locales',
]);

/**
 * Parameters of a request to the authorization server as they are on the wire: lists that are one text are joined, and what holds an
 * object is JSON, such as `claims` and `authorization_details`. Null and undefined are left out.
 * @throws {ConfigurationError} for what JSON cannot hold.
 * @see OpenID Connect Core §5.5, RFC 9396 §2
 */
export function oauthParams(params: WireParams): WireParams {
  const written: Record<string, WireValue> = Object.create(null);
  for (const name of Object.keys(params)) {
    const value = params[name];
    if (value === undefined || value === null) continue;
    if (spaceSeparated.has(name) && Array.isArray(value)) {
      // No scope at all is said by leaving it out.
      if (value.length > 0) written[name] = joined(name, value);
    } else written[name] = holdsObject(value) ? json(name, value) : value;
  }
  return written;
}

function joined(name: string, values: readonly WireValue[]): string {
  if (values.every((value) => typeof value === 'string')) return values.join(' ');
  throw new ConfigurationError(`\`${name}\` must be a text or an array of texts`);
}

/** Whether a parameter has no form but JSON. */
export function holdsObject(value: WireValue): boolean {
  if (Array.isArray(value)) return value.some((item) => typeof item === 'object' && item !== null);
  return typeof value === 'object' && value !== null;
}

/** A URL or a date has its text by `toJSON`, which is sent without quotes. */
function json(name: string, value: WireValue): string {
  const text = strictJson(value, name);
  return text.startsWith('"') ? String(JSON.parse(text)) : text;
}
