import { compareText } from '@tollgate/kit/text';
import { statsNames } from './names.ts';
import type { StatsRegistry, StatTags } from './registry.ts';

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

/** Counts the tags of `EXTRA_TAGS` that have a reserved name; call it once at the start. */
export function countReservedTags(registry: StatsRegistry, extraTags: StatTags): void {
  const found = Object.keys(extraTags).filter((key) => reservedTags.has(key));
  if (found.length > 0) registry.counter(statsNames.reservedTag).value += found.length;
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
