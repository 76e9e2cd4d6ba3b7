/** The limit of values that are sent to upstreams with each request. */
export const maxClaimChars = 255;

/** Line breaks and other characters that no header, key or log should have. */
const control = /\p{Cc}/u;

/**
 * A claim as text: numbers and booleans too, and lists separated by spaces. Undefined for anything
 * else, for control characters, and for what could equal another text: a part of one that is too
 * long, a number that JSON rounds, and half of a surrogate pair, which headers replace.
 */
export function claimText(value: unknown, maxChars: number = maxClaimChars): string | undefined {
  const text = Array.isArray(value) ? joinItems(value) : scalarText(value);
  if (text === undefined || text === '' || text.length > maxChars || control.test(text)) return undefined;
  return text;
}

function joinItems(items: readonly unknown[]): string | undefined {
  // Each has one character at least.
  if (items.length > maxScopeChars) return undefined;
  const texts = items.map(scalarText);
  return texts.every((text) => text !== undefined) ? texts.join(' ') : undefined;
}

/** The values of `aud`, which is a text or a list. */
export function claimAudiences({ aud }: Readonly<Record<string, unknown>>): readonly string[] {
  return [aud].flat().filter((name): name is string => typeof name === 'string' && name !== '');
}

/** Scopes are lists, and longer than other values. */
export const maxScopeChars = 1024;

function scalarText(value: unknown): string | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? value : undefined;
  if (typeof value === 'number')
    return Math.abs(value) <= Number.MAX_SAFE_INTEGER ? String(value) : undefined;
  return typeof value === 'boolean' ? String(value) : undefined;
}
