import { compareText } from '@tollgate/kit/text';
import { statsNames } from './names.ts';
import type { StatsRegistry, StatTags } from './registry.ts';

/** Tag names that many metrics systems set; their use in `EXTRA_TAGS` is counted, not refused. */
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

/** Counts the reserved tags in `EXTRA_TAGS`; called once at the start. */
export function countReservedTags(registry: StatsRegistry, extraTags: StatTags): void {
  const found = Object.keys(extraTags).filter((key) => reservedTags.has(key));
  if (found.length > 0) registry.counter(statsNames.reservedTag).value += found.length;
}

/**
 * Tags as a suffix of a name for plain statsd: `.__key=value` for each, sorted by key. Empty keys and values are omitted;
 * `.`, `:`, `|` and control characters become `_`. Later arguments override equal keys.
 */
export function tagSuffix(...tagSets: readonly (StatTags | undefined)[]): string {
  const tags: Record<string, string> = Object.assign({}, ...tagSets);
  return Object.keys(tags)
    .sort(compareText)
    .filter((key) => key !== '' && tags[key] !== '')
    .map((key) => `.__${cleanTag(key)}=${cleanTag(tags[key] ?? '')}`)
    .join('');
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this matches
const unsafeInTag = /[.:|\u0000-\u001f\u007f]/g;

function cleanTag(text: string): string {
  return text.replace(unsafeInTag, '_');
}
