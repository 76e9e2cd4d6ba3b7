import type { Writable } from 'node:stream';
import type { Logger } from '@tollgate/kit/logger';
import { createLogSink } from './log-sink.ts';
import { createPullExporter, type PullExporterOptions } from './pull-exporter.ts';
import { statsNames } from './stats-names.ts';
import type { StatsRegistry, StatTags } from './stats-registry.ts';
import type { StatsSink } from './stats-sink.ts';
import { createStatsdSink, type StatsdOptions } from './statsd-sink.ts';

/** Settings of all sinks; each takes its own part. */
export interface StatsSinkOptions {
  /** `EXTRA_TAGS`. */
  readonly extraTags: StatTags;
  readonly statsd: Omit<StatsdOptions, 'extraTags'>;
  readonly pull: Omit<PullExporterOptions, 'extraTags'>;
}

/** What sinks work with. */
interface StatsSinkDeps {
  readonly registry: StatsRegistry;
  /** Standard output. */
  readonly output: Writable;
  readonly logger: Logger;
}

/** How one sink is made. */
export interface StatsSinkModule {
  create(options: StatsSinkOptions, deps: StatsSinkDeps): StatsSink;
}

/** All sinks there are, by the kind that `chooseSink` names. A new one is a file and a line here. */
export const statsSinks = {
  statsd: {
    create: ({ statsd, extraTags }, { registry, logger }) =>
      createStatsdSink({ ...statsd, extraTags }, { onDropped: countDropped(registry), logger }),
  },
  pull: {
    create: ({ pull, extraTags }, { registry }) => createPullExporter({ ...pull, extraTags }, { registry }),
  },
  log: {
    create: ({ extraTags }, { registry, output }) =>
      createLogSink({ extraTags }, { output, onDropped: countDropped(registry) }),
  },
} as const satisfies Record<string, StatsSinkModule>;

/** The kinds of sink that can be made. */
export type StatsSinkKind = keyof typeof statsSinks;

function countDropped(registry: StatsRegistry): (bytes: number) => void {
  const dropped = registry.counter(statsNames.droppedBytes);
  return (bytes) => {
    dropped.value += bytes;
  };
}
