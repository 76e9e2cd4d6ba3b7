import { holdsObject } from './oauth-params.ts';
import type { WireParams, WireValue } from './wire-params.ts';

/**
 * The parameters with their types, and what authentication added or changed.
 * @param written the parameters as a form has them.
 */
export function jsonParams(params: WireParams, written: WireParams, body: URLSearchParams): WireParams {
  const all: Record<string, WireValue> = Object.create(null);
  for (const name of Object.keys(written))
    all[name] = holdsObject(params[name]) ? params[name] : written[name];
  for (const [name, value] of body) {
    const before = all[name.endsWith('[]') ? name.slice(0, -2) : name];
    if (typeof before !== 'object' && String(before) !== value) all[name] = value;
  }
  return all;
}
