import type { Entry } from '@tollgate/rules/match';

/** Entries, or what is wrong with the text. */
export type DescriptorText =
  | { readonly ok: true; readonly entries: readonly Entry[] }
  | { readonly ok: false; readonly problem: string };

/** Reads a descriptor as people write it, `key=value,key2=value2`: each entry has exactly one `=` and a key before it. */
export function parseDescriptorText(text: string): DescriptorText {
  const entries: Entry[] = [];
  for (const part of text.split(',')) {
    const [key = '', value, ...more] = part.split('=');
    if (key === '' || value === undefined || more.length > 0) {
      return {
        ok: false,
        problem: `'${part}' is no entry: expected key=value with exactly one '=', as in name=foo,age=14`,
      };
    }
    entries.push({ key, value });
  }
  return { ok: true, entries };
}
