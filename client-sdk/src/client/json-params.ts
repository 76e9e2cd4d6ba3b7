import type { WireParams } from './wire-params.ts';

/** The parameters with their types, and what authentication added or changed. */
export function jsonParams(params: WireParams, body: URLSearchParams): WireParams {
  const all: Record<string, WireParams[string]> = { ...params };
  for (const [name, value] of body) {
    if (
      !name.includes('[') &&
      (params[name] === undefined || params[name] === null || isChanged(params[name], value))
    )
      all[name] = value;
  }
  return all;
}

function isChanged(before: WireParams[string], value: string): boolean {
  return typeof before !== 'object' && String(before) !== value;
}
