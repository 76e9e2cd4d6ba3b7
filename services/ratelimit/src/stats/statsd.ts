import { setImmediate as nextTurn } from 'node:timers/promises';
import type { CounterSample, GaugeSample, StatsSnapshot, StatTags, TimerSample } from './registry.ts';
import type { StatsSink } from './sinks.ts';
import { createTcpLineTransport } from './statsd-tcp.ts';
import type { LineTransport, LineTransportDeps } from './statsd-transport.ts';
import { createUdpLineTransport } from './statsd-udp.ts';
import { tagSuffix } from './tags.ts';

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

/** What a push sink is made of. */
interface PushSinkParts {
  readonly name: string;
  readonly encoder: LineEncoder;
  readonly transport: LineTransport;
}

/** More timings than this in a second are not sent one by one: percentiles hold without them, the network might not. */
const maxTimingsPerTake = 10_000;
const timingsEveryMs = 1000;

/**
 * After so many characters other work runs and the socket gets to send: 100,000 busy rules are 20 MB of lines, more than
 * the transport would buffer at once and a third of a second of decisions.
 */
const charsPerTurn = 65_536;
/** When so many snapshots wait, flushes come faster than turns; then they are worked off in one go. */
const maxWaiting = 4;

/** Makes a sink that sends each snapshot as lines, in chunks of the size that its transport likes. */
function createPushSink({ name, encoder, transport }: PushSinkParts): StatsSink {
  const waiting: StatsSnapshot[] = [];
  let busy = false;
  let sent = Promise.resolve();

  async function sendWaiting(): Promise<void> {
    busy = true;
    let chars = 0;
    for (let snapshot = waiting.shift(); snapshot !== undefined; snapshot = waiting.shift()) {
      for (const chunk of chunksOf(linesOf(snapshot, encoder), transport.maxChunkBytes)) {
        if (chars >= charsPerTurn && waiting.length < maxWaiting) {
          await nextTurn();
          chars = 0;
        }
        transport.send(chunk);
        chars += chunk.length;
      }
    }
    busy = false;
  }

  return {
    name,
    timings: { max: maxTimingsPerTake, everyMs: timingsEveryMs },
    start() {
      transport.start();
      return Promise.resolve();
    },
    flush(snapshot) {
      waiting.push(snapshot);
      if (!busy) sent = sendWaiting();
    },
    async close() {
      await sent;
      await transport.close();
    },
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

// Why not the transport of `hot-shots` 17: over TCP it writes to a socket that may be connecting or stalled without any
// bound, so a dead server grows our memory; it makes a new connection only when a later send fails, and loses what was
// queued; it encodes as ASCII, which mangles names with other letters; and it reads tags and hosts from DD_*
// variables by itself. What remained of it for plain statsd would be one template string per line.

/** How to reach the statsd server. */
export interface StatsdOptions {
  /** `STATSD_PROTOCOL`. */
  readonly protocol: 'tcp' | 'udp';
  /** `STATSD_HOST`. */
  readonly host: string;
  /** `STATSD_PORT`. */
  readonly port: number;
  /** `EXTRA_TAGS`, written into every name. */
  readonly extraTags: StatTags;
  /** Bound of what waits to be sent; default 4 MiB. */
  readonly maxBufferBytes?: number;
  /** TCP: how long to wait before connecting again; default 3 s. */
  readonly reconnectMs?: number;
}

/** Makes the push sink: counters as differences, gauges always, timings within a second. */
export function createStatsdSink(options: StatsdOptions, deps: LineTransportDeps): StatsSink {
  const transport =
    options.protocol === 'udp'
      ? createUdpLineTransport(options, deps)
      : createTcpLineTransport(options, deps);
  return createPushSink({ name: 'statsd', encoder: createStatsdEncoder(options.extraTags), transport });
}
