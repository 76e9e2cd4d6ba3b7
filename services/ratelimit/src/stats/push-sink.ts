import type { LineTransport } from './line-transport.ts';
import type { StatsSnapshot } from './stats-registry.ts';
import type { StatsSink } from './stats-sink.ts';
import type { LineEncoder } from './statsd-encoder.ts';

/** What a push sink is made of. */
export interface PushSinkParts {
  readonly name: string;
  readonly encoder: LineEncoder;
  readonly transport: LineTransport;
}

/** More timings than this in a second are not sent one by one: percentiles hold without them, the network might not. */
const maxTimingsPerTake = 10_000;
const timingsEveryMs = 1000;

/** Makes a sink that sends each snapshot as lines, in chunks of the size that its transport likes. */
export function createPushSink({ name, encoder, transport }: PushSinkParts): StatsSink {
  return {
    name,
    timings: { max: maxTimingsPerTake, everyMs: timingsEveryMs },
    start() {
      transport.start();
      return Promise.resolve();
    },
    flush(snapshot) {
      for (const chunk of chunksOf(linesOf(snapshot, encoder), transport.maxChunkBytes))
        transport.send(chunk);
    },
    close: () => transport.close(),
  };
}

function* linesOf(snapshot: StatsSnapshot, encoder: LineEncoder): Generator<string> {
  for (const sample of snapshot.counters) yield encoder.counter(sample);
  for (const sample of snapshot.gauges) yield encoder.gauge(sample);
  for (const sample of snapshot.timers) yield* encoder.timings(sample);
}

/** Packs lines together up to a size; a line that is longer by itself goes alone. */
function* chunksOf(lines: Iterable<string>, maxBytes: number): Generator<string> {
  let chunk = '';
  let chunkBytes = 0;
  for (const line of lines) {
    const bytes = Buffer.byteLength(line);
    if (chunkBytes > 0 && chunkBytes + bytes > maxBytes) {
      yield chunk;
      chunk = '';
      chunkBytes = 0;
    }
    chunk += line;
    chunkBytes += bytes;
  }
  if (chunkBytes > 0) yield chunk;
}
