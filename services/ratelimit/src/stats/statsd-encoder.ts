import { tagSuffix } from './stat-tags.ts';
import type { CounterSample, GaugeSample, StatTags, TimerSample } from './stats-registry.ts';

/** Writes samples as lines, each ended by a new line. Tagged push is another encoder behind the same sink. */
export interface LineEncoder {
  counter(sample: CounterSample): string;
  gauge(sample: GaugeSample): string;
  /** One line per timing, in whole milliseconds. */
  timings(sample: TimerSample): string[];
}

/** Makes the encoder of plain statsd: `name:delta|c`, `name:value|g`, `name:ms|ms`, tags in the name. */
export function createStatsdEncoder(extraTags: StatTags): LineEncoder {
  const extraSuffix = tagSuffix(extraTags);
  const suffixOf = (tags: StatTags | undefined) =>
    tags === undefined ? extraSuffix : tagSuffix(extraTags, tags);
  return {
    counter: ({ name, tags, delta }) => `${name}${suffixOf(tags)}:${delta}|c\n`,
    gauge: ({ name, tags, value }) => `${name}${suffixOf(tags)}:${value}|g\n`,
    timings({ name, tags, timingsMs }) {
      const start = `${name}${suffixOf(tags)}:`;
      return timingsMs.map((ms) => `${start}${Math.trunc(ms)}|ms\n`);
    },
  };
}
