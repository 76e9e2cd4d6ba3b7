import { compareText } from './compare-text.ts';
import type { StatTags } from './stats-registry.ts';

/** Tag names that many metrics systems set themselves; using them in `EXTRA_TAGS` is counted, not refused. */
const reservedTags: ReadonlySet<string> = new Set([
  'asg',
  'az',
  'backend',
  'canary',
  'host',
  'period',
  'region',
  'shard',
  'window',
  'source',
  'project',
  'facet',
  'envoyservice',
]);

/** Lists which tags of `EXTRA_TAGS` have a reserved name. */
export function findReservedTags(tags: StatTags): string[] {
  return Object.keys(tags).filter((key) => reservedTags.has(key));
}

/**
 * Writes tags as a suffix of a name for plain statsd: `.__key=value` for each, sorted by key. Empty keys and values are
 * left out; `.`, `:`, `|` and control characters in values become `_`. Of equal keys the later argument's wins.
 */
export function tagSuffix(...tagSets: readonly (StatTags | undefined)[]): string {
  const tags: Record<string, string> = Object.assign({}, ...tagSets);
  return Object.keys(tags)
    .sort(compareText)
    .filter((key) => key !== '' && tags[key] !== '')
    .map((key) => `.__${cleanTag(key)}=${cleanTag(tags[key] ?? '')}`)
    .join('');
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this looks for
const unsafeInTag = /[.:|\u0000-\u001f\u007f]/g;

function cleanTag(text: string): string {
  return text.replace(unsafeInTag, '_');
}
