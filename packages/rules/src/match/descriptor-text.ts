import type { Entry } from './match.ts';

type ParsedDescriptor =
  | { readonly ok: true; readonly entries: readonly Entry[] }
  | { readonly ok: false; readonly problem: string };

/**
 * Parses `key=value,key2=value2`, or a list in JSON, for texts with `=` or `,`:
 * `[{"key":"path","value":"/a=b"}]`.
 */
export function parseDescriptor(text: string): ParsedDescriptor {
  if (isEntryList(text)) {
    const entries = parseEntryList(text);
    if (entries === undefined || entries.length === 0)
      return { ok: false, problem: `'${text}' is not ${entryListForm}` };
    return { ok: true, entries: entries.map(({ key, value = '' }) => ({ key, value })) };
  }
  const entries: Entry[] = [];
  for (const part of text.split(',')) {
    const [key = '', value, ...rest] = part.split('=');
    if (key === '' || value === undefined || rest.length > 0) {
      return {
        ok: false,
        problem: `'${part}' is not an entry: expected key=value with exactly one '=', as in name=foo,age=14, or JSON as in [{"key":"path","value":"/a=b"}]`,
      };
    }
    entries.push({ key, value });
  }
  return { ok: true, entries };
}

/** Entries as {@link parseDescriptor} reads them. */
export function formatDescriptor(
  entries: readonly { readonly key: string; readonly value: string }[],
): string {
  const text = entries.map(({ key, value }) => `${key}=${value}`).join(',');
  const parsed = parseDescriptor(text);
  const isSame = parsed.ok && JSON.stringify(parsed.entries) === JSON.stringify(entries);
  return isSame ? text : JSON.stringify(entries);
}

export const entryListForm = 'a list of entries in JSON, such as [{"key":"path","value":"/a=b"}]';

/** Whether a text is meant as JSON: no key begins like that. */
export function isEntryList(text: string): boolean {
  return /^\[\s*(\{|\]$)/.test(text);
}

/** Parses entries in JSON; undefined when a text is anything else. */
export function parseEntryList(text: string): { key: string; value?: string }[] | undefined {
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!Array.isArray(list)) return undefined;
  const entries = list.map(readEntry);
  return entries.some((entry) => entry === undefined)
    ? undefined
    : entries.filter((entry) => entry !== undefined);
}

function readEntry(item: unknown): { key: string; value?: string } | undefined {
  if (typeof item !== 'object' || item === null || !('key' in item)) return undefined;
  const { key, value, ...unknown } = item as { key: unknown; value?: unknown };
  if (typeof key !== 'string' || key === '' || Object.keys(unknown).length > 0) return undefined;
  if (value === undefined) return { key };
  return typeof value === 'string' ? { key, value } : undefined;
}
