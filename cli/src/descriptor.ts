import { CommandFailure } from './failure.ts';

/** An entry of a descriptor. */
export interface Entry {
  readonly key: string;
  readonly value: string;
}

/**
 * Parses a descriptor: `user=ann,plan=pro`, or JSON for texts with `=` or `,`:
 * `[{"key":"path","value":"/a=b"}]`.
 *
 * @throws CommandFailure
 */
export function parseDescriptor(text: string): Entry[] {
  const entries = text.startsWith('[') ? parseJson(text) : text.split(',').map(parseEntry);
  if (entries.length === 0 || entries.some(({ key }) => key === ''))
    throw new CommandFailure(`not a descriptor: ${text}. Expected key=value,key2=value2, or entries in JSON`);
  return entries;
}

function parseEntry(text: string): Entry {
  const [, key = '', value = ''] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
  return { key, value };
}

function parseJson(text: string): Entry[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return [];
  }
  return Array.isArray(value) ? value.map(toEntry) : [];
}

function toEntry(value: unknown): Entry {
  const { key, value: text = '' }: Partial<Record<string, unknown>> =
    typeof value === 'object' && value !== null ? { ...value } : {};
  return typeof key === 'string' && typeof text === 'string' ? { key, value: text } : { key: '', value: '' };
}

/** Entries as `parseDescriptor` reads them. */
export function formatEntries(entries: readonly Entry[]): string {
  const isPlain = entries.every(({ key, value }) => !/[=,]/.test(key) && !value.includes(','));
  return isPlain && entries[0]?.key.startsWith('[') !== true
    ? entries.map(({ key, value }) => `${key}=${value}`).join(',')
    : JSON.stringify(entries);
}
