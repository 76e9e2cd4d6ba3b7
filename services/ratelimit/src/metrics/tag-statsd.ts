import { RecentlyUsed } from '@tollgate/kit/collections';
import { compareText } from '@tollgate/kit/text';
import type { Mogrifier } from '../config/mogrifiers.ts';
import { cleanTag } from './names.ts';
import type { StatsSnapshot, StatTags } from './registry.ts';
import type { StatsSink } from './sinks.ts';
import { StatsdSink } from './statsd.ts';
import { type LineTransportOptions, UdpTransport } from './statsd-transport.ts';

export interface TagStatsdOptions extends LineTransportOptions {
  readonly extraTags: StatTags;
  readonly mogrifiers: readonly Mogrifier[];
}

/** Sends statistics with tags, over UDP, in the format of DogStatsD. */
export function createTagStatsdSink(options: TagStatsdOptions): StatsSink {
  return new StatsdSink(new UdpTransport(options), new TagStatsdEncoder(options));
}

/** Names are rewritten once: about 20,000 rules with six statistics each. */
const maxKnownNames = 131_072;

/**
 * `name:value|type|#key:value,…`: the tags are those of the statistic, EXTRA_TAGS, and those of the
 * first mogrifier that matches.
 */
export class TagStatsdEncoder {
  readonly #extraTags: StatTags;
  readonly #mogrifiers: readonly Mogrifier[];
  readonly #known = new RecentlyUsed<{ readonly name: string; readonly tags: readonly string[] }>({
    capacity: maxKnownNames,
  });

  constructor({ extraTags, mogrifiers }: Pick<TagStatsdOptions, 'extraTags' | 'mogrifiers'>) {
    this.#extraTags = extraTags;
    this.#mogrifiers = mogrifiers;
  }

  *encode({ counters, gauges, timers }: StatsSnapshot): Generator<string> {
    for (const { name, tags, delta } of counters) yield this.#line(name, tags, `${delta}|c`);
    for (const { name, tags, value } of gauges) yield this.#line(name, tags, `${value}|g`);
    for (const { name, tags, timingsMs } of timers) {
      for (const ms of timingsMs) yield this.#line(name, tags, `${Math.trunc(ms)}|ms`);
    }
  }

  #line(statName: string, statTags: StatTags | undefined, value: string): string {
    const { name, tags } = this.#rewrite(statName);
    const all = [...formatTags({ ...this.#extraTags, ...statTags }), ...tags];
    return `${name}:${value}${all.length === 0 ? '' : `|#${all.join(',')}`}\n`;
  }

  #rewrite(statName: string): { readonly name: string; readonly tags: readonly string[] } {
    let known = this.#known.get(statName);
    if (known === undefined) {
      known = rewrite(statName, this.#mogrifiers);
      this.#known.set(statName, known);
    }
    return known;
  }
}

function rewrite(statName: string, mogrifiers: readonly Mogrifier[]) {
  for (const { pattern, name, tags } of mogrifiers) {
    const match = pattern.exec(statName);
    if (match === null) continue;
    const expand = (template: string) => expandCaptures(template, match);
    const expanded = Object.entries(tags).map(([key, value]) => toTag(key, expand(value)));
    return { name: expand(name), tags: expanded };
  }
  return { name: statName, tags: [] };
}

/** Captures that do not exist stay as they are, as in envoyproxy/ratelimit. */
function expandCaptures(template: string, match: readonly (string | undefined)[]): string {
  return template.replace(/\$(\d+)/g, (whole, index: string) =>
    Number(index) < match.length ? (match[Number(index)] ?? '') : whole,
  );
}

/** Tags follow names of plain statsd: sorted by key, without empty ones, and `_` for dots. */
function formatTags(tags: StatTags): string[] {
  return Object.keys(tags)
    .sort(compareText)
    .filter((key) => key !== '' && tags[key] !== '')
    .map((key) => toTag(cleanTag(key), cleanTag(tags[key] ?? '')));
}

/** A value of a request must not begin another tag; names are free of `|` and line breaks. */
function toTag(key: string, value: string): string {
  return `${key}:${value}`.replaceAll(',', '_');
}
