import type { RuleEdit } from './rule-store.ts';

/**
 * Makes an edit in the text of a manifest.
 *
 * @throws Error when the text to replace is not there exactly once.
 */
export function editText(text: string, { file, from, to }: RuleEdit): string {
  const [before, after, ...more] = text.split(`${from}\n`);
  if (before === undefined || after === undefined || more.length > 0)
    throw new Error(`${file} is to have exactly one line that ends in "${from}"`);
  return `${before}${to}\n${after}`;
}
